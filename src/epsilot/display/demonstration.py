"""The picture of ``epsilot demo``: images, plan, convergence and certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .._types import Matrix
from ..files import StrPath
from .drawable import Drawable, Reportable
from .movement import movement, per_cell
from .plotting import COLOURS, gap_curves, headed, new_figure, written
from .text import clock, operations_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..problems.plan import Plan

PLAN_ENTRIES = 1 << 22  # larger plans are not drawn entry by entry
ARROWS = 24  # along each side of a displacement field


def plot_demo(
    A: Matrix,
    B: Matrix,
    results: Mapping[str, Reportable],
    path: StrPath | None = None,
) -> Figure:
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
    figure.set_layout_engine("constrained", wspace=0.06)
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
    gap_curves(axes[1, 1], results, "operations")
    headed(axes[1, 1], "Certified gap")
    axes[1, 1].set_ylabel("upper − lower bound (units of M)")
    _draw_certificates(axes[1, 2], results)
    for ax in axes[1, 1:]:
        ax.set_box_aspect(1)
    return written(figure, path)


def _draw_images(figure: Figure, left: Axes, right: Axes, A: Matrix, B: Matrix) -> None:
    """Draw the two images on one scale."""
    top = max(A.max(), B.max())
    for ax, image, title in ((left, A, "Source image"), (right, B, "Target image")):
        shown = ax.imshow(1000 * image, cmap="cividis", vmin=0, vmax=1000 * top)
        _picture(ax, title)
        figure.colorbar(shown, ax=ax, shrink=0.8, label="mass per pixel (10⁻³)")


def _picture(ax: Axes, title: str) -> None:
    """Strip axes that show an image to their title."""
    ax.set_title(title, loc="left")
    ax.set_xticks([])
    ax.set_yticks([])


def _draw_displacement(
    figure: Figure, ax: Axes, A: Matrix, B: Matrix, plan: Plan, suffix: str
) -> None:
    """Draw where the mass of each pixel goes on average, over the surplus to be moved.

    Images of many pixels get one arrow for each of about ``ARROWS`` x ``ARROWS`` cells.
    """
    place = _pixels(A.shape)
    mass, moved = movement(place, place, plan)
    cell = max(1, -(-max(A.shape) // ARROWS))
    place, mass, moved = (per_cell(x, A.shape, cell) for x in (mass[:, None] * place, mass, moved))
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


def _pixels(shape: tuple[int, ...]) -> Matrix:
    """Return the places of pixels, row by row."""
    return np.indices(shape).reshape(2, -1).T.astype(np.float64)


def _draw_travel(figure: Figure, ax: Axes, shape: tuple[int, ...], plan: Plan, suffix: str) -> None:
    """Draw how far the mass of each pixel travels on average."""
    mass, moved = movement(_pixels(shape), _pixels(shape), plan)
    steps = np.linalg.norm(moved, axis=1)
    distance = np.divide(steps, mass, where=mass > 0, out=np.zeros_like(mass))
    shown = ax.imshow(distance.reshape(shape), cmap="cividis", vmin=0)
    _picture(ax, f"Mean distance travelled{suffix}")
    figure.colorbar(shown, ax=ax, shrink=0.8, label="pixels")


def _draw_plan(figure: Figure, ax: Axes, plan: Matrix, suffix: str) -> None:
    """Draw the plan's entries on a logarithmic colour scale of five decades."""
    top = np.log10(plan.max())
    exponent = np.log10(np.maximum(plan, plan.max() * 1e-6))
    shown = ax.imshow(exponent, cmap="cividis", vmin=top - 5, vmax=top, interpolation="nearest")
    ax.set_title(f"Transport plan{suffix}", loc="left")
    ax.set_xlabel("target pixel")
    ax.set_ylabel("source pixel")
    figure.colorbar(shown, ax=ax, shrink=0.8, label="log₁₀ mass", extend="min")


def _draw_certificates(ax: Axes, results: Mapping[str, Drawable]) -> None:
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
