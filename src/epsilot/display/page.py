"""Write the web page of a result: its bounds, convergence and plan, and how to repeat it."""

from __future__ import annotations

import html as markup
import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from .._types import Index, Matrix, Vector
from ..arguments import numeric
from ..errors import InvalidProblem
from ..files import StrPath, check_writable, write_atomically
from ..wording import shown
from . import charts, html, plan_figures
from .plan_samples import MovedMass
from .plotting import AXES, gap_floor, history_columns
from .report import result_lines
from .results import CertifiedResult, CoupledClouds, TransportResult
from .text import (
    accuracy_note,
    clock,
    compile_note,
    cost_words,
    counted,
    distance_note,
    is_counted,
    outward,
)

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure


_STYLE = """
.verdict { padding: 1rem 1.25rem; border-left: 5px solid; border-radius: 4px;
  background: var(--soft); font-size: 1.15rem; max-width: none; overflow-wrap: anywhere }
.verdict strong { display: block } .verdict.good { border-color: var(--good) }
.verdict.bad { border-color: var(--bad) } .good strong { color: var(--good) }
.bad strong { color: var(--bad) }
dl { display: grid; grid-template-columns: minmax(6.5rem, auto) 1fr; gap: .35rem 1.25rem;
  margin: 1rem 0 } dt { color: var(--faint) } dd { margin: 0; overflow-wrap: anywhere }
pre { white-space: pre-wrap; overflow-wrap: anywhere } pre span { white-space: nowrap }
"""
#: Style of every page of a result.
STYLE = charts.STYLE + plan_figures.STYLE + _STYLE


def check_page(path: StrPath) -> None:
    """Raise before the run if a page cannot be written to the path."""
    check_writable(path)
    suffix = Path(path).suffix.lower()
    if suffix not in (".html", ".htm"):
        raise InvalidProblem(
            f"{path} has the file type {suffix.removeprefix('.') or '(none)'}; a report is a web "
            "page (use .html)"
        )


def write_page(
    result: TransportResult,
    path: StrPath,
    points: tuple[ArrayLike, ArrayLike] | None = None,
    command: str | None = None,
) -> None:
    """Write the page of a result atomically."""
    check_page(path)
    text = page_of(result, points, command)
    write_atomically(path, lambda file: file.write(text.encode()))


def page_of(
    result: TransportResult,
    points: tuple[ArrayLike, ArrayLike] | None = None,
    command: str | None = None,
) -> str:
    """Return the page of a result; see :meth:`epsilot.Result.report`."""
    n, m = result.plan_operator.shape
    X, Y = coordinates(result, points)
    moved = MovedMass.of(result)
    verb = "reaches" if result.is_entropic or "KL" in result.quantity else "costs"
    parts = [
        verdict(result, verb),
        *_unit(result),
        html.heading("Convergence"),
        convergence(result),
        html.heading("Transported mass"),
        plan_figures.figures_of(moved, X, Y),
        html.heading("Details of the run"),
        _facts(result, moved),
        html.heading("How to repeat this run"),
        html.command(command or python_call(result)),
    ]
    title = f"{result.quantity[:1].upper()}{result.quantity[1:]}, {n:,}\u00a0×\u00a0{m:,}"
    return html.page(title, "\n".join(parts), style=STYLE)


def _unit(result: TransportResult) -> list[str]:
    """Return a paragraph with the cost in words and the distance, if the cost has a metric."""
    cost = cost_words(result.problem)
    distance = distance_note(result.problem, result.quantity, result.value)
    if cost is None:
        return []
    return [html.paragraph(f"Unit: {cost}{'' if distance is None else f'; {distance}'}.")]


def coordinates(
    result: TransportResult, points: tuple[ArrayLike, ArrayLike] | None
) -> tuple[Matrix, Matrix] | tuple[None, None]:
    """Return the coordinates of sources and targets, from the caller or from the geometry."""
    if points is None:
        known = result.problem.geometry.places
        return (None, None) if known is None else (known.X, known.Y)
    if not isinstance(points, (tuple, list)) or len(points) != 2:
        raise InvalidProblem(
            f"points is {shown(points)}; it must be a pair: the coordinates of sources and targets."
        )
    both = [numeric(x, "points") for x in points]
    both = [x[:, None] if x.ndim == 1 else x for x in both]
    if any(x.ndim != 2 for x in both) or tuple(map(len, both)) != result.plan_operator.shape:
        n, m = result.plan_operator.shape
        raise InvalidProblem(
            f"points have shapes {both[0].shape} and {both[1].shape}; they must have {n} and {m} "
            "rows of coordinates."
        )
    if both[0].shape[1] != both[1].shape[1] or not all(np.isfinite(x).all() for x in both):
        raise InvalidProblem(
            f"points have {both[0].shape[1]} and {both[1].shape[1]} coordinates; both must have "
            "the same number, all finite."
        )
    return both[0], both[1]


