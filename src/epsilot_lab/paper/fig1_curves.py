"""What Figure 1's panels show, read off the lines."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from ..fitting import Curve, curve, select
from ..store import Line
from .fig1_panels import Options, Series
from .image_tasks import source_name
from .measures import operations
from .numpy_pdasmd import NAME

#: What is read off a line, None where it was not counted.
Measure = Callable[[Line], float | None]


def seconds(line: Line) -> float:
    """Return the running time."""
    return float(line["seconds"])


def loops(line: Line) -> float:
    """Return the outer loops."""
    return float(line["n_iter"])


def series_lines(
    lines: Sequence[Line], series: Series, data: str, stop: str, eps: float | None = None
) -> list[Line]:
    """Return the solves of a series against n; under the certificate those to one ε."""
    own = select(
        lines,
        data=source_name(data),
        stop=stop,
        is_timed=False,
        method=series.method,
        given=dict(series.options),
    )
    return own if eps is None else select(own, eps=eps)


def size_curves(
    lines: Sequence[Line],
    shown: Sequence[Series],
    data: str,
    stop: str,
    eps: float | None = None,
) -> tuple[Curve, ...]:
    """Return operations against n for each line of a panel."""
    return tuple(
        curve(
            series.label,
            series_lines(lines, series, data, stop, eps),
            lambda line: line["n"],
            operations,
        )
        for series in shown
    )


def batch_lines(
    lines: Sequence[Line],
    data: str,
    stop: str,
    options: Options,
    is_numpy: bool = False,
) -> list[Line]:
    """Return the timed solves of PDASMD-B with the given options."""
    method = NAME if is_numpy else "pdasmd"
    return [
        line
        for line in select(lines, data=source_name(data), stop=stop, is_timed=True, method=method)
        if {k: v for k, v in line["given"].items() if k != "batch_size"} == dict(options)
    ]


def batch_curves(own: Sequence[Line], what: Measure, least: int = 1) -> tuple[Curve, ...]:
    """Return a quantity of PDASMD-B against B, from the least B on, for each n.

    Slopes are of the same images at every B.
    """
    return tuple(
        curve(
            f"n = {n}",
            [line for line in own if line["n"] == n and line["B"] >= least],
            lambda line: line["B"],
            what,
            group="seed",
        )
        for n in sorted({line["n"] for line in own})
    )


def certified_eps(lines: Sequence[Line]) -> list[float]:
    """Return the accuracies that were certified, the largest first."""
    return sorted({line["eps"] for line in lines if line["stop"] == "certificate"}, reverse=True)
