"""Write the web page of a Gromov-Wasserstein result: bounds, both clouds, how to repeat it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from .._types import Index, Matrix, Vector
from ..files import StrPath, write_atomically
from . import charts, html
from .page import STYLE, check_page, convergence, facts_list, verdict
from .results import CoupledClouds
from .text import clock, compile_note, counted

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

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
    largest = min(4.0, 0.25 * SIDE / np.sqrt(max(len(X), len(Y))))
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