# -- the certificate -------------------------------------------------------------------------


def verdict(result: CertifiedResult, verb: str = "costs", plan: str = "plan") -> str:
    """Return the certificate as a sentence that stays true with rounded numbers."""
    lower, upper = outward(result.lower_bound, result.value)
    share = ""
    if result.lower_bound > 0 and result.gap > 0:
        share = f" ({100 * result.gap / result.lower_bound:.2g} % of it)"
    gap = f"{result.gap:.3g}" if result.gap > 0 else "rounding"  # bounds may cross by round-off
    sentence = (
        f"The optimal {result.quantity} is at least {lower}, and the {plan} of this run {verb} at "
        f"most {upper}: no {plan} is better by more than {gap}{share}."
    )
    kind, title = ("good", "Certified") if result.converged else ("bad", "Target not reached")
    exact = accuracy_note(result.quantity, result.value, result.lower_bound).startswith("exact")
    said = "exact to rounding" if exact or result.gap <= 0 else f"gap {gap}"
    title += f": {said} (target {result.target:.3g})"
    if not result.converged:
        sentence += f" Status: {result.status}."
    return (
        f'<p class="verdict {kind}"><strong>{markup.escape(title)}</strong> '
        f"{markup.escape(sentence)}</p>"
    )


# -- convergence -----------------------------------------------------------------------------


def convergence(result: CertifiedResult, units: str = "units of M") -> str:
    """Return charts of the bounds and of the gap, or of the gap alone if it was computed once."""
    axis = "operations" if is_counted(result.work) else "seconds"
    (position,) = history_columns(result, axis)
    if position.size < 2:
        return _allowed_gap(result, units)
    x = charts.AxisScale.of(position, charts.LEFT, charts.WIDTH - charts.RIGHT, is_log=True)
    figures = [_bounds(result, axis, x, units), _gaps(result, axis, x, units)]
    return f'<div class="pictures">{"".join(figures)}</div>'


def _allowed_gap(result: CertifiedResult, units: str) -> str:
    """Return the gap on a line from the lower bound to the largest value that was asked for."""
    gap, target = max(result.gap, 0.0), result.target
    far = max(gap, target) or 1.0
    x = charts.AxisScale(
        -0.02 * far, 1.08 * far, charts.LEFT, plan_figures.LINE_WIDTH - charts.RIGHT
    )
    foot, bar = 66.0, 12.0
    at = float(x(gap))
    name = f"excess over the lower bound ({units})"
    parts = charts.line_axis(x, foot, name, plan_figures.LINE_SPACING)
    allowed = x(np.array([0.0, target]))
    parts.append(charts.band(allowed, np.full(2, 28.0), np.full(2, foot)))
    zero, middle = float(x(0.0)), foot - 8.0 - bar / 2
    parts.append(charts.bars(np.array([zero]), at - zero, foot - 8.0, np.array([-bar]), "from"))
    parts += charts.dots(np.array([[at, middle]]), np.ones(1), 6.0, "to")
    parts.append(charts.label(at + 12.0, foot - 10.0, f"this plan: {gap:.3g}"))
    parts.append(charts.label(float(x(target)), 22.0, f"target: {target:.3g}", "end"))
    alt = f"The gap {gap:.3g} and the target {target:.3g}"
    caption = (
        "The bounds were computed once, at the end of the run. The optimum is between the lower "
        "bound, at 0, and this plan, the orange dot. The shaded range is within the target."
    )
    height = foot + plan_figures.LINE_BOTTOM
    figure = html.figure(charts.drawing(parts, alt, plan_figures.LINE_WIDTH, height), caption)
    return figure.replace("<figure>", '<figure class="wide">', 1)


