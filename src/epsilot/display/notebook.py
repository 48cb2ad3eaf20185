"""Show results in notebooks: value, bounds, the gap as a bar, and a thumbnail of moved mass."""

from __future__ import annotations

import html
import math
from collections.abc import Sequence
from typing import Protocol

import numpy as np

from .._types import Array, Matrix, Vector
from . import charts, plan_figures
from .plan_samples import THUMBNAIL, MovedMass
from .report import Audited
from .results import CertifiedResult, TransportResult
from .text import accuracy_note, clock, compile_note, cost_words, counted, distance_note, outward

#: Style of the cards. Colours are readable on light and on dark paper, and text has the colour of
#: the notebook.
_STYLE = """
.epsilot { --ink: currentColor; --faint: currentColor; --from: #2f86c9; --to: #d9742b;
  --line: color-mix(in srgb, currentColor 25%, transparent); --good: #2a9d6f; --bad: #d9742b;
  display: flex; flex-wrap: wrap; gap: .75rem 1.75rem; align-items: center; box-sizing: border-box;
  max-width: 46rem; padding: .75rem 1rem; border: 1px solid var(--line); border-radius: 8px;
  font: 13px/1.5 system-ui, sans-serif }
.epsilot .words { flex: 1 1 17rem; min-width: 0 }
.epsilot .picture { flex: 0 1 190px; min-width: 130px; max-width: 190px }
.epsilot .title { opacity: .75 } .epsilot .value { font-size: 1.55em; font-weight: 600;
  line-height: 1.3; font-variant-numeric: tabular-nums; overflow-wrap: anywhere }
.epsilot .note { opacity: .75; overflow-wrap: anywhere }
.epsilot .badge { font-weight: 600; color: var(--good) } .epsilot .bad { color: var(--bad) }
.epsilot .bar { position: relative; height: 8px; margin: .45rem 0 .2rem; border-radius: 4px;
  background: var(--line); overflow: hidden }
.epsilot .bar i { position: absolute; left: 0; top: 0; bottom: 0; min-width: 2px;
  background: var(--good) } .epsilot .bar .bad { background: var(--bad) }
.epsilot .bar b { position: absolute; top: 0; bottom: 0; width: 2px; background: currentColor }
.epsilot svg image { image-rendering: pixelated }
.epsilot svg .arrows { fill: none; stroke: #111; stroke-width: 1; stroke-linecap: round }
.epsilot table { border-collapse: collapse; font-variant-numeric: tabular-nums; margin: 0 }
.epsilot td, .epsilot th { text-align: left; padding: .2rem .7rem .2rem 0; vertical-align: top;
  border: 0; background: none } .epsilot thead th { border-bottom: 1px solid var(--line) }
.epsilot .scroll { overflow-x: auto; flex: 1 1 100%; min-width: 0 }
"""
STYLE = charts.STYLE.replace("svg ", ".epsilot svg ") + _STYLE
#: Width and height of small charts, in SVG units.
CHART_SIZE = plan_figures.THUMBNAIL_SIDE, 90.0


class BoundedValue(Protocol):
    """Fields of a distance that its card shows."""

    @property
    def lower(self) -> float: ...  # noqa: D102
    @property
    def upper(self) -> float: ...  # noqa: D102
    @property
    def gap(self) -> float: ...  # noqa: D102


def card(
    title: str,
    value: str,
    notes: Sequence[str],
    *,
    badge: str = "",
    is_good: bool = True,
    bar: str = "",
    picture: str | None = None,
) -> str:
    """Return a card: a title with a badge, a large value, a bar, notes, and a picture."""
    mark = f' <span class="badge{"" if is_good else " bad"}">{html.escape(badge)}</span>'
    words = [
        f'<div><span class="title">{html.escape(title)}</span>{mark if badge else ""}</div>',
        f'<div class="value">{html.escape(value)}</div>',
        bar,
        *(f'<div class="note">{html.escape(note)}</div>' for note in notes if note),
    ]
    side = f'<div class="picture">{picture}</div>' if picture else ""
    return (
        f'<div class="epsilot"><style>{STYLE}</style>'
        f'<div class="words">{"".join(words)}</div>{side}</div>'
    )


def gap_bar(gap: float, target: float) -> str:
    """Return a bar whose whole length is the target, or the gap if that is larger."""
    whole = max(gap, target)
    if not 0 < whole < math.inf:
        return ""
    is_good = gap <= target
    share, mark = 100 * max(gap, 0.0) / whole, 100 * target / whole
    fill = f'<i class="{"" if is_good else "bad"}" style="width:{share:.3g}%"></i>'
    tick = "" if is_good else f'<b style="left:{mark:.3g}%"></b>'
    label = f"gap {gap:.3g}, target {target:.3g}"
    return f'<div class="bar" role="img" aria-label="{label}">{fill}{tick}</div>'


