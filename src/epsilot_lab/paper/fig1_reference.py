"""Operations of verified prototypes, beside which Figure 1's are set."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..document import Table
from ..fitting import select
from ..store import Line
from .measures import operations

#: (method, given options) -> n -> operations of verified prototypes, ε = 0.05, synthetic images.
REFERENCE: dict[tuple[str, str], dict[int, float]] = {
    ("pdasmd", ""): {36: 7.3e7, 144: 1.3e9},
    ("pdasmd", "smoothness=sharp"): {36: 3.2e7, 144: 5.8e8},
    ("pdasgd", ""): {144: 5.4e8},
    ("apdagd", "rule=violation"): {36: 2.8e7, 144: 4.8e8},
    ("apdagd", "rule=duality"): {144: 1.4e8},
    ("apdrcd", ""): {36: 1.6e8, 144: 5.2e9},
    ("sinkhorn", ""): {36: 1.0e7, 64: 5.0e7, 100: 6.4e7, 144: 1.9e8},
    ("stochastic_sinkhorn", ""): {36: 1.6e7, 64: 6.5e7, 100: 1.5e8, 144: 2.8e8},
    ("aam", ""): {36: 2.9e6, 64: 1.2e7, 100: 2.8e7, 144: 6.2e7},
}


def reference_table(lines: Sequence[Line]) -> Table:
    """Return measured medians beside those of the prototypes."""
    rows = []
    own = select(lines, data="synthetic", stop="paper", is_timed=False, has_ended=True)
    for (method, given), expected in REFERENCE.items():
        for n, count in expected.items():
            found = [
                operations(line)
                for line in select(own, method=method, n=n)
                if ",".join(f"{k}={v}" for k, v in line["given"].items()) == given
            ]
            values = [value for value in found if value is not None]
            if values:
                middle = float(np.median(values))
                name = f"{method} ({given})" if given else method
                rows.append(
                    (name, str(n), f"{middle:.2e}", f"{count:.1e}", f"{middle / count:.2f}")
                )
    columns = ("method", "n", "measured", "specification", "ratio")
    return Table(columns, tuple(rows))