def _bounds(result: CertifiedResult, axis: str, x: charts.AxisScale, units: str) -> str:
    """Return the chart of both bounds."""
    position, upper, lower = history_columns(result, axis, "upper", "lower")
    y = charts.AxisScale.of((*upper, *lower), charts.HEIGHT - charts.BOTTOM, charts.TOP + 12)
    at = x(position)
    parts = charts.axes(x, y, AXES[axis], f"{result.quantity} ({units})")
    parts.append(charts.band(at, y(lower), y(upper)))
    parts += [charts.curve(at, y(upper), "to"), charts.curve(at, y(lower), "from")]
    caption = f"Upper bound (orange) and lower bound (blue), {position.size} certificates."
    alt = (
        f"The upper bound falls from {upper[0]:.4g} to {upper[-1]:.4g}, the lower bound rises "
        f"from {lower[0]:.4g} to {lower[-1]:.4g}"
    )
    return html.figure(charts.drawing(parts, alt), caption)


def _gaps(result: CertifiedResult, axis: str, x: charts.AxisScale, units: str) -> str:
    """Return the chart of the gap on logarithmic axes."""
    position, gap = history_columns(result, axis, "gap")
    target = result.target
    gap = np.maximum(gap, gap_floor(result))
    shown = (*gap, target) if target > 0 else gap
    y = charts.AxisScale.of(shown, charts.HEIGHT - charts.BOTTOM, charts.TOP + 12, is_log=True)
    parts = charts.axes(x, y, AXES[axis], f"certified gap ({units})")
    if target > 0:
        at = float(y(target))
        parts += [charts.dashed_line(x, at), charts.label(x.start + 6, at - 5, "target")]
    parts.append(charts.curve(x(position), y(gap), "from"))
    alt = f"The gap falls from {gap[0]:.3g} to {gap[-1]:.3g}; the target is {target:.3g}"
    caption = f"Gap between the bounds: from {gap[0]:.3g} to {gap[-1]:.3g}."
    return html.figure(charts.drawing(parts, alt), caption)


# -- details of the run ----------------------------------------------------------------------


def _facts(result: TransportResult, moved: MovedMass) -> str:
    """Return the list of facts about the problem and the run."""
    problem = result.problem
    facts = result_lines(result)
    facts["cost"] = repr(problem.geometry)
    totals = [float(x.sum()) for x in (moved.sent, moved.a, moved.b)]
    facts["mass"] = f"{totals[0]:.6g} moved; sources have {totals[1]:.6g}, targets {totals[2]:.6g}"
    if result.choice is not None:
        facts["method choice"] = result.choice
    if result.options:
        facts["options"] = ", ".join(f"{name} = {value}" for name, value in result.options.items())
    facts["seed"] = str(result.seed)
    facts["problem hash"] = result.problem_hash
    facts["epsilot"] = result.version
    return facts_list(facts)


def facts_list(facts: Mapping[str, str]) -> str:
    """Return labelled values as a list."""
    rows = (
        f"<dt>{markup.escape(name)}</dt><dd>{markup.escape(text)}</dd>"
        for name, text in facts.items()
    )
    return f"<dl>{''.join(rows)}</dl>"


def python_call(result: TransportResult) -> str:
    """Return the Python call that computes this result again from the same data."""
    call = result.problem.geometry.call()
    given = call.keywords | dict(result.asked)
    data = [*call.data, *(_weights(result) if call.has_weights else ())]
    words = [*data, *(f"{key}={value}" for key, value in given.items())]
    load = "import math\n\nimport epsilot" if "math.inf" in given.values() else "import epsilot"
    return f"{load}\n\nepsilot.{call.function}({', '.join(words)})"


def _weights(result: TransportResult) -> list[str]:
    """Return the names of the weight arguments; none if both weights are uniform."""
    problem = result.problem
    is_uniform = (
        np.ptp(w) <= 1e-12 * w.max() and math.isclose(problem.mass * w.sum(), 1.0)
        for w in (problem.p, problem.q)
    )
    return [] if all(is_uniform) else ["a", "b"]


#: Side of the picture of the clouds, in SVG units.
SIDE = 420.0


def write_gromov_page(result: CoupledClouds, path: StrPath, command: str | None = None) -> None:
    """Write the page of a result atomically."""
    check_page(path)
    text = gromov_page(result, command)
    write_atomically(path, lambda file: file.write(text.encode()))


