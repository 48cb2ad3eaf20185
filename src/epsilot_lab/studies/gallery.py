"""Draw README's picture: 100,000 points of a spiral, transported to a letter.

python -m epsilot_lab gallery docs/pictures/points.jpg
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath

import epsilot

Array = np.ndarray

NIGHT, TEXT = "#0b0e14", "#c9d1d9"
#: Points whose line from start to end is drawn.
N_LINES = 2500
#: Relative gap that is no more than rounding.
ROUNDING = 1e-14


def galaxy(rng: np.random.Generator, n: int) -> Array:
    """Return points of a spiral with three arms."""
    radius = np.sqrt(rng.random(n)) * 1.15
    angle = 2 * np.pi / 3 * rng.integers(0, 3, n) + 2.6 * radius + 0.28 * rng.normal(size=n)
    scatter = 0.03 * rng.normal(size=(n, 2))
    return np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1) + scatter


def letter(rng: np.random.Generator, n: int) -> Array:
    """Return points inside the letter ε, as tall as the spiral."""
    glyph = TextPath((0, 0), "ε", size=500, prop={"family": "DejaVu Serif", "weight": "bold"})
    outlines = [polygon for polygon in glyph.to_polygons() if len(polygon) > 3]
    corners = np.concatenate(outlines)
    low, high = corners.min(axis=0), corners.max(axis=0)
    kept: list[Array] = []
    while sum(map(len, kept)) < n:
        tried = low + (high - low) * rng.random((n, 2))
        inside = np.zeros(n, dtype=bool)
        for polygon in outlines:
            inside ^= Outline(polygon).contains_points(tried)
        kept.append(tried[inside])
    points = np.concatenate(kept)[:n]
    return (points - 0.5 * (low + high)) * (2.1 / (high - low).max())


def colours(moves: Array) -> Array:
    """Return a colour per displacement: its direction gives the hue, its length the brightness."""
    lengths = np.hypot(*moves.T)
    hue = (np.arctan2(*moves.T[::-1]) / (2 * np.pi)) % 1.0
    rank = lengths / max(float(np.quantile(lengths, 0.98)), 1e-300)
    value = 0.45 + 0.55 * np.clip(rank, 0, 1)
    return np.asarray(hsv_to_rgb(np.stack([hue, np.full_like(hue, 0.72), value], axis=1)))


def draw_points(n: int) -> Figure:
    """Draw points at the start, halfway and at the end, coloured by direction and distance."""
    rng = np.random.default_rng(1)
    X, Y = galaxy(rng, n), letter(rng, n)
    result = epsilot.solve_sample(X, Y, lazy=True, rtol=1e-9)
    arcs = result.plan_operator.tosparse().tocoo()
    X, Y = X[arcs.row], Y[arcs.col]
    shade, order = colours(Y - X), rng.permutation(len(X))
    figure = Figure(figsize=(13.2, 4.9), facecolor=NIGHT)
    axes = figure.subplots(1, 3)
    size = 1.2 * 100_000 / max(n, 20_000)
    for ax, t in zip(axes, (0.0, 0.5, 1.0), strict=True):
        at = (1 - t) * X + t * Y
        if t == 0.5:
            some = order[:N_LINES]
            ways = LineCollection(
                np.stack([X[some], Y[some]], axis=1), colors=shade[some], lw=0.35, alpha=0.35
            )
            ax.add_collection(ways)
        ax.scatter(*at[order].T, s=size, c=shade[order], lw=0, alpha=0.85, rasterized=True)
        ax.set(xlim=(-1.32, 1.32), ylim=(-1.32, 1.32), aspect="equal")
        ax.set_axis_off()
    words = caption(n, result)
    figure.text(0.012, 0.955, words, color=TEXT, fontsize=11, va="top")
    wheel(figure)
    figure.subplots_adjust(0.0, 0.0, 1.0, 0.94, wspace=0.0)
    return figure


def wheel(figure: Figure) -> None:
    """Draw the colour of each direction."""
    ax = figure.add_axes((0.945, 0.83, 0.05, 0.14), projection="polar")
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 181), np.linspace(0, 1, 12))
    hue, value = (angles / (2 * np.pi)) % 1, 0.45 + 0.55 * radii
    shade = hsv_to_rgb(np.stack([hue, np.full_like(hue, 0.72), value], axis=2))
    ax.pcolormesh(angles, radii, shade[:-1, :-1], shading="flat")
    ax.set_axis_off()


def caption(n: int, result: epsilot.Result) -> str:
    """Return the caption: size, arcs and proved gap."""
    arcs = result.plan_operator.tosparse().nnz
    gap = result.gap / result.value
    proved = f"{gap:.0e} of its value" if gap > ROUNDING else "rounding"
    return f"{n:,} points, squared distances, {arcs:,} arcs: a plan proved optimal to {proved}"


def main(argv: Sequence[str] | None = None) -> None:
    """Solve and draw."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("path", type=Path)
    parser.add_argument("--points", type=int, default=100_000)
    options = parser.parse_args(argv)
    figure = draw_points(options.points)
    with mpl.rc_context({"savefig.facecolor": NIGHT}):
        figure.savefig(options.path, dpi=130, facecolor=NIGHT)
    print(f"{options.path}: {options.points:,} points")
