"""Pictures of runs: certified bounds, comparisons of methods, and the demonstration."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from .._types import Matrix
from ..errors import InvalidProblem
from ..files import StrPath, check_writable, write_atomically
from .drawable import Drawable
from .progress import clock, is_counted, operations_text

if TYPE_CHECKING:
    from ..transport.plan import Plan

# Okabe and Ito's palette, told apart by all common kinds of colour vision.
COLOURS = ("#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#000000")
MARKERS = "os^Dv<>"
AXES = {"operations": "arithmetic operations", "seconds": "solver time (seconds)"}
DPI = 160
LEGEND_COLUMNS = 4
PLAN_ENTRIES = 1 << 22  # larger plans are not drawn entry by entry
ARROWS = 24  # along each side of a displacement field


def plot_convergence(result: Drawable, ax: Any = None) -> Any:
    """Draw the certified bounds of a run against the operations spent.

    The gap asked for is drawn above the final lower bound.

    Parameters
    ----------
    result
        A result with its history.
    ax
        Matplotlib axes to draw on; a new figure when None.

    Returns
    -------
    figure
        The matplotlib figure, ready to be shown or saved.
    """
    figure = new_figure(7.0, 4.3) if ax is None else ax.figure
    ax = figure.add_subplot() if ax is None else ax
    axis = "operations" if is_counted(result.work) else "seconds"
    position, upper, lower = _history(result, axis, "upper", "lower")
    marker = "o" if position.size < 40 else ""
    ax.fill_between(position, lower, upper, color=COLOURS[0], alpha=0.15, linewidth=0)
    ax.plot(position, upper, marker, linestyle="-", color=COLOURS[1], ms=3.5, label="upper bound")
    ax.plot(position, lower, marker, linestyle="-", color=COLOURS[0], ms=3.5, label="lower bound")
    aim = result.lower_bound + result.target
    ax.axhline(aim, color="0.35", ls="--", lw=1, label="lower bound + target")
    ax.set_xscale("log")
    ax.set_xlabel(AXES[axis])
    _label_decades(ax.xaxis)
    ax.set_ylabel(f"{result.quantity} (units of M)")
    _title(ax, f"{result.method}: gap {result.gap:.3g} certified")
    _lighten(ax)
    return figure


def plot_compare(results: Mapping[str, Drawable], path: StrPath | None = None) -> Any:
    """Draw the certified gap of several runs against operations and against seconds.

    Parameters
    ----------
    results
        Results by the label they are to carry.
    path
        File to write, of any type matplotlib knows; None to write none.

    Returns
    -------
    figure
        The matplotlib figure.
    """
    figure = new_figure(11.0, 4.2 + 0.2 * math.ceil(len(results) / LEGEND_COLUMNS))
    left, right = figure.subplots(1, 2, sharey=True)
    labelled = {f"{label}: {result.gap:.2g}": result for label, result in results.items()}
    _gap_curves(left, labelled, "operations")
    _gap_curves(right, labelled, "seconds")
    left.set_ylabel("certified gap (units of M)")
    handles, labels = right.get_legend_handles_labels()
    figure.legend(
        handles,
        labels,
        loc="outside lower center",
        ncols=min(LEGEND_COLUMNS, len(labels)),
        frameon=False,
        fontsize=9,
    )
    return _written(figure, path)


def plot_demo(
    A: Matrix,
    B: Matrix,
    results: Mapping[str, Drawable],
    path: StrPath | None = None,
) -> Any:
    """Draw two images, the transport between them, its convergence and its certificates.

    Parameters
    ----------
    A, B
        Two images of the same shape and total mass.
    results
        Results by the label they are to carry; the last one's plan is shown.
    path
        File to write, of any type matplotlib knows; None to write none.

    Returns
    -------
    figure
        The matplotlib figure.
    """
    figure = new_figure(13.0, 8.2)
    figure.get_layout_engine().set(wspace=0.06)
    axes = figure.subplots(2, 3)
    shown = list(results)[-1]
    plan = results[shown].plan_operator
    suffix = f" ({shown})" if len(results) > 1 else ""
    _draw_images(figure, axes[0, 0], axes[0, 2], A, B)
    _draw_displacement(figure, axes[0, 1], A, B, plan, suffix)
    if A.size * B.size <= PLAN_ENTRIES:
        _draw_plan(figure, axes[1, 0], plan.toarray(), suffix)
    else:
        _draw_travel(figure, axes[1, 0], A.shape, plan, suffix)
    _gap_curves(axes[1, 1], results, "operations")
    _title(axes[1, 1], "Certified gap")
    axes[1, 1].set_ylabel("upper − lower bound (units of M)")
    _draw_certificates(axes[1, 2], results)
    for ax in axes[1, 1:]:
        ax.set_box_aspect(1)
    return _written(figure, path)


def save_convergence(result: Drawable, path: StrPath) -> None:
    """Write the picture of `plot_convergence` to a file of any type matplotlib knows."""
    _written(plot_convergence(result), path)


def check_picture(path: StrPath) -> None:
    """Raise at once when a picture could not be written to a path."""
    figure = new_figure(1.0, 1.0)
    check_writable(path)
    _picture_format(figure, path)


def new_figure(width: float, height: float) -> Any:
    """Return a figure that belongs to no window and no global state."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise InvalidProblem(
            "a picture was asked for, and drawing requires matplotlib "
            "(run: pip install epsilot[plot])"
        ) from error
    return Figure(figsize=(width, height), layout="constrained")


