"""The colours of a picture, reduced to a few hundred with the share of the picture each has."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from .._types import Matrix, Vector
from ..errors import InvalidProblem
from .pixels import Pixels

#: Levels of each channel in the histogram from which palettes are made.
BINS = 64
_LLOYD_STEPS = 12


@dataclass(frozen=True)
class Palette:
    """Colours in [0, 1]³ and their shares of the picture, which sum to 1."""

    colors: Matrix
    weights: Vector

    def __len__(self) -> int:
        return self.weights.size


def histogram(pixels: Pixels) -> Palette:
    """Return the mean colours of the occupied cells of a 64³ histogram; opacity is mass."""
    size = BINS**3
    mass, sums = np.zeros(size), np.zeros((3, size))
    for _, colors, opacity in pixels.chunks():
        level = np.minimum((colors * BINS).astype(np.intp), BINS - 1)
        cell = (level[:, 0] * BINS + level[:, 1]) * BINS + level[:, 2]
        mass += np.bincount(cell, opacity, size)
        for c in range(3):
            shade = colors[:, c] if opacity is None else colors[:, c] * opacity
            sums[c] += np.bincount(cell, shade, size)
    used = np.flatnonzero(mass > 0)
    if used.size == 0:
        raise InvalidProblem(
            "the picture has no visible pixel; at least one that is not fully transparent is "
            "required (remove its alpha channel)."
        )
    colors = np.ascontiguousarray((sums[:, used] / mass[used]).T)
    return Palette(colors, mass[used] / mass[used].sum())


def clustered(pixels: Pixels, n_colors: int, rng: np.random.Generator) -> Palette:
    """Return at most ``n_colors`` cluster means by Lloyd's algorithm, with the clusters' shares.

    Starts are drawn by the square root of the share: small regions of a picture, which count
    little in the transport, still have colours of their own.
    """
    from scipy.spatial import cKDTree

    cells = histogram(pixels)
    if len(cells) <= n_colors:
        return cells
    chance = np.sqrt(cells.weights)
    first = rng.choice(len(cells), n_colors, replace=False, p=chance / chance.sum())
    colors, weights = cells.colors[np.sort(first)], cells.weights
    for _ in range(_LLOYD_STEPS):
        _, label = cKDTree(colors).query(cells.colors)
        share = np.bincount(label, weights, len(colors))
        sums = [np.bincount(label, weights * x, len(colors)) for x in cells.colors.T]
        kept = share > 0
        share = share[kept]
        colors = np.stack(sums, axis=1)[kept] / share[:, None]
    return Palette(np.ascontiguousarray(colors), share / share.sum())


def sampled(pixels: Pixels, n_colors: int, rng: np.random.Generator) -> Palette:
    """Return the colours of pixels drawn at random; a colour drawn twice counts twice."""
    colors, opacity = pixels.take(np.sort(rng.integers(0, len(pixels), 4 * n_colors)))
    chance = np.ones(len(colors)) if opacity is None else opacity
    if not chance.any():
        return clustered(pixels, n_colors, rng)
    drawn = rng.choice(len(colors), n_colors, p=chance / chance.sum())
    colors, counts = np.unique(colors[drawn], axis=0, return_counts=True)
    return Palette(colors, counts / counts.sum())
