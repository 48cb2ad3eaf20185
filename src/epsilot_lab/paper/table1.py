"""Reproduce Table 1: how the operations of every method grow with n and with 1/ε."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from epsilot import methods, theory
from epsilot._types import Vector
from epsilot.display.plotting import COLOURS, new_figure
from epsilot.errors import InvalidProblem
from epsilot.problems.problem import make_problem
from epsilot.solvers import Method, solver_class
from epsilot.solvers.base import published_parameters
from epsilot.solvers.method_info import MethodInfo

from ..document import (
    Block,
    Claim,
    Command,
    Heading,
    Paragraph,
    Picture,
    Table,
    environment_table,
    verdict,
)
from ..figures import write_figure
from ..fitting import Curve, Fit, curve, fit_power, select
from ..instances import images
from ..judging import (
    FAILS,
    HOLDS,
    UNMEASURED,
    UNTESTED,
    JudgedClaim,
    at_most,
    count,
    statement_table,
    table_of_tests,
    within,
)
from ..report import Page, publish
from ..runner import ExperimentSetup
from ..store import Line
from .fig1 import SLOPE_N, Measure, seconds
from .image_tasks import KEY, STOPS, ImageTask, operations, priced, soundness, source_name

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from epsilot.solvers.method_info import MethodInfo


#: (line, smoothed p', smoothed q', ε'/2) -> most iterations, in the unit of the line's ``n_iter``.
Bound = Callable[[Line, Vector, Vector, float], float]

#: Largest cost of every problem between images.
COST_MAX = 1.0


def share(line: Line) -> float | None:
    """Return the iterations of a run over its bound; None where no constant is known."""
    bound = BOUNDS.get(line["method"])
    if bound is None or not line["has_ended"]:
        return None
    p, q, tolerance = _parameters(line["data"], line["side"], line["seed"], line["eps"])
    return float(line["n_iter"]) / bound(line, p, q, tolerance)


@cache
def _parameters(data: str, side: int, seed: int, eps: float) -> tuple[Vector, Vector, float]:
    """Return p', q' and ε'/2 of Appendix C."""
    target, tolerance = published_parameters(make_problem(*images(side, seed, data)), eps)
    return target.p, target.q, tolerance


