"""The problems that a cost and weights, or many of them, describe."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ...arguments import as_numpy
from ...transport.problem import make_problem
from .lists import ListChunk, source_of_parts
from .source import AsGiven, Given, Source
from .stacks import Stack


def source_of(M: AsGiven, a: AsGiven, b: AsGiven, normalize: bool) -> Source:
    """Return the problems that a cost and weights, or many of them, describe."""

    def make(first: int, problems: Sequence[Given]) -> ListChunk:
        return ListChunk(first, problems, normalize)

    M, a, b = as_numpy(M, "M"), as_numpy(a, "a"), as_numpy(b, "b")
    source = source_of_parts({"M": (M, 2), "a": (a, 1), "b": (b, 1)}, make)
    if source.size is None or source.size == 0 or not all(map(_is_stackable, (M, a, b))):
        return source
    n, m = M.shape[-2:]
    if any(w is not None and w.shape[-1] != count for w, count in ((a, n), (b, m))):
        make_problem(*source.only(0).given(0), normalize=normalize)  # says what does not fit
    return Stack(source.size, M, a, b, normalize)


def _is_stackable(x: object) -> bool:
    """Tell whether an argument is None, or an array of ordinary numbers."""
    return x is None or (type(x) is np.ndarray and x.dtype.kind in "biuf" and x.size > 0)
