"""Draw large exact plans: 100,000 points, and one photograph that becomes another.

    python -m epsilot_lab gallery points docs/pictures/points.jpg
    python -m epsilot_lab gallery morph docs/pictures/morph.jpg

``--size`` is the number of points, or of pixels along a side. The photographs are those that
scikit-learn ships; where they are not installed, two are drawn.
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import hsv_to_rgb
from matplotlib.figure import Figure
from matplotlib.path import Path as Outline
from matplotlib.textpath import TextPath
from scipy.ndimage import gaussian_filter, zoom

import epsilot

Array = np.ndarray

NIGHT, TEXT = "#0b0e14", "#c9d1d9"
#: Points whose way is drawn.
WAYS = 2500
#: Share of a photograph's light that every pixel has at least: black has a colour too.
FLOOR = 0.02
#: Relative gap that is no more than rounding.
ROUNDING = 1e-14
#: Moments of a morph.
TIMES = (0.0, 0.2, 0.4, 0.6, 0.8, 1.0)


# -- points ------------------------------------------------------------------------------------


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
    """Return a colour for every displacement: its direction is the hue, its length the light."""
    lengths = np.hypot(*moves.T)
    hue = (np.arctan2(*moves.T[::-1]) / (2 * np.pi)) % 1.0
    rank = lengths / max(float(np.quantile(lengths, 0.98)), 1e-300)
    value = 0.45 + 0.55 * np.clip(rank, 0, 1)
    return np.asarray(hsv_to_rgb(np.stack([hue, np.full_like(hue, 0.72), value], axis=1)))


def draw_points(n: int) -> Figure:
    """Draw points before, on the way and after, coloured by where they go and how far."""
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
            some = order[:WAYS]
            ways = LineCollection(
                np.stack([X[some], Y[some]], axis=1), colors=shade[some], lw=0.35, alpha=0.35
            )
            ax.add_collection(ways)
        ax.scatter(*at[order].T, s=size, c=shade[order], lw=0, alpha=0.85, rasterized=True)
        ax.set(xlim=(-1.32, 1.32), ylim=(-1.32, 1.32), aspect="equal")
        ax.set_axis_off()
    words = caption(f"{n:,} points", result)
    figure.text(0.012, 0.955, words, color=TEXT, fontsize=11, va="top")
    wheel(figure)
    figure.subplots_adjust(0.0, 0.0, 1.0, 0.94, wspace=0.0)
    return figure


def wheel(figure: Figure) -> None:
    """Draw which colour means which direction."""
    ax = figure.add_axes((0.945, 0.83, 0.05, 0.14), projection="polar")
    angles, radii = np.meshgrid(np.linspace(0, 2 * np.pi, 181), np.linspace(0, 1, 12))
    hue, value = (angles / (2 * np.pi)) % 1, 0.45 + 0.55 * radii
    shade = hsv_to_rgb(np.stack([hue, np.full_like(hue, 0.72), value], axis=2))
    ax.pcolormesh(angles, radii, shade[:-1, :-1], shading="flat")
    ax.set_axis_off()


# -- photographs -------------------------------------------------------------------------------


def photographs(side: int) -> tuple[Array, Array]:
    """Return two square pictures of (side, side, 3) numbers from 0 to 1."""
    try:
        from sklearn.datasets import load_sample_image

        pictures = [
            np.asarray(load_sample_image(name)) / 255.0 for name in ("china.jpg", "flower.jpg")
        ]
    except ImportError:
        x, y = np.indices((64, 64)) / 64
        pictures = [np.stack([x, y, 1 - x], axis=2), np.stack([1 - y, x * y, y], axis=2)]
    return square(pictures[0], side), square(pictures[1], side)


def square(picture: Array, side: int) -> Array:
    """Return the middle of a picture, averaged to a side."""
    short = min(picture.shape[:2])
    top, left = ((length - short) // 2 for length in picture.shape[:2])
    middle = picture[top : top + short, left : left + short]
    factor = side / short
    if factor < 1:
        middle = gaussian_filter(middle, (0.4 / factor, 0.4 / factor, 0))
    return np.clip(zoom(middle, (factor, factor, 1), order=1)[:side, :side], 0, 1)


def light(picture: Array) -> Array:
    """Return the mass of every pixel: its luminance, and a little."""
    return np.asarray(picture @ np.array([0.2126, 0.7152, 0.0722]) + FLOOR)


def splat(at: Array, carried: Array, side: int) -> Array:
    """Return a picture of what is carried to places between pixels, shared by the nearest four."""
    out = np.zeros((side + 1, side + 1, carried.shape[1]))
    cell = np.minimum(at.astype(int), side - 1)
    rest = at - cell
    for down in (0, 1):
        for right in (0, 1):
            share = np.abs(1 - down - rest[:, 0]) * np.abs(1 - right - rest[:, 1])
            np.add.at(out, (cell[:, 0] + down, cell[:, 1] + right), share[:, None] * carried)
    return out[:side, :side]


def frame(A: Array, B: Array, arcs: Any, t: float) -> Array:
    """Return the picture at a time: light and colour on the way from a pixel to another."""
    side = len(A)
    if t in (0.0, 1.0):
        return B if t else A
    p, q = light(A), light(B)
    mass = arcs.data * ((1 - t) * p.sum() + t * q.sum())
    hues = [(x / m[..., None]).reshape(-1, 3) for x, m in ((A, p), (B, q))]
    carried = mass[:, None] * ((1 - t) * hues[0][arcs.row] + t * hues[1][arcs.col])
    here, there = (np.stack(np.divmod(x, side), axis=1) for x in (arcs.row, arcs.col))
    drawn = splat((1 - t) * here + t * there, carried, side)
    return np.clip(gaussian_filter(drawn, (0.9, 0.9, 0)), 0, 1)


def draw_morph(side: int) -> Figure:
    """Draw a photograph that becomes another, along the arcs of the plan between their light."""
    A, B = photographs(side)
    p, q = (light(x) / light(x).sum() for x in (A, B))
    result = epsilot.solve_grid(p, q, metric="sqeuclidean", rtol=1e-6)
    arcs = result.plan_operator.tosparse().tocoo()
    figure = Figure(figsize=(13.2, 2.75), facecolor=NIGHT)
    axes = figure.subplots(1, len(TIMES))
    for ax, t in zip(axes, TIMES, strict=True):
        ax.imshow(frame(A, B, arcs, t), interpolation="nearest")
        ax.set_title(f"t = {t:g}", color=TEXT, fontsize=9, pad=3)
        ax.set_axis_off()
    words = caption(f"{side} × {side} pixels", result)
    figure.text(0.008, 0.98, words, color=TEXT, fontsize=10, va="top")
    figure.subplots_adjust(0.005, 0.01, 0.995, 0.83, wspace=0.03)
    return figure


# -- both --------------------------------------------------------------------------------------


def caption(what: str, result: epsilot.Result) -> str:
    """Return what a picture says of its plan."""
    arcs = result.plan_operator.tosparse().nnz
    gap = result.gap / result.value
    proved = f"{gap:.0e} of its value" if gap > ROUNDING else "rounding"
    return f"{what}, squared distances, {arcs:,} arcs: a plan proved optimal to {proved}"


DRAWN = {"points": (draw_points, 100_000), "morph": (draw_morph, 256)}


def main(argv: Sequence[str] | None = None) -> None:
    """Solve and draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("what", choices=DRAWN)
    parser.add_argument("path", type=Path)
    parser.add_argument("--size", type=int)
    options = parser.parse_args(argv)
    draw, size = DRAWN[options.what]
    figure = draw(options.size or size)
    with mpl.rc_context({"savefig.facecolor": NIGHT}):
        figure.savefig(options.path, dpi=130, facecolor=NIGHT)
    print(f"{options.path}: {options.what} of size {options.size or size}")