def _sinkhorn(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.sinkhorn_iterations(tolerance, COST_MAX, line["reg"], p, q)


def _coordinates(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    """Return the bound in epochs of n + m updates."""
    updates = theory.stochastic_sinkhorn_iterations(tolerance, COST_MAX, line["reg"], p, q)
    return updates / (p.size + q.size)


def _accelerated_sinkhorn(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.accelerated_sinkhorn_iterations(tolerance, COST_MAX, line["reg"], p, q)


def _pdasmd(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    options = line["options"]
    return theory.pdasmd_outer_loops(
        line["eps"],
        COST_MAX,
        p,
        q,
        norm=options["norm"],
        batch_size=options["batch_size"],
        smoothness=options["smoothness"],
        step_constant=options["step_constant"],
    )


def _accelerated(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    """Return the bound of APDAGD, which AAM shares, for the rule that ended the run.

    The papers' rule asks for f + φ <= ε/6 and a cost of rounding, at most ‖C‖∞/2 times the
    violation, of ε/6. Appendix C's rule has ε'/2 and ε/4.
    """
    eps = line["eps"]
    violation, gap = tolerance, eps / 4
    if line["options"].get("rule", "duality") == "duality":
        violation, gap = eps / (3 * COST_MAX), eps / 6
    return theory.apdagd_iterations(violation, COST_MAX, line["reg"], p, q, objective=gap)


def _apdamd(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    gap = line["eps"] / 4
    return theory.apdamd_iterations(tolerance, COST_MAX, line["reg"], p, q, objective=gap)


def _hybrid(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.hybrid_primal_dual_iterations(line["eps"], COST_MAX, p.size, q.size)


def _dijkstra(line: Line, p: Vector, q: Vector, tolerance: float) -> float:
    return theory.dijkstra_phases(line["eps"], COST_MAX)


BOUNDS: dict[str, Bound] = {
    "sinkhorn": _sinkhorn,
    "greenkhorn": _coordinates,
    "stochastic_sinkhorn": _coordinates,
    "accelerated_sinkhorn": _accelerated_sinkhorn,
    "aam": _accelerated,
    "apdagd": _accelerated,
    "apdamd": _apdamd,
    "hybrid_primal_dual": _hybrid,
    "pdasgd": _pdasmd,
    "pdasmd": _pdasmd,
    "dijkstra_dfs": _dijkstra,
}


# -- sizes and accuracies that fit the budget --------------------------------------------------

AXES = ("n", "eps")


@dataclass(frozen=True)
class Table1Scale:
    """Sizes to choose from: a method takes the largest it can afford within the budget.

    No ε is above 0.2: the independent plan is within about 0.3 of the optimum on the images, so
    that nearly any plan solves what is easier.
    """

    sides: tuple[int, ...]
    n_sides: int
    base_sides: tuple[int, ...]  # at which ε varies, best first
    accuracies: dict[str, tuple[float, ...]]  # for each stop, decreasing
    base_accuracies: dict[str, tuple[float, ...]]  # at which n varies, best first
    n_accuracies: int
    seeds: int
    budget: float  # seconds of a solve
    least: int = 3  # points of a fit; with fewer of them nothing is fitted

    @classmethod
    def of(cls, quick: bool) -> Table1Scale:
        """Return the size that takes minutes, or the one that takes an hour."""
        return QUICK if quick else FULL


QUICK = Table1Scale(
    sides=(3, 4, 5, 6, 7, 8, 10, 12),
    n_sides=5,
    base_sides=(8, 6, 5, 4, 3),
    accuracies={
        "paper": (0.2, 0.1, 0.05, 0.025),
        "certificate": (0.1, 0.05, 0.02, 0.01, 0.005),
    },
    base_accuracies={"paper": (0.05, 0.1, 0.2), "certificate": (0.02, 0.05)},
    n_accuracies=4,
    seeds=3,
    budget=1.5,
)
FULL = Table1Scale(
    sides=(3, 4, 5, 6, 7, 8, 10, 12, 14, 16, 20, 24, 28),
    n_sides=7,
    base_sides=(12, 10, 8, 6, 5, 4),
    accuracies={
        "paper": (0.2, 0.1, 0.05, 0.025, 0.0125),
        "certificate": (0.1, 0.05, 0.02, 0.01, 0.005, 0.002),
    },
    base_accuracies={"paper": (0.05, 0.1, 0.2), "certificate": (0.02, 0.05)},
    n_accuracies=5,
    seeds=5,
    budget=15.0,
)


def tasks_of(
    scale: Table1Scale, data: str, method: str, stop: str, axes: Sequence[str], seeds: int
) -> Iterator[ImageTask]:
    """Yield a method's solves: sizes at one accuracy, then accuracies at one size."""
    wanted: list[tuple[int, float]] = []
    if "n" in axes:
        wanted += _size_axis(scale, method, stop)
    if "eps" in axes:
        wanted += _accuracy_axis(scale, method, stop)
    for side, eps in dict.fromkeys(wanted):
        for seed in range(seeds):
            yield priced(ImageTask(data, side, seed, method, stop, eps))


def _size_axis(scale: Table1Scale, method: str, stop: str) -> list[tuple[int, float]]:
    """Return the largest sizes that can be paid for, at the first accuracy that affords most."""
    best: list[tuple[int, float]] = []
    for eps in scale.base_accuracies[stop]:
        paid = [(side, eps) for side in scale.sides if _is_paid(scale, method, stop, side, eps)]
        best = max(best, paid[-scale.n_sides :], key=len)
    return best if len(best) >= scale.least else []


def _accuracy_axis(scale: Table1Scale, method: str, stop: str) -> list[tuple[int, float]]:
    """Return the smallest accuracies that can be paid for, at the largest size that fits all.

    Where no size does, that is the largest which fits enough of them.
    """
    paid = [
        [(side, e) for e in scale.accuracies[stop] if _is_paid(scale, method, stop, side, e)]
        for side in scale.base_sides
    ]
    for least in (scale.n_accuracies, scale.least):
        for found in paid:
            if len(found) >= least:
                return found[-scale.n_accuracies :]
    return []


def _is_paid(scale: Table1Scale, method: str, stop: str, side: int, eps: float) -> bool:
    return priced(ImageTask("synthetic", side, 0, method, stop, eps)).seconds <= scale.budget


# -- rows: curves and exponents ----------------------------------------------------------------


def published() -> dict[str, MethodInfo]:
    """Return the methods of the paper's Table 1, with what is proved of them."""
    records = {method.name: solver_class(method.name).about for method in methods()}
    return {name: about for name, about in records.items() if about.is_in_table1}


def any_cost() -> list[Method]:
    """Return the methods that take any cost: no others solve the paper's matrices."""
    return [method for method in methods() if method.costs == "any"]


@dataclass(frozen=True, kw_only=True)
class Row:
    """A method under a stop: its two curves, and the constants they belong to.

    Where operations are not counted (a simplex in foreign code), the curves are of seconds.
    """

    data: str
    method: str
    stop: str
    n: Curve
    without_logs: Fit  # of n, operations divided by the powers of log n that the bound has
    eps: Curve
    eps_without_logs: Fit  # of 1/ε, operations divided by the powers of log 1/ε that it has
    shares: tuple[Line, ...]  # n, ε and measured over bound of each solve, where a bound is known
    base_eps: float
    base_n: float
    is_counted: bool


def rows_of(lines: Sequence[Line], data: Sequence[str]) -> list[Row]:
    """Return the rows of the table, methods in the registry's order."""
    rows = []
    for each in data:
        for method in any_cost():
            for stop in STOPS:
                own = select(lines, data=source_name(each), method=method.name, stop=stop)
                if own:
                    rows.append(_row(source_name(each), method.name, stop, own))
    return rows


def _row(data: str, method: str, stop: str, own: list[Line]) -> Row:
    base_eps = _most_varied(own, "eps", "n")
    base_n = _most_varied(own, "n", "eps")
    is_counted = any(line["operations"] is not None for line in own)
    measure: Measure = operations if is_counted else seconds
    orders = solver_class(method).about.orders
    power = orders[0].log if orders else 0.0

    def without_logs(line: Line) -> float | None:
        value = measure(line)
        return None if value is None else value / math.log(line["n"]) ** power

    def without_eps_logs(line: Line) -> float | None:
        value = measure(line)
        return None if value is None else value / math.log(1 / line["eps"]) ** eps_power

    eps_power = LOGS_OF_EPS.get(method, 0.0)
    found = [(line, share(line)) for line in own] if stop == "paper" else []
    sizes, accuracies = select(own, eps=base_eps), select(own, n=base_n)
    return Row(
        data=data,
        method=method,
        stop=stop,
        n=curve(method, sizes, lambda line: line["n"], measure),
        without_logs=curve(method, sizes, lambda line: line["n"], without_logs).fit,
        eps=curve(method, accuracies, lambda line: 1 / line["eps"], measure),
        eps_without_logs=curve(
            method, accuracies, lambda line: 1 / line["eps"], without_eps_logs
        ).fit,
        shares=tuple(
            {"n": line["n"], "eps": line["eps"], "share": value, "has_ended": True}
            for line, value in found
            if value is not None
        ),
        base_eps=base_eps,
        base_n=base_n,
        is_counted=is_counted,
    )


def _most_varied(own: list[Line], fixed: str, varied: str) -> float:
    """Return the value of one field at which the other takes the most values."""
    values = sorted({line[fixed] for line in own})
    return float(max(values, key=lambda v: len({x[varied] for x in own if x[fixed] == v})))


# -- claims of the paper -----------------------------------------------------------------------

#: A measured exponent agrees with a published one, an upper bound, if it is at most this above.
SLACK = 0.1
#: Powers of log(1/ε) in bounds that the paper's table leaves out with the other logarithms.
LOGS_OF_EPS = {"packing_lp": 1.0}
#: Methods whose published bound is of a subroutine that is replaced here, and by what.
REPLACED = {
    "box_newton": "dense Cholesky factors, n³, in place of nearly linear Laplacian solvers",
}


def statements(rows: Sequence[Row]) -> list[JudgedClaim]:
    """Return the paper's claims: a bound for every method, and that some show n² in practice."""
    found = [
        JudgedClaim(f"{name}: O({about.printed})", "Table 1", _tests(rows, name))
        for name, about in published().items()
    ]
    slower = [row for row in rows if row.stop == "paper" and _is_slower(row.method)]
    text = "some methods with a proof for n^2.5/ε show n²/ε in practice"
    return [*found, JudgedClaim(text, "Section 6", (_in_practice(slower),))]


def _tests(rows: Sequence[Row], method: str) -> tuple[Claim, ...]:
    """Return the tests of a method's bound; one that was not made, where there is no line."""
    own = [row for row in rows if row.stop == "paper" and row.method == method]
    made = tuple(test for row in own for test in bounds(row))
    return made or (Claim(f"{method}: its bound", "the paper's stop", "–", UNMEASURED),)


def bounds(row: Row) -> tuple[Claim, ...]:
    """Compare every solve with the bound of the method; exponents, where no constant is known."""
    if row.method in REPLACED:
        text = f"{row.method}: its bound"
        return (Claim(text, "the paper's stop", REPLACED[row.method], UNTESTED),)
    if row.shares:
        return (_within_bound(row),)
    about = published()[row.method]
    order = about.orders[0]
    measured = f"{row.without_logs} ({row.n.fit} with logarithms)" if order.log else str(row.n.fit)
    eps_text = str(row.eps_without_logs)
    if row.method in LOGS_OF_EPS:
        eps_text += f" ({row.eps.fit} with logarithms)"
    tested = (
        ("n", order.n, row.without_logs, measured, f"ε = {row.base_eps:g}"),
        ("1/ε", order.eps, row.eps_without_logs, eps_text, f"n = {row.base_n:g}"),
    )
    return tuple(
        Claim(
            f"{row.method}: at most ({name})^{limit:.3g}", where, text, at_most(fit, limit + SLACK)
        )
        for name, limit, fit, text, where in tested
    )


def _within_bound(row: Row) -> Claim:
    """Judge the largest ratio of a solve to its bound; its trends are a description."""
    values = [line["share"] for line in row.shares]
    sizes, accuracies = trends(row)
    where = f"{len(values)} solves, n {_span(row.n.x)}, 1/ε {_span(row.eps.x)}"
    measured = (
        f"measured over bound at most {max(values):.2g} (median {np.median(values):.2g}); it "
        f"grows as n^{sizes} and (1/ε)^{accuracies}"
    )
    holds = verdict(max(values) <= 1)
    return Claim(f"{row.method}: operations within the bound", where, measured, holds)


def trends(row: Row) -> tuple[Fit, Fit]:
    """Return how the ratio of solves to their bound grows with n, and with 1/ε."""
    sizes = [line for line in row.shares if line["eps"] == row.base_eps]
    accuracies = [line for line in row.shares if line["n"] == row.base_n]
    return (
        fit_power([line["n"] for line in sizes], [line["share"] for line in sizes]),
        fit_power([1 / line["eps"] for line in accuracies], [x["share"] for x in accuracies]),
    )


def _is_slower(method: str) -> bool:
    return method in published() and published()[method].orders[0].n == 2.5


def _in_practice(rows: Sequence[Row]) -> Claim:
    """Return whether one of the methods has an exponent of n that is close to 2."""
    fits = {row.method: row.without_logs for row in rows if not math.isnan(row.without_logs.slope)}
    named = ", ".join(f"{name} {fit.slope:.2f}" for name, fit in fits.items())
    found = any(within(fit, *SLOPE_N) == HOLDS for fit in fits.values())
    verdict = UNMEASURED if not fits else HOLDS if found else FAILS
    text = "an exponent of n, without logarithms, close to 2"
    return Claim(text, "the paper's stop", named or "–", verdict)


# -- figure of measured over bound -------------------------------------------------------------


def draw_shares(rows: Sequence[Row]) -> Figure:
    """Draw what every solve took as a share of its bound: no point may be right of 1."""
    own = [row for row in rows if row.shares]
    figure: Figure = new_figure(9.0, 1.7 + 0.36 * len(own))
    ax = figure.subplots()
    for place, row in enumerate(own):
        values = [line["share"] for line in row.shares]
        ax.plot(values, [place] * len(values), color=COLOURS[0], marker="|", ms=11, ls="")
        text = f"at most {100 * max(values):.2g} %"
        ax.text(min(values) / 1.4, place, text, ha="right", va="center", fontsize=9)
    ax.axvline(1.0, color="0.25", lw=1.5)
    ax.axvspan(1.0, 4.0, color="0.93", zorder=0)
    ax.text(1.1, -0.7, "refuted", fontsize=9, color="0.3")
    several = len({row.data for row in own}) > 1
    ax.set_yticks(range(len(own)), [_name(row, several) for row in own])
    ax.set_ylim(len(own) - 0.4, -1.1)
    ax.set_xscale("log")
    least = min((line["share"] for row in own for line in row.shares), default=0.1)
    ax.set_xlim(least / 20, 4.0)
    ax.set_xlabel("iterations measured over iterations allowed by the bound (one mark per solve)")
    ax.grid(True, axis="x", color="0.9", lw=0.6)
    ax.spines[["top", "right"]].set_visible(False)
    figure.suptitle("Table 1: every solve beside its bound", x=0.01, ha="left", fontsize=14)
    return figure


def _name(row: Row, several: bool) -> str:
    name = f"{row.method} ({row.data})" if several else row.method
    return name if row.is_counted else f"{name}, time"


# -- the experiment ----------------------------------------------------------------------------


def run(
    setup: ExperimentSetup,
    data: Sequence[str] = ("synthetic",),
    panel: Sequence[str] = AXES,
    scale: Table1Scale | None = None,
) -> Page:
    """Solve what is missing, then fit, tabulate and draw."""
    scale = scale or Table1Scale.of(setup.quick)
    if unknown := [axis for axis in panel if axis not in AXES]:
        raise InvalidProblem(f"panel is {unknown[0]!r}; it must be n or eps.")
    tasks = [
        task
        for each in data
        for method in any_cost()
        for stop in STOPS
        for task in tasks_of(scale, each, method.name, stop, panel, setup.seeds or scale.seeds)
    ]
    lines = setup.solve(tasks, setup.store(KEY))
    arguments = "".join(
        [f" {setup.scale}"]
        + ([f" --data {','.join(Path(d).name for d in data)}"] if data != ("synthetic",) else [])
        + ([f" --panel {','.join(panel)}"] if panel != AXES else [])
        + ([f" --seeds {setup.seeds}"] if setup.seeds else [])
    )
    return write(setup.out, lines, data, f"epsilot reproduce table1{arguments}")


def write(out: Path, lines: Sequence[Line], data: Sequence[str], command: str) -> Page:
    """Write the figure, summary and report from the lines alone."""
    rows = rows_of(lines, data)
    found = statements(rows)
    measured = table(rows, lines)
    shares = write_figure(draw_shares(rows), out, "table1-bounds")
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        Command(command),
        Heading("Measured over bound"),
        Paragraph(_BOUNDS),
        Picture(shares, "Every solve under the papers' stops as a share of its proven bound."),
        Heading("Claims of the paper"),
        Paragraph(count(found)),
        statement_table(found),
        table_of_tests(found, "Every solve beside its bound, under the papers' stops."),
        Heading("Table"),
        measured,
        Paragraph(_READING),
        _what_was_run(rows),
        Paragraph(_EXPONENTS),
        Paragraph(soundness(lines)),
        Heading("Environment"),
        environment_table(lines),
    ]
    title = "Table 1 of the paper, measured"
    publish(out, title, blocks)
    return Page(title, tuple(blocks), tuple(found))


COLUMNS = (
    "method", "stop", "published", "exponent of n", "without logarithms", "at ε", "n",
    "exponent of 1/ε", "at n", "ε", "operations: median (range)", "solves ended",
)  # fmt: skip


def table(rows: Sequence[Row], lines: Sequence[Line]) -> Table:
    """Return the measured table."""
    complexity = {method.name: f"({method.complexity})" for method in methods()}
    complexity |= {name: about.complexity for name, about in published().items()}
    several = len({row.data for row in rows}) > 1
    cells = []
    for row in rows:
        own = select(lines, data=row.data, method=row.method, stop=row.stop)
        ended = sum(line["has_ended"] for line in own)
        unit = "" if row.is_counted else " (time)"
        cells.append(
            (
                f"{row.method} ({row.data})" if several else row.method,
                row.stop,
                complexity[row.method],
                f"{row.n.fit}{unit}",
                f"{row.without_logs}{unit}",
                f"{row.base_eps:g}",
                _span(row.n.x),
                f"{row.eps.fit}{unit}",
                f"{row.base_n:g}",
                _span(sorted(1 / x for x in row.eps.x)),
                _typical(row),
                f"{ended} of {len(own)}",
            )
        )
    return Table(COLUMNS, tuple(cells))


def _what_was_run(rows: Sequence[Row]) -> Table:
    """Return what ends each method under its paper's stop, and what its paper does not print."""
    known = published()
    shown = dict.fromkeys(row.method for row in rows if row.method in known)
    return Table(
        ("method", "ends by", "departs from the paper in"),
        tuple((name, known[name].rule, known[name].departure or "–") for name in shown),
        "What was run under `paper`.",
    )


def _typical(row: Row) -> str:
    """Return median and range at the largest n."""
    sizes = row.n
    if not sizes.x:
        return "–"
    unit = "" if row.is_counted else " s"
    return (
        f"{sizes.median[-1]:.2g}{unit} ({sizes.low[-1]:.2g}–{sizes.high[-1]:.2g}) "
        f"at n = {sizes.x[-1]:g}"
    )


def _span(values: Sequence[float]) -> str:
    if not values:
        return "–"
    return f"{values[0]:.3g}" if len(values) == 1 else f"{values[0]:.3g}–{values[-1]:.3g}"


_INTRODUCTION = (
    "Operations of every method in the registry until an ε-solution of optimal transport between "
    "two images is found, fitted as n^a and as (1/ε)^b by least squares on logarithms. Each "
    "method takes the largest sizes that fit a budget of time, so ranges differ; ε is at most "
    "0.2, since the independent plan is within about 0.3 of the optimum, and nearly any plan "
    "solves easier problems. Made from `solves.jsonl`, one line per solve, by"
)
_BOUNDS = (
    "An upper bound is tested by comparing every solve with it. `epsilot.theory` has the bounds "
    "with the constants of the proofs, corrected where the errata say so; a solve is divided by "
    "what its bound allows at its n, ε and marginals. The claim holds if no ratio is above 1. "
    "AAM and APDAGD are divided by the bound for their own rule, the hybrid method by that of "
    "its version without regularisation. How the ratio grows with n and 1/ε is a description: a "
    "bound may be loose. For `apdrcd`, `dual_extrapolation` and `packing_lp` no constant is "
    "known to us. There the claim holds if the exponents, without the powers of log n and "
    f"log(1/ε) that the bound has, are at most {SLACK} above the published ones. The bound of "
    "`box_newton` is that of nearly linear Laplacian solvers. None of the libraries that we know "
    "has one for these dense, nearly disconnected systems, so it is not tested."
)
_EXPONENTS = (
    "Exponents describe how operations grew over the sizes that were run. They cannot test a "
    "bound, which is a ceiling at every point and not a slope. At these sizes a factor log n "
    "adds 1 / log n, which is 0.15 to 0.4, to the exponent of n. Operations are therefore also "
    "fitted after division by the power of log n that the bound has."
)
_READING = (
    "Published complexities are those behind the paper's Table 1, with their logarithms; in "
    "brackets those of methods that it does not list. Under `paper` a method follows its "
    "published procedure; under `certificate` it stops at a proved gap, and the operations of "
    "the proofs are included. Intervals are at 95 %, over all pairs of marginals. Methods that "
    "solve by foreign code report no operations; their rows are of running time."
)
