"""Draw the picture of ``epsilot demo``: two images, their transport, and the certificates."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

import numpy as np

from .._types import Matrix
from ..files import StrPath
from .plan_plots import Shown, draw_displacement, draw_matrix
from .plan_samples import MovedMass, mass_and_displacement
from .plotting import COLOURS, gap_curves, headed, new_figure, written
from .text import clock, operations_text

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

    from ..problems.plan import Plan
    from .results import CertifiedResult, TransportResult

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
