"""What the paper says of Figure 1, beside what was measured."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import pairwise

import numpy as np

from ..lab.document import Claim, Table, verdict
from ..lab.fitting import Curve, ratios
from ..lab.store import Line
from .fig1_panels import NAMES, batch_curves, kind_of, size_curves
from .image_tasks import source_name
from .measures import operations

#: A measured slope "close to" the claimed one lies in these bounds.
SLOPE_N = (1.85, 2.15)
SLOPE_B = (0.4, 0.6)
#: Up to this batch size the paper's running time falls.
TURNING_BATCH = math.exp(2.5)
BELOW = ("AAM", "Sinkhorn", "Stochastic Sinkhorn")

#: (method, given options) -> n -> operations of verified prototypes, ε = 0.05, synthetic images.
REFERENCE: dict[tuple[str, str], dict[int, float]] = {
    ("pdasmd", ""): {36: 7.3e7, 144: 1.3e9},
    ("pdasmd", "smoothness=sharp"): {36: 3.2e7, 144: 5.8e8},
    ("pdasgd", ""): {144: 5.4e8},
    ("apdagd", ""): {36: 2.8e7, 144: 4.8e8},
    ("apdrcd", ""): {36: 1.6e8, 144: 5.2e9},
    ("sinkhorn", ""): {36: 1.0e7, 64: 5.0e7, 100: 6.4e7, 144: 1.9e8},
    ("stochastic_sinkhorn", ""): {36: 1.6e7, 64: 6.5e7, 100: 1.5e8, 144: 2.8e8},
    ("aam", ""): {36: 2.9e6, 64: 1.2e7, 100: 2.8e7, 144: 6.2e7},
}


def claims(lines: Sequence[Line], panels: dict[str, str], stop: str) -> list[Claim]:
    """Return every claim that the panels test."""
    found: list[Claim] = []
    for letter, data in panels.items():
        kind = kind_of(letter)
        where = f"({letter}) {NAMES.get(data, source_name(data))}"
        if kind in "ab":
            found += _of_sizes(size_curves(lines, kind, data, stop), where)
        elif kind == "c":
            work = batch_curves(lines, data, stop, operations)
            loops = batch_curves(lines, data, stop, lambda line: line["n_iter"])
            found += _of_batches(work, loops, where)
        else:
            times = batch_curves(lines, data, stop, lambda line: line["seconds"])
            found += _of_times(times, where)
    return found


def _of_sizes(curves: Sequence[Curve], where: str) -> Iterator[Claim]:
    own = curves[0]
    slope = own.fit.slope
    yield Claim(
        "operations of PDASMD grow as n²",
        where,
        f"slope {own.fit}",
        verdict(None if math.isnan(slope) else SLOPE_N[0] <= slope <= SLOPE_N[1]),
    )
    for other in curves[1:]:
        if other.label in BELOW:
            found = ratios(other, own)
            yield Claim(
                f"{other.label} uses fewer operations than PDASMD",
                where,
                _range(found, "of PDASMD's"),
                verdict(max(found) < 1 if found else None),
            )


def _of_batches(work: Sequence[Curve], loops: Sequence[Curve], where: str) -> Iterator[Claim]:
    for what, curves in (("operations", work), ("outer loops", loops)):
        slopes = [c.fit.slope for c in curves if not math.isnan(c.fit.slope)]
        yield Claim(
            f"{what} of PDASMD-B grow as √B",
            where,
            "; ".join(f"{c.label}: slope {c.fit}" for c in curves) or "–",
            verdict(all(SLOPE_B[0] <= s <= SLOPE_B[1] for s in slopes) if slopes else None),
        )


def _of_times(curves: Sequence[Curve], where: str) -> Iterator[Claim]:
    usable = [c for c in curves if len(c.x) > 1]
    slopes = "; ".join(f"{c.label}: slope {c.fit}" for c in usable) or "–"
    yield Claim(
        "running time does not fall as 1/√B",
        where,
        slopes,
        verdict(all(c.fit.slope > -0.4 for c in usable) if usable else None),
    )
    yield Claim(
        f"running time falls up to B ≈ {TURNING_BATCH:.0f}",
        where,
        "; ".join(map(_minimum, usable)) or "–",
        verdict(all(_falls(c) for c in usable) if usable else None),
    )


def _minimum(curve: Curve) -> str:
    best = int(np.argmin(curve.median))
    share = curve.median[best] / curve.median[0]
    return f"{curve.label}: least at B = {curve.x[best]:g} ({share:.2f} of the time of B = 1)"


def _falls(curve: Curve) -> bool:
    """Tell whether the medians decrease for all measured B up to the turning point."""
    early = [m for x, m in zip(curve.x, curve.median, strict=True) if x <= TURNING_BATCH]
    return all(later < sooner for sooner, later in pairwise(early))


def _range(values: Sequence[float], unit: str) -> str:
    if not values:
        return "–"
    return f"{min(values):.2g} to {max(values):.2g} {unit}"


def reference_table(lines: Sequence[Line]) -> Table:
    """Return measured medians beside those of the prototypes."""
    rows = []
    for (method, given), expected in REFERENCE.items():
        for n, count in expected.items():
            found = [
                operations(line)
                for line in lines
                if line["data"] == "synthetic"
                and line["stop"] == "paper"
                and line["n"] == n
                and line["method"] == method
                and not line["is_timed"]
                and line["has_ended"]
                and ",".join(f"{k}={v}" for k, v in line["given"].items()) == given
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