def gromov_page(result: CoupledClouds, command: str | None = None) -> str:
    """Return the page of a result."""
    n, m = result.arcs.shape
    repeat = f"import epsilot\n\nepsilot.solve_gromov(X, Y, method={result.method!r})"
    parts = [
        verdict(result, "reaches", "coupling"),
        html.heading("Convergence"),
        convergence(result, "fourth power of lengths"),
        html.heading("Both clouds"),
        _clouds(result),
        html.heading("Details of the run"),
        facts_list(gromov_lines(result) | {"seed": str(result.seed), "epsilot": result.version}),
        html.heading("How to repeat this run"),
        html.command(command or repeat),
    ]
    title = f"Gromov-Wasserstein, {n:,}\u00a0×\u00a0{m:,}"
    return html.page(title, "\n".join(parts), style=STYLE)


def gromov_lines(result: CoupledClouds) -> dict[str, str]:
    """Return the fields of a result as labelled text."""
    n, m = result.arcs.shape
    return {
        "problem": f"{n} × {m} points",
        "value": f"{result.value:.10g}",
        "lower bound": f"{result.lower_bound:.10g}",
        "gap": f"{result.gap:.3g} (target {result.target:.3g})",
        "method": result.method,
        "work": f"{counted(result.n_ot, 'transport problem')}, {clock(result.seconds)}"
        f"{compile_note(result.compile_seconds)}",
        "status": str(result.status),
    }


def _clouds(result: CoupledClouds) -> str:
    """Return both clouds in one frame, with a caption."""
    caption = (
        "The first cloud (blue) is centred and turned by the rotation or reflection that the "
        "coupling implies; the second (orange) is centred. Lines join coupled points."
    )
    return f'<div class="pictures">{html.figure(clouds_drawing(result), caption)}</div>'


def plot_clouds(result: CoupledClouds, ax: Axes | None = None) -> Figure | SubFigure:
    """Draw both clouds in one frame with matplotlib."""
    from .plan_plots import Shown, draw_coupled

    X, Y = (_plane(Z) * np.array([1.0, -1.0]) for Z in result.aligned())
    arcs = result.arcs
    masses = _masses(arcs.i, arcs.flow, len(X)), _masses(arcs.j, arcs.flow, len(Y))
    sides = [(Z, mass, mass) for Z, mass in zip((X, Y), masses, strict=True)]
    shown = Shown.of(ax)
    draw_coupled(shown.ax, sides, (arcs.i, arcs.j, arcs.flow), ("first, turned", "second"))
    names = "first principal direction", "second principal direction"
    shown.ax.set(xlabel=names[0], ylabel=names[1], aspect="equal")
    shown.ax.set_title(f"Gromov-Wasserstein {result.value:.6g}", loc="left", fontsize=11)
    return shown.figure


def clouds_drawing(result: CoupledClouds) -> str:
    """Return a drawing of the second cloud, and of the first one turned onto it."""
    X, Y = (_plane(Z) for Z in result.aligned())
    both = np.concatenate([X, Y])
    middle, extent = (both.min(axis=0) + both.max(axis=0)) / 2, np.ptp(both, axis=0)
    reach = float(extent.max()) or 1.0
    height = SIDE * (0.1 + 0.9 * min(1.0, float(extent[1]) / reach))
    centre = np.array([SIDE / 2, height / 2])
    X, Y = (centre + 0.9 * SIDE * (Z - middle) / reach for Z in (X, Y))
    arcs = result.arcs
    largest = min(4.0, 0.06 * SIDE / np.sqrt(max(len(X), len(Y))))  # lines stay visible
    parts = charts.arcs(X[arcs.i], Y[arcs.j], arcs.flow)
    for Z, places, kind in ((X, arcs.i, "from"), (Y, arcs.j, "to")):
        parts += charts.dots(Z, _masses(places, arcs.flow, len(Z)), largest, kind)
    alt = "Both clouds in one frame, with lines between points that are coupled"
    return charts.drawing(parts, alt, SIDE, height)


def _plane(Z: Matrix) -> Matrix:
    """Return the first two coordinates, upwards; missing ones are 0."""
    flat = np.zeros((len(Z), 2))
    flat[:, : min(2, Z.shape[1])] = Z[:, :2]
    turned: Matrix = flat * np.array([1.0, -1.0])
    return turned


def _masses(places: Index, flow: Vector, size: int) -> Vector:
    """Return the mass of every point."""
    return np.asarray(np.bincount(places, flow, size), dtype=np.float64)