def bounds_notes(result: CertifiedResult) -> list[str]:
    """Return the sentences about the bounds and the gap of a result."""
    lower, upper = outward(result.lower_bound, result.value)
    accuracy = accuracy_note(result.quantity, result.value, result.lower_bound)
    return [
        f"proved: {lower} ≤ optimum ≤ {upper}",
        f"gap {max(result.gap, 0.0):.3g} (target {result.target:.3g})"
        + (f", {accuracy}" if accuracy else ""),
    ]


def judged_card(
    result: CertifiedResult, title: str, notes: Sequence[str] = (), picture: str | None = None
) -> str:
    """Return the card of a result with bounds, a target and a status."""
    status = [] if result.converged else [str(result.status)]
    return card(
        title,
        f"{result.value:.7g}",
        [*bounds_notes(result), *status, *notes],
        badge="certified" if result.converged else "not at the target",
        is_good=result.converged,
        bar=gap_bar(result.gap, result.target),
        picture=picture,
    )


def result_card(result: TransportResult) -> str:
    """Return the card of a result, with a thumbnail of where mass goes."""
    n, m = result.plan_operator.shape
    cost = cost_words(result.problem)
    distance = distance_note(result.problem, result.quantity, result.value)
    about = ", ".join(x for x in (cost, distance) if x is not None)
    reg = f", η = {result.reg:.3g}" if result.reg else ""
    run = f"{result.method}{reg}; {clock(result.seconds)}{compile_note(result.compile_seconds)}"
    title = f"{result.quantity[:1].upper()}{result.quantity[1:]}, {n:,} × {m:,}"
    return judged_card(result, title, [about, run], plan_thumbnail(result))


def distance_card(distance: BoundedValue, result: TransportResult, name: str) -> str:
    """Return the card of a distance, with a thumbnail of the plan that attains it."""
    lower, upper = outward(distance.lower, distance.upper)
    n, m = result.plan_operator.shape
    share = 100 * distance.gap / (distance.upper or 1.0)
    return card(
        f"Wasserstein distance {name}, {n:,} × {m:,}",
        f"{distance.upper:.7g}",
        [
            f"proved: {lower} ≤ distance ≤ {upper}",
            f"gap {distance.gap:.3g}, {share:.2g} % (rtol=1e-9 for the exact distance)"
            if share > 1e-7  # percent
            else "exact to rounding",
            *([] if result.converged else [str(result.status)]),
            f"{result.method}; {clock(result.seconds)}{compile_note(result.compile_seconds)}",
        ],
        badge="certified" if result.converged else "not at the target",
        is_good=result.converged,
        bar=gap_bar(result.gap, result.target),
        picture=plan_thumbnail(result),
    )


def plan_thumbnail(result: TransportResult) -> str | None:
    """Return a small picture of a plan, between its points if they are known; None if none is."""
    known = result.problem.geometry.places
    X, Y = (None, None) if known is None else (known.X, known.Y)
    try:
        moved = MovedMass.of(result, THUMBNAIL)
        return plan_figures.thumbnail(moved, X, Y, THUMBNAIL)
    except (ValueError, MemoryError):  # a plan whose costs were not given to Result.load
        return None


def certificate_card(certificate: Audited) -> str:
    """Return the card of a certificate."""
    lower, upper = outward(certificate.lower, certificate.upper)
    state = "feasible" if certificate.is_feasible else "not feasible, rounded before pricing"
    size = max(abs(certificate.lower), abs(certificate.upper)) or 1.0
    return card(
        "Certificate",
        f"{lower} ≤ optimum ≤ {upper}",
        [
            f"gap {max(certificate.gap, 0.0):.3g}, {100 * max(certificate.gap, 0.0) / size:.2g} % "
            "of the upper bound (the bar)",
            f"plan: {state} (marginal error {certificate.marginal_error:.3g})",
        ],
        badge="feasible" if certificate.is_feasible else "not feasible",
        is_good=certificate.is_feasible,
        bar=gap_bar(certificate.gap, size),
    )