def _picture_format(figure: Any, path: StrPath) -> str:
    """Return the file type a picture's name asks for."""
    suffix = Path(path).suffix.lower().removeprefix(".")
    known = figure.canvas.get_supported_filetypes()
    if suffix not in known:
        raise InvalidProblem(
            f"{path} has the file type {suffix or '(none)'}; a picture must be one of "
            f"{', '.join(sorted(known))} (use .png)"
        )
    return suffix


def _written(figure: Any, path: StrPath | None) -> Any:
    """Write a figure when a path is given, and return it."""
    if path is not None:
        kind = _picture_format(figure, path)
        write_atomically(path, lambda file: figure.savefig(file, format=kind, dpi=DPI))
    return figure


def _title(ax: Any, text: str) -> None:
    """Put a title above axes, and the legend between the two."""
    ax.set_title(text, loc="left", pad=24)
    legend = ax.legend(
        loc="lower left",
        bbox_to_anchor=(0.0, 1.0),
        borderaxespad=0.2,
        ncols=3,
        frameon=False,
        fontsize=9,
        columnspacing=1.2,
        handlelength=1.6,
    )
    legend.set_in_layout(False)


def _label_decades(axis: Any) -> None:
    """Label a logarithmic axis at powers of ten, and at 2 and 5 times them where it is short."""
    from matplotlib.ticker import LogFormatterSciNotation, LogLocator, NullFormatter

    low, high = axis.get_view_interval()
    subs = (1.0, 2.0, 5.0) if high < 100 * low else (1.0,)
    axis.set_major_locator(LogLocator(subs=subs))
    axis.set_major_formatter(LogFormatterSciNotation(minor_thresholds=(np.inf, np.inf)))
    axis.set_minor_formatter(NullFormatter())


def _lighten(ax: Any) -> None:
    """Give axes a light grid and no box."""
    ax.grid(True, which="major", color="0.9", lw=0.6)
    ax.set_axisbelow(True)
    ax.spines[["top", "right"]].set_visible(False)


def _history(result: Drawable, *names: str) -> list[Matrix]:
    """Return columns of the history where they are finite and the first is positive."""
    table = np.array(
        [[float(getattr(record, name)) for name in names] for record in result.history]
    ).reshape(-1, len(names))
    table = table[np.isfinite(table).all(axis=1) & (table[:, 0] > 0)]
    return [np.asarray(column) for column in table.T]


