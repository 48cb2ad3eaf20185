"""Draw plans, couplings, barycentres and the demo with matplotlib: images, points, or a matrix."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from .._types import Index, Matrix, Vector
from ..files import StrPath
from .charts import diverging_colours
from .plan_figures import coordinate_names
from .plan_samples import (
    LIMITS,
    MovedMass,
    block_masses,
    cell_sums,
    grid_shape,
    line_bins,
    mass_and_displacement,
    principal_plane,
    sampled,
    sampled_arcs,
)
from .plotting import COLOURS, gap_curves, headed, lighten, new_figure, written
from .text import clock, operations_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure, SubFigure

    from ..problems.plan import Plan
    from .results import CertifiedResult, TransportResult


#: Width and height of a figure of a plan, in inches.
SIZE = 6.4, 5.2
#: Width and height of a figure of points on a line, in inches.
LINE_SIZE = 8.0, 4.0
SOURCE, TARGET = COLOURS[0], COLOURS[1]


@dataclass(frozen=True)
class InkTuning:
    """Sizes and strengths of dots, lines and arrows."""

    largest_dot: float = 36.0  # area of the largest dot, in points squared
    ink: float = 9e3  # area of all dots of a side together, in points squared, where they are many
    opaque_lines: int = 80  # lines that are drawn nearly opaque; more of them are fainter
    # Share of the strongest arrow below which a displacement is not drawn.
    weakest_arrow: float = 0.02


TUNING = InkTuning()


class Shown(NamedTuple):
    """Matplotlib axes with the figure that holds them."""

    ax: Axes
    figure: Figure | SubFigure

    @classmethod
    def of(cls, ax: Axes | None, size: tuple[float, float] = SIZE) -> Shown:
        """Return the axes given, or those of a new figure."""
        ax = new_figure(*size).add_subplot() if ax is None else ax
        return cls(ax, ax.figure)


def plot_plan(
    moved: MovedMass, X: Matrix | None, Y: Matrix | None, title: str, ax: Axes | None = None
) -> Figure | SubFigure:
    """Draw where a plan moves mass.

    Parameters
    ----------
    moved
        The plan and its marginals.
    X, Y
        Positions of sources and targets; None if there are none.
    title
        Title of the axes.
    ax
        Matplotlib axes to draw on; a new figure when None.
    """
    if X is None or Y is None:
        shown = Shown.of(ax)
        draw_matrix(shown, moved)
    elif (shape := grid_shape(X)) is not None and grid_shape(Y) is not None:
        shown = Shown.of(ax)
        draw_displacement(shown, moved, X, Y, shape)
    elif X.shape[1] == 1:
        shown = Shown.of(ax, LINE_SIZE)
        _draw_line(shown.ax, moved, X[:, 0], Y[:, 0])
    else:
        shown = Shown.of(ax)
        names = coordinate_names(X.shape[1])
        if X.shape[1] == 3:
            names = coordinate_names(4)
        if X.shape[1] > 2:
            X, Y = principal_plane(X, Y)
        arcs = sampled_arcs(moved.plan, moved.sent)
        sides = (X, moved.a, moved.sent), (Y, moved.b, moved.received)
        draw_coupled(shown.ax, sides, (arcs.i, arcs.j, arcs.times))
        shown.ax.set(xlabel=names[0], ylabel=names[1], aspect="equal")
    shown.ax.set_title(title, loc="left", fontsize=11)
    return shown.figure


def draw_coupled(
    ax: Axes,
    sides: Sequence[tuple[Matrix, Vector, Vector]],
    arcs: tuple[Index, Index, Vector],
    names: tuple[str, str] = ("sources", "targets"),
) -> None:
    """Draw points in the plane with lines between those that are coupled.

    ``sides`` holds the points of each side, their masses, and the masses that take part.
    """
    from matplotlib.collections import LineCollection

    (X, *_), (Y, *_) = sides
    i, j, times = arcs
    shares = np.sqrt(times / times.max())
    opacity = np.clip(TUNING.opaque_lines / times.size, 0.35, 0.8)
    lines = LineCollection(
        [*np.stack([X[i], Y[j]], axis=1)],
        colors=[(0.3, 0.3, 0.3, opacity * (0.3 + 0.7 * share)) for share in shares],
        linewidths=0.4 + 0.8 * shares,
        zorder=1,
    )
    ax.add_collection(lines)
    for (places, has, part), colour, name in zip(sides, (SOURCE, TARGET), names, strict=True):
        some = sampled(has, LIMITS.points)
        largest = min(TUNING.largest_dot, TUNING.ink / some.size)
        top = float(has[some].max(initial=0.0)) or 1.0
        x, y = places[some].T
        if (part[some] < 0.999 * has[some]).any():
            ax.scatter(x, y, largest * has[some] / top, colour, alpha=0.2, lw=0)
        ax.scatter(x, y, largest * part[some] / top, colour, lw=0, label=name, zorder=2)
    legend = ax.legend(loc="best", frameon=False, fontsize=9)
    for handle in legend.legend_handles:
        if handle is not None and hasattr(handle, "set_sizes"):
            handle.set_sizes([24.0])
    ax.autoscale_view()
    lighten(ax)


def _draw_line(ax: Axes, moved: MovedMass, x: Vector, y: Vector) -> None:
    """Draw the histogram of the sources upwards, that of the targets downwards, and arcs."""
    from matplotlib.collections import LineCollection

    bins = line_bins(x), line_bins(y)
    heights = bins[0].heights(x, moved.a), bins[1].heights(y, moved.b)
    top = max(float(h.max()) for h in heights) or 1.0
    space = 0.6 * top
    for own, h, foot, colour, name in (
        (bins[0], heights[0], space, SOURCE, "sources, upwards"),
        (bins[1], -heights[1], -space, TARGET, "targets, downwards"),
    ):
        ax.bar(own.left, h, own.width, bottom=foot, align="edge", color=colour, label=name)
    arcs = sampled_arcs(moved.plan, moved.sent)
    starts = np.column_stack([x[arcs.i], np.full(arcs.i.size, space)])
    ends = np.column_stack([y[arcs.j], np.full(arcs.j.size, -space)])
    shares = np.sqrt(arcs.times / arcs.times.max())
    colours = [(0.35, 0.35, 0.35, 0.15 + 0.45 * share) for share in shares]
    ax.add_collection(LineCollection([*np.stack([starts, ends], axis=1)], colors=colours, lw=0.6))
    reach = top + space
    ax.set(xlabel="position", ylabel="mass per length", ylim=(-1.1 * reach, 1.25 * reach))
    ticks = np.linspace(0.0, top, 3)[1:]
    labels = [f"{tick:.2g}" for tick in ticks]
    ax.set_yticks([*(space + ticks), *(-space - ticks)], [*labels, *labels])
    ax.legend(loc="upper left", frameon=False, fontsize=9, ncols=2)
    lighten(ax)


def draw_displacement(
    shown: Shown, moved: MovedMass, X: Matrix, Y: Matrix, shape: tuple[int, int]
) -> None:
    """Draw the mean displacement of the pixels' mass over source minus target."""
    from matplotlib.colors import LinearSegmentedColormap

    ax, figure = shown
    other = grid_shape(Y) or shape
    if shape == other:
        field = (moved.a - moved.b).reshape(shape)
        reach = float(np.abs(field).max()) or 1.0
        colours = LinearSegmentedColormap.from_list("orange to blue", diverging_colours())
        drawn = ax.imshow(field, cmap=colours, vmin=-reach, vmax=reach)
        label = "source − target mass per pixel"
    else:
        drawn = ax.imshow(moved.a.reshape(shape), cmap="Blues", vmin=0)
        label = "source mass per pixel"
    figure.colorbar(drawn, ax=ax, shrink=0.85, label=label)
    corner, far = X[0], X[-1]
    scale = (np.array(shape) - 1) / np.where(far > corner, far - corner, 1.0)
    X, Y = (X - corner) * scale, (Y - corner) * scale
    mass, steps = mass_and_displacement(X, Y, moved.plan)
    cell = max(1, -(-max(shape) // LIMITS.arrows_per_side))
    place, mass_of, step = (
        cell_sums(x, shape, cell) for x in (mass[:, None] * X, mass[:, None], steps)
    )
    strength = np.linalg.norm(step, axis=1)
    strong = strength > TUNING.weakest_arrow * strength.max(initial=0.0)
    place, step = place[strong] / mass_of[strong], step[strong] / mass_of[strong]
    ax.quiver(
        place[:, 1], place[:, 0], step[:, 1], step[:, 0],
        angles="xy", scale_units="xy", scale=1, width=0.004, color="0.1",
    )  # fmt: skip
    ax.set(xlabel="column", ylabel="row", xlim=(-0.5, shape[1] - 0.5), ylim=(shape[0] - 0.5, -0.5))


def draw_matrix(shown: Shown, moved: MovedMass) -> None:
    """Draw the masses of the plan's entries, or of blocks of them, on a logarithmic scale."""
    from matplotlib.colors import LogNorm
    from matplotlib.ticker import MaxNLocator

    masses, is_all = block_masses(moved.plan)
    n, m = moved.plan.shape
    top = float(masses.max()) or 1.0
    blocks = math.prod(masses.shape) < n * m
    drawn = shown.ax.imshow(
        np.maximum(masses, 1e-4 * top),
        cmap="cividis",
        norm=LogNorm(1e-4 * top, top),
        extent=(-0.5, m - 0.5, n - 0.5, -0.5),
        aspect="equal" if 0.25 <= n / m <= 4 else "auto",
        interpolation="nearest",
    )
    label = "mass per block" if blocks else "mass"
    label += "" if is_all else " (estimated from some rows)"
    shown.figure.colorbar(drawn, ax=shown.ax, shrink=0.85, label=label, extend="min")
    shown.ax.set(xlabel="target j", ylabel="source i")
    for axis in (shown.ax.xaxis, shown.ax.yaxis):
        axis.set_major_locator(MaxNLocator(integer=True))


def plot_points(
    points: Matrix, masses: Vector, title: str, ax: Axes | None = None
) -> Figure | SubFigure:
    """Draw points with masses, by their first two coordinates."""
    shown = Shown.of(ax)
    flat = np.column_stack([points, np.zeros(len(points))])[:, :2]
    areas = TUNING.largest_dot * masses / (float(masses.max()) or 1.0)
    x, y = flat.T
    shown.ax.scatter(x, y, areas, SOURCE, lw=0)
    shown.ax.set(xlabel="x", ylabel="y" if points.shape[1] > 1 else "", aspect="equal")
    shown.ax.set_title(title, loc="left", fontsize=11)
    lighten(shown.ax)
    return shown.figure


def plot_masses(b: Vector, label: str, title: str, ax: Axes | None = None) -> Figure | SubFigure:
    """Draw masses: bars of a vector, pixels of an image."""
    shown = Shown.of(ax)
    if b.ndim == 2:
        drawn = shown.ax.imshow(b, cmap="cividis", vmin=0)
        shown.figure.colorbar(drawn, ax=shown.ax, shrink=0.85, label=label)
        shown.ax.set(xlabel="column", ylabel="row")
    else:
        shown.ax.bar(np.arange(b.size), b.ravel(), 1.0, color=SOURCE)
        shown.ax.set(xlabel="entry", ylabel=label)
        lighten(shown.ax)
    shown.ax.set_title(title, loc="left", fontsize=11)
    return shown.figure


#: Largest plan, in entries, that is drawn entry by entry or in blocks.
MAX_DRAWN_ENTRIES = 1 << 22


def plot_demo(
    A: Matrix,
    B: Matrix,
    results: Mapping[str, TransportResult],
    path: StrPath | None = None,
) -> Figure:
    """Draw two images, the transport between them, its convergence and its certificates.

    Parameters
    ----------
    A, B
        Two images of the same shape and total mass.
    results
        Results by label; the plan of the last one is drawn.
    path
        File to write, of any type that matplotlib writes; None to write none.

    Returns
    -------
    figure
        The matplotlib figure.
    """
    figure = new_figure(13.0, 8.2)
    figure.set_layout_engine("constrained", wspace=0.06)
    axes = figure.subplots(2, 3)
    shown = list(results)[-1]
    suffix = f" ({shown})" if len(results) > 1 else ""
    moved, place = MovedMass.of(results[shown]), _pixels(A.shape)
    _draw_images(figure, axes[0, 0], axes[0, 2], A, B)
    draw_displacement(Shown(axes[0, 1], figure), moved, place, place, A.shape)
    _image_axes(axes[0, 1], f"Mean displacement{suffix}")
    if A.size * B.size <= MAX_DRAWN_ENTRIES:
        draw_matrix(Shown(axes[1, 0], figure), moved)
        axes[1, 0].set_title(f"Transport plan{suffix}", loc="left")
    else:
        _draw_travel(figure, axes[1, 0], A.shape, moved.plan, suffix)
    gap_curves(axes[1, 1], results, "operations")
    headed(axes[1, 1], "Certified gap")
    axes[1, 1].set_ylabel("upper − lower bound (units of M)")
    _draw_certificates(axes[1, 2], results)
    for ax in axes[1, 1:]:
        ax.set_box_aspect(1)
    return written(figure, path)


def _draw_images(figure: Figure, left: Axes, right: Axes, A: Matrix, B: Matrix) -> None:
    """Draw both images on one colour scale."""
    top = max(A.max(), B.max())
    for ax, image, title in ((left, A, "Source image"), (right, B, "Target image")):
        shown = ax.imshow(1000 * image, cmap="cividis", vmin=0, vmax=1000 * top)
        _image_axes(ax, title)
        figure.colorbar(shown, ax=ax, shrink=0.8, label="mass per pixel (10⁻³)")


def _image_axes(ax: Axes, title: str) -> None:
    """Set the title of an image, and remove its ticks."""
    ax.set_title(title, loc="left")
    ax.set_xticks([])
    ax.set_yticks([])


def _pixels(shape: tuple[int, ...]) -> Matrix:
    """Return the coordinates of pixels, row by row."""
    return np.indices(shape).reshape(2, -1).T.astype(np.float64)


def _draw_travel(figure: Figure, ax: Axes, shape: tuple[int, ...], plan: Plan, suffix: str) -> None:
    """Draw the mean distance that each pixel's mass travels."""
    mass, moved = mass_and_displacement(_pixels(shape), _pixels(shape), plan)
    steps = np.linalg.norm(moved, axis=1)
    distance = np.divide(steps, mass, where=mass > 0, out=np.zeros_like(mass))
    shown = ax.imshow(distance.reshape(shape), cmap="cividis", vmin=0)
    _image_axes(ax, f"Mean distance travelled{suffix}")
    figure.colorbar(shown, ax=ax, shrink=0.8, label="pixels")


def _draw_certificates(ax: Axes, results: Mapping[str, CertifiedResult]) -> None:
    """Draw the interval between the bounds of each result as a bar, with its numbers."""
    for k, (label, result) in enumerate(results.items()):
        upper = result.lower_bound + result.gap
        ax.plot(
            [result.lower_bound, upper],
            [-k, -k],
            color=COLOURS[k % len(COLOURS)],
            lw=7,
            solid_capstyle="butt",
            marker="|",
            ms=14,
            mew=2.5,
        )
        ax.annotate(
            f"{label}\n{result.lower_bound:.6g} ≤ OT ≤ {upper:.6g}\n"
            f"gap {result.gap:.3g} in {clock(result.seconds)}, {operations_text(result.work)}",
            (0.0, -k),
            xycoords=("axes fraction", "data"),
            xytext=(0, 12),
            textcoords="offset points",
            fontsize=9,
            linespacing=1.4,
        )
    target = max(result.target for result in results.values())
    ax.set_title(f"Certificates (target gap {target:.3g})", loc="left")
    ax.set_xlabel("transport cost (units of M)")
    ax.set_ylim(0.5 - len(results), 0.9)
    ax.margins(x=0.08)
    ax.set_yticks([])
    ax.locator_params(axis="x", nbins=4)
    ax.spines[["top", "right", "left"]].set_visible(False)
