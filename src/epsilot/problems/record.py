"""What a run knows at one moment."""

from __future__ import annotations

from typing import NamedTuple


class Record(NamedTuple):
    """One evaluation: the best bounds so far, in the user's units."""

    n_iter: int
    operations: int
    seconds: float
    upper: float
    lower: float
    gap: float
    marginal_error: float
    reg: float