def batch_card(
    value: Vector,
    gap: Vector,
    converged: Array,
    n_refused: int,
    seconds: str,
    matrix: Matrix | None,
) -> str:
    """Return the card of many results: counts, the largest gap, and the values as a picture."""
    known = np.isfinite(value)
    n_done, n = int(converged.sum()), value.size
    notes = []
    if known.any():
        notes.append(f"values from {value[known].min():.6g} to {value[known].max():.6g}")
        notes.append(f"largest certified gap {max(float(gap[known].max()), 0.0):.3g}")
    if n_refused:
        notes.append(f"{counted(n_refused, 'problem')} refused; see .errors")
    return card(
        counted(n, "problem"),
        f"{n_done:,} of {n:,} certified",
        [*notes, seconds],
        bar=gap_bar(n_done, n) if n_done == n else _share_bar(n_done, n),
        picture=_matrix(matrix) if matrix is not None else _histogram(value[known]),
    )


def _share_bar(part: int, whole: int) -> str:
    """Return a bar that is filled to a share."""
    share = 100 * part / max(whole, 1)
    label = f"{part} of {whole}"
    fill = f'<i style="width:{share:.3g}%"></i>'
    return f'<div class="bar" role="img" aria-label="{label}">{fill}</div>'


def _matrix(D: Matrix) -> str | None:
    """Return a matrix of costs as a picture, from dark to light."""
    if not np.isfinite(D).any():
        return None
    D = D[:: -(-D.shape[0] // 128), :: -(-D.shape[1] // 128)]
    low, high = float(np.nanmin(D)), float(np.nanmax(D))
    shares = np.nan_to_num((D - low) / ((high - low) or 1.0))
    content = charts.sequential_png(shares)
    return plan_figures.bitmap(content, D.shape, "Matrix of the transport costs, dark to light")


def _histogram(value: Vector) -> str | None:
    """Return a histogram of values."""
    if value.size < 2:
        return None
    heights, edges = np.histogram(value, min(24, value.size))
    return _bars(heights.astype(np.float64), f"{edges[0]:.3g}", f"{edges[-1]:.3g}", "values")


def _bars(heights: Vector, low: str, high: str, name: str) -> str:
    """Return adjacent bars above a line with its ends labelled."""
    width, height = CHART_SIZE
    foot, step = height - 18.0, width / heights.size
    tall = -(foot - 4.0) * heights / (float(heights.max()) or 1.0)
    parts = [
        charts.bars(np.linspace(0.0, width - step, heights.size), 0.92 * step, foot, tall, "from"),
        charts.label(0.0, height - 4.0, low),
        charts.label(width / 2, height - 4.0, name, "middle"),
        charts.label(width, height - 4.0, high, "end"),
    ]
    return charts.drawing(parts, f"Histogram: {name} from {low} to {high}", width, height)


def masses_picture(b: Array) -> str | None:
    """Return masses as a picture: pixels of an image, or bars of a vector."""
    if b.ndim == 2:
        field = np.asarray(b, np.float64)
        field = field[:: -(-b.shape[0] // 128), :: -(-b.shape[1] // 128)]
        content = charts.sequential_png(field / (float(field.max()) or 1.0))
        return plan_figures.bitmap(content, b.shape, "Masses of the barycentre")
    if b.ndim != 1:
        return None
    starts = np.arange(min(b.size, 60)) * b.size // min(b.size, 60)
    sums = np.add.reduceat(np.asarray(b, np.float64), starts)
    sums /= np.diff(starts, append=b.size)
    return _bars(sums, "0", f"{b.size - 1:,}", "entry")


def points_picture(points: Matrix, masses: Vector) -> str:
    """Return points with masses as a picture."""
    X = np.column_stack([points, np.zeros(len(points))])[:, :2]
    low, extent = X.min(axis=0), np.ptp(X, axis=0)
    unit = (plan_figures.THUMBNAIL_SIDE - 12.0) / (float(extent.max()) or 1.0)
    places = 6.0 + unit * (X - low)
    height = 12.0 + unit * float(extent[1])
    places[:, 1] = height - places[:, 1]
    parts = charts.dots(places, masses, 4.0, "from")
    return charts.drawing(parts, "Points", plan_figures.THUMBNAIL_SIDE, max(height, 24.0))


def table_card(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as a card."""
    head = "".join(f"<th>{html.escape(name)}</th>" for name in columns)
    body = "".join(
        f"<tr>{''.join(f'<td>{html.escape(text)}</td>' for text in row)}</tr>" for row in rows
    )
    return (
        f'<div class="epsilot" style="max-width:none"><style>{STYLE}</style>'
        f'<div class="title">{html.escape(title)}</div><div class="scroll"><table>'
        f"<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table></div></div>"
    )