def _gap_curves(ax: Any, results: Mapping[str, Drawable], axis: str) -> None:
    """Draw each run's gap on logarithmic axes, those too small to compare at the foot."""
    target = max(result.target for result in results.values())
    floor = max(0.05 * target, 1e-300)
    for k, (label, result) in enumerate(results.items()):
        if axis == "operations" and not is_counted(result.work):
            continue
        position, gap = _history(result, axis, "gap")
        ax.plot(
            position,
            np.maximum(gap, floor),
            marker=MARKERS[(k + k // len(COLOURS)) % len(MARKERS)],
            color=COLOURS[k % len(COLOURS)],
            linestyle=("-", "--", ":")[k // len(COLOURS) % 3],
            ms=4,
            lw=1.4,
            label=label,
        )
        if gap.size and gap[-1] < floor:
            ax.annotate(
                f"{gap[-1]:.1g}",
                (position[-1], floor),
                xytext=(6, 0),
                textcoords="offset points",
                va="center",
                fontsize=8,
            )
    ax.axhline(max(target, floor), color="0.35", ls="--", lw=1, label="target")
    ax.set_xscale("log")
    ax.set_yscale("log")
    ax.set_xlabel(AXES[axis])
    _label_decades(ax.xaxis)
    _label_decades(ax.yaxis)
    _lighten(ax)


def _draw_images(figure: Any, left: Any, right: Any, A: Matrix, B: Matrix) -> None:
    """Draw the two images on one scale."""
    top = max(A.max(), B.max())
    for ax, image, title in ((left, A, "Source image"), (right, B, "Target image")):
        shown = ax.imshow(1000 * image, cmap="cividis", vmin=0, vmax=1000 * top)
        _picture(ax, title)
        figure.colorbar(shown, ax=ax, shrink=0.8, label="mass per pixel (10⁻³)")


def _picture(ax: Any, title: str) -> None:
    """Strip axes that show an image to their title."""
    ax.set_title(title, loc="left")
    ax.set_xticks([])
    ax.set_yticks([])


def _draw_displacement(figure: Any, ax: Any, A: Matrix, B: Matrix, plan: Plan, suffix: str) -> None:
    """Draw where the mass of each pixel goes on average, over the surplus to be moved.

    Images of many pixels get one arrow for each of about ``ARROWS`` x ``ARROWS`` cells.
    """
    place, mass, moved = _movement(A.shape, plan)
    cell = max(1, -(-max(A.shape) // ARROWS))
    place, mass, moved = (_per_cell(x, A.shape, cell) for x in (mass[:, None] * place, mass, moved))
    place = np.divide(place, mass[:, None], where=mass[:, None] > 0, out=np.zeros_like(place))
    strength = np.linalg.norm(moved, axis=1)
    drawn = strength > 0.05 * strength.max(initial=0.0)
    step = np.divide(moved, mass[:, None], where=mass[:, None] > 0, out=np.zeros_like(moved))
    height, width = A.shape
    surplus = 1000 * (A - B)
    reach = np.abs(surplus).max() or 1.0
    shown = ax.imshow(surplus, cmap="PuOr_r", vmin=-reach, vmax=reach)
    ax.quiver(
        place[drawn, 1],
        place[drawn, 0],
        step[drawn, 1],
        step[drawn, 0],
        angles="xy",
        scale_units="xy",
        scale=1,
        width=0.004,
        color="0.1",
    )
    ax.set_xlim(-0.5, width - 0.5)
    ax.set_ylim(height - 0.5, -0.5)
    _picture(ax, f"Mean displacement{suffix}")
    figure.colorbar(shown, ax=ax, shrink=0.8, label="source − target mass (10⁻³)")


def _movement(shape: tuple[int, ...], plan: Plan) -> tuple[Matrix, Matrix, Matrix]:
    """Return the place and the mass of each pixel, and its mass times its mean step."""
    place = np.indices(shape).reshape(2, -1).T.astype(np.float64)
    mass, *totals = (plan @ np.stack([np.ones(len(place)), *place.T], axis=1)).T
    return place, mass, np.stack(totals, axis=1) - mass[:, None] * place


def _per_cell(x: Matrix, shape: tuple[int, ...], cell: int) -> Matrix:
    """Sum a field over square cells of pixels."""
    if cell == 1:
        return x
    height, width = (-(-side // cell) * cell for side in shape)
    field = x.reshape(*shape, -1)
    padded = np.zeros((height, width, field.shape[-1]))
    padded[: shape[0], : shape[1]] = field
    cells = padded.reshape(height // cell, cell, width // cell, cell, -1).sum(axis=(1, 3))
    return np.asarray(cells.reshape(-1, *x.shape[1:]))


def _draw_travel(figure: Any, ax: Any, shape: tuple[int, ...], plan: Plan, suffix: str) -> None:
    """Draw how far the mass of each pixel travels on average."""
    _, mass, moved = _movement(shape, plan)
    steps = np.linalg.norm(moved, axis=1)
    distance = np.divide(steps, mass, where=mass > 0, out=np.zeros_like(mass))
    shown = ax.imshow(distance.reshape(shape), cmap="cividis", vmin=0)
    _picture(ax, f"Mean distance travelled{suffix}")
    figure.colorbar(shown, ax=ax, shrink=0.8, label="pixels")


def _draw_plan(figure: Any, ax: Any, plan: Matrix, suffix: str) -> None:
    """Draw the plan's entries on a logarithmic colour scale of five decades."""
    top = np.log10(plan.max())
    exponent = np.log10(np.maximum(plan, plan.max() * 1e-6))
    shown = ax.imshow(exponent, cmap="cividis", vmin=top - 5, vmax=top, interpolation="nearest")
    ax.set_title(f"Transport plan{suffix}", loc="left")
    ax.set_xlabel("target pixel")
    ax.set_ylabel("source pixel")
    figure.colorbar(shown, ax=ax, shrink=0.8, label="log₁₀ mass", extend="min")


def _draw_certificates(ax: Any, results: Mapping[str, Drawable]) -> None:
    """Draw each bracket of the true value as a bar, with its numbers."""
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
