"""Write the web page of a result: certificate, convergence, transported mass, how to repeat it."""

from __future__ import annotations

import html as markup
import math
from collections.abc import Mapping
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from pathlib import Path

import numpy as np
from numpy.typing import ArrayLike

from .._types import Matrix
from ..arguments import numeric
from ..errors import InvalidProblem
from ..files import StrPath, check_writable, write_atomically
from ..wording import shown
from . import charts, html, plan_figures
from .plotting import AXES, history_columns
from .report import Drawable, Judged, Pageable, result_lines
from .text import cost_words, distance_note, is_counted

_STYLE = """
.verdict { padding: 1rem 1.25rem; border-left: 5px solid; border-radius: 4px;
  background: var(--soft); font-size: 1.15rem; max-width: 60rem; overflow-wrap: anywhere }
.verdict strong { display: block } .verdict.good { border-color: var(--good) }
.verdict.bad { border-color: var(--bad) } .good strong { color: var(--good) }
.bad strong { color: var(--bad) }
dl { display: grid; grid-template-columns: minmax(6.5rem, auto) 1fr; gap: .35rem 1.25rem;
  margin: 1rem 0 } dt { color: var(--faint) } dd { margin: 0; overflow-wrap: anywhere }
pre { white-space: pre-wrap; overflow-wrap: anywhere } pre span { white-space: nowrap }
"""
#: Style of every page of a result.
STYLE = charts.STYLE + plan_figures.STYLE + _STYLE
#: Significant decimal digits that float64 always keeps.
FLOAT64_DIGITS = 15


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
    result: Pageable,
    path: StrPath,
    points: tuple[ArrayLike, ArrayLike] | None = None,
    command: str | None = None,
) -> None:
    """Write the page of a result atomically."""
    check_page(path)
    text = page_of(result, points, command)
    write_atomically(path, lambda file: file.write(text.encode()))


def page_of(
    result: Pageable,
    points: tuple[ArrayLike, ArrayLike] | None = None,
    command: str | None = None,
) -> str:
    """Return the page of a result; see :meth:`epsilot.Result.report`."""
    n, m = result.plan_operator.shape
    X, Y = _coordinates(result, points)
    problem = result.problem
    moved = plan_figures.MovedMass.by(
        result.plan_operator, problem.mass * problem.p, problem.mass * problem.q
    )
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


def _unit(result: Pageable) -> list[str]:
    """Return a paragraph with the cost in words and the distance, if the cost has a metric."""
    cost = cost_words(result.problem)
    distance = distance_note(result.problem, result.quantity, result.value)
    if cost is None:
        return []
    return [html.paragraph(f"Unit: {cost}{'' if distance is None else f'; {distance}'}.")]


def _coordinates(
    result: Pageable, points: tuple[ArrayLike, ArrayLike] | None
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


def verdict(result: Judged, verb: str = "costs", plan: str = "plan") -> str:
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
    title += f": gap {gap} (target {result.target:.3g})"
    if not result.converged:
        sentence += f" Status: {result.status}."
    return (
        f'<p class="verdict {kind}"><strong>{markup.escape(title)}</strong> '
        f"{markup.escape(sentence)}</p>"
    )


def outward(lower: float, upper: float) -> tuple[str, str]:
    """Return both bounds with few digits, the lower rounded down and the upper rounded up.

    Examples
    --------
    >>> outward(0.123456789, 0.125123456)
    ('0.1234', '0.1252')
    """
    size = max(abs(lower), abs(upper))
    if size == 0:
        return "0", "0"
    place = math.floor(math.log10(size)) - FLOAT64_DIGITS + 1
    if upper > lower:
        place = max(place, math.floor(math.log10(upper - lower)) - 1)
    unit = Decimal(1).scaleb(place)
    numbers = (
        Decimal(x).quantize(unit, rounding=way) if abs(x) < 1e25 * float(unit) else Decimal(x)
        for x, way in ((lower, ROUND_FLOOR), (upper, ROUND_CEILING))
    )
    texts = (f"{x:f}" if place + FLOAT64_DIGITS > -5 and size < 1e15 else f"{x:E}" for x in numbers)
    low, high = (x.rstrip("0").rstrip(".") if "." in x and "E" not in x else x for x in texts)
    return low, high


# -- convergence -----------------------------------------------------------------------------


def convergence(result: Drawable, units: str = "units of M") -> str:
    """Return charts of the bounds and of the gap, if there are several certificates."""
    axis = "operations" if is_counted(result.work) else "seconds"
    (position,) = history_columns(result, axis)
    if position.size < 2:
        return html.paragraph(
            "The bounds were computed only once, at the end, so there is no curve to draw."
        )
    x = charts.AxisScale.of(position, charts.LEFT, charts.WIDTH - charts.RIGHT, is_log=True)
    figures = [_bounds(result, axis, x, units), _gaps(result, axis, x, units)]
    return f'<div class="pictures">{"".join(figures)}</div>'


def _bounds(result: Drawable, axis: str, x: charts.AxisScale, units: str) -> str:
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


def _gaps(result: Drawable, axis: str, x: charts.AxisScale, units: str) -> str:
    """Return the chart of the gap on logarithmic axes."""
    position, gap = history_columns(result, axis, "gap")
    target = result.target
    floor = max(0.05 * target, 1e-3 * float(gap.min()), 1e-300)
    gap = np.maximum(gap, floor)
    shown = (*gap, target) if target > 0 else gap
    y = charts.AxisScale.of(shown, charts.HEIGHT - charts.BOTTOM, charts.TOP + 12, is_log=True)
    parts = charts.axes(x, y, AXES[axis], f"certified gap ({units})")
    if target > 0:
        at = float(y(target))
        parts += [charts.dashed_line(x, at), charts.label(x.start + 6, at - 5, "target")]
    parts.append(charts.curve(x(position), y(gap), "from"))
    alt = f"The gap falls from {gap[0]:.3g} to {gap[-1]:.3g}; the target is {target:.3g}"
    caption = f"Gap between the bounds: from {gap[0]:.3g} to {result.gap:.3g}."
    return html.figure(charts.drawing(parts, alt), caption)


# -- details of the run ----------------------------------------------------------------------


def _facts(result: Pageable, moved: plan_figures.MovedMass) -> str:
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


def python_call(result: Pageable) -> str:
    """Return the Python call that computes this result again from the same data."""
    call = result.problem.geometry.call()
    given = call.keywords | dict(result.asked)
    data = [*call.data, *(_weights(result) if call.has_weights else ())]
    words = [*data, *(f"{key}={value}" for key, value in given.items())]
    load = "import math\n\nimport epsilot" if "math.inf" in given.values() else "import epsilot"
    return f"{load}\n\nepsilot.{call.function}({', '.join(words)})"


def _weights(result: Pageable) -> list[str]:
    """Return the names of the weight arguments; none if both weights are uniform."""
    problem = result.problem
    is_uniform = (
        np.ptp(w) <= 1e-12 * w.max() and math.isclose(problem.mass * w.sum(), 1.0)
        for w in (problem.p, problem.q)
    )
    return [] if all(is_uniform) else ["a", "b"]
