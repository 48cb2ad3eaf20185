"""Pictures as arrays: their pixels, their palettes, and maps of colour that vary in place."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from .._types import Array, Index, Matrix, Vector
from ..errors import InvalidProblem


@dataclass(frozen=True)
class PictureTuning:
    """Sizes and tolerances of palettes and affine colour maps."""

    # Pixels converted to floats at a time, so that no picture is held in floats as a whole.
    chunk_pixels: int = 1 << 18
    histogram_levels: int = 64  # levels per channel of the histogram from which palettes are made
    lloyd_steps: int = 12  # steps of Lloyd's algorithm that cluster a palette
    # Pixels of the reduced picture on which affine maps are fitted, at most.
    max_fitted_pixels: int = 1 << 19
    # Ridge penalty of the fit: below this variance of colour a window is treated as flat.
    flat_variance: float = 0.05**2
    # Weight of a fully transparent pixel, so that windows without opaque pixels have a mean.
    min_opacity: float = 1e-3


TUNING = PictureTuning()

#: Largest value of a channel by data type.
_DEPTHS = {"uint8": 255.0, "uint16": 65535.0}


@dataclass(frozen=True)
class Pixels:
    """An (n, channels) view of a picture: one or three colour channels, then opacity."""

    table: Array
    shape: tuple[int, ...]

    @classmethod
    def of(cls, image: object, name: str) -> Pixels:
        """Check a picture that is given as an array."""
        try:
            array = np.asarray(image)
        except ValueError:  # ragged
            array = np.asarray(None)
        channels = array.shape[2] if array.ndim == 3 else 1
        if array.ndim not in (2, 3) or not 1 <= channels <= 4 or array.size == 0:
            raise InvalidProblem(
                f"{name} has shape {array.shape}; a picture must be (height, width) or (height, "
                "width, channels) with 1 to 4 channels."
            )
        if np.ma.is_masked(image):
            raise InvalidProblem(
                f"{name} has masked pixels; every pixel must be a number (fill them)."
            )
        if array.dtype.name not in _DEPTHS and array.dtype.kind != "f":
            raise InvalidProblem(
                f"{name} has values of type {array.dtype}; a picture must hold uint8, uint16 "
                "or floats in [0, 1] (convert it)."
            )
        if array.dtype.kind == "f" and not (array.min() >= 0 and array.max() <= 1):
            raise InvalidProblem(
                f"{name} holds NaN or values outside [0, 1]; float pictures must be in [0, 1] "
                "(divide by the largest value)."
            )
        return cls(array.reshape(-1, channels), array.shape)

    def __len__(self) -> int:
        return len(self.table)

    @property
    def is_grey(self) -> bool:
        """Tell whether there is only one colour channel."""
        return bool(self.table.shape[1] < 3)

    @property
    def has_alpha(self) -> bool:
        """Tell whether the last channel is opacity."""
        return bool(self.table.shape[1] % 2 == 0)

    def chunks(self) -> Iterator[tuple[slice, Matrix, Vector | None]]:
        """Yield slices, their colours (k, 3) as float32 in [0, 1], and their opacity or None."""
        for start in range(0, len(self), TUNING.chunk_pixels):
            where = slice(start, min(start + TUNING.chunk_pixels, len(self)))
            yield where, *self.take(where)

    def take(self, where: slice | Index) -> tuple[Matrix, Vector | None]:
        """Return colours and opacity of some pixels."""
        part = self.table[where].astype(np.float32)
        part /= np.float32(_DEPTHS.get(self.table.dtype.name, 1.0))
        colors = np.ascontiguousarray(
            np.repeat(part[:, :1], 3, axis=1) if self.is_grey else part[:, :3]
        )
        return colors, part[:, -1] if self.has_alpha else None  # type: ignore[return-value]

    def blank(self, is_grey: bool) -> Pixels:
        """Return a picture of the same size, depth and opacity without colours."""
        channels = (1 if is_grey else 3) + self.has_alpha
        table = np.empty((len(self), channels), self.table.dtype)
        if self.has_alpha:
            table[:, -1] = self.table[:, -1]
        has_axis = len(self.shape) == 3 or channels > 1
        return Pixels(table, (*self.shape[:2], channels) if has_axis else self.shape)

    def put(self, where: slice, colors: Matrix) -> None:
        """Write colours in [0, 1], rounded to the depth of the picture."""
        depth = _DEPTHS.get(self.table.dtype.name)
        values = colors.mean(axis=1, keepdims=True) if self.is_grey else colors
        values = np.clip(values, 0, 1)
        if depth is not None:
            values = np.rint(values * np.float32(depth))
        self.table[where, : values.shape[1]] = values

    @property
    def image(self) -> Array:
        """The picture as an array."""
        return self.table.reshape(self.shape)


# -- palettes -----------------------------------------------------------------------------------


@dataclass(frozen=True)
class Palette:
    """Colours in [0, 1]³ and their shares of the picture, which sum to 1."""

    colors: Matrix
    weights: Vector

    def __len__(self) -> int:
        return self.weights.size


def histogram(pixels: Pixels) -> Palette:
    """Return the mean colours of the occupied cells of a 64³ histogram, weighted by opacity."""
    size = TUNING.histogram_levels**3
    mass, sums = np.zeros(size), np.zeros((3, size))
    for _, colors, opacity in pixels.chunks():
        level = np.minimum(
            (colors * TUNING.histogram_levels).astype(np.intp), TUNING.histogram_levels - 1
        )
        cell = (
            level[:, 0] * TUNING.histogram_levels + level[:, 1]
        ) * TUNING.histogram_levels + level[:, 2]
        mass += np.bincount(cell, opacity, size)
        for c in range(3):
            shade = colors[:, c] if opacity is None else colors[:, c] * opacity
            sums[c] += np.bincount(cell, shade, size)
    used = np.flatnonzero(mass > 0)
    if used.size == 0:
        raise InvalidProblem(
            "the picture has no visible pixel; at least one pixel must not be fully transparent "
            "(remove the alpha channel)."
        )
    colors = np.ascontiguousarray((sums[:, used] / mass[used]).T)
    return Palette(colors, mass[used] / mass[used].sum())


def clustered(pixels: Pixels, n_colors: int, rng: np.random.Generator) -> Palette:
    """Return at most ``n_colors`` cluster means by Lloyd's algorithm, with the clusters' shares.

    Initial means are drawn with probabilities proportional to the square root of the share, so that
    small regions of a picture also get colours.
    """
    from scipy.spatial import cKDTree

    cells = histogram(pixels)
    if len(cells) <= n_colors:
        return cells
    chance = np.sqrt(cells.weights)
    first = rng.choice(len(cells), n_colors, replace=False, p=chance / chance.sum())
    colors, weights = cells.colors[np.sort(first)], cells.weights
    for _ in range(TUNING.lloyd_steps):
        _, label = cKDTree(colors).query(cells.colors)
        share = np.bincount(label, weights, len(colors))
        sums = [np.bincount(label, weights * x, len(colors)) for x in cells.colors.T]
        kept = share > 0
        share = share[kept]
        colors = np.stack(sums, axis=1)[kept] / share[:, None]
    return Palette(np.ascontiguousarray(colors), share / share.sum())


def sampled(pixels: Pixels, n_colors: int, rng: np.random.Generator) -> Palette:
    """Return the colours of random pixels, weighted by how often each was drawn."""
    colors, opacity = pixels.take(np.sort(rng.integers(0, len(pixels), 4 * n_colors)))
    chance = np.ones(len(colors)) if opacity is None else opacity
    if not chance.any():
        return clustered(pixels, n_colors, rng)
    drawn = rng.choice(len(colors), n_colors, p=chance / chance.sum())
    colors, counts = np.unique(colors[drawn], axis=0, return_counts=True)
    return Palette(colors, counts / counts.sum())


# -- smoothing ----------------------------------------------------------------------------------


def reduced(pixels: Pixels) -> tuple[Matrix, Vector]:
    """Return mean colours (h, w, 3) and opacities (h, w) of equal rectangles of a picture."""
    height, width = pixels.shape[:2]
    factor = max(1.0, math.sqrt(height * width / TUNING.max_fitted_pixels))
    h, w = max(1, round(height / factor)), max(1, round(width / factor))
    rows = np.arange(h + 1) * height // h
    cols = np.arange(w) * width // w
    colors, mass = np.empty((h, w, 3)), np.empty((h, w))
    for i in range(h):
        where = slice(rows[i] * width, rows[i + 1] * width)
        part, opacity = pixels.take(where)
        weight = np.ones(len(part)) if opacity is None else opacity + TUNING.min_opacity
        columns = np.column_stack([part * weight[:, None], weight]).reshape(-1, width, 4)
        sums = np.add.reduceat(columns.sum(axis=0), cols, axis=0)
        colors[i], mass[i] = sums[:, :3] / sums[:, 3:], sums[:, 3]
    return colors, mass / mass.max()


def local_affine(guide: Matrix, shift: Matrix, mass: Vector, radius: float) -> Matrix:
    r"""Fit an affine map of colour to the displacement around each pixel (guided filter).

    In each window the displacement is regressed on the colour,

    .. math:: \min_{A, b} \sum_p m_p \big(|A x_p + b - d_p|^2 + \varepsilon |A|^2\big),

    and the coefficients of all windows over a pixel are averaged. Where the picture is flat, the
    displacement becomes its mean. Along edges it follows the picture.

    Parameters
    ----------
    guide, shift : (h, w, 3) arrays
        Colours x and their displacements d.
    mass : (h, w) array
        Weight of each pixel.
    radius : float
        Half the side of a window, in pixels.

    Returns
    -------
    coefficients : (h, w, 12) float32 array
        A by rows, then b, of the map x → x + A x + b.

    References
    ----------
    He, Sun and Tang (2013), "Guided image filtering"; He and Sun (2015), "Fast guided filter".
    Rabin, Delon and Gousseau (2011), "Removing artefacts from color and contrast modifications".
    """
    from scipy.ndimage import uniform_filter

    size = 2 * max(1, round(radius)) + 1

    def mean(field: Matrix) -> Matrix:
        return np.asarray(uniform_filter(field, size=(size, size, 0), mode="nearest"))

    weight = mass[..., None]
    total = mean(weight)
    x, d = mean(weight * guide) / total, mean(weight * shift) / total

    def covariance(field: Matrix, center: Matrix) -> Matrix:
        products = (weight * guide)[..., :, None] * field[..., None, :]
        square = (mean(products.reshape(*mass.shape, 9)) / total).reshape(products.shape)
        return np.asarray(square - x[..., :, None] * center[..., None, :])

    spread = covariance(guide, x) + TUNING.flat_variance * np.eye(3)
    A = np.swapaxes(np.linalg.solve(spread, covariance(shift, d)), -1, -2)
    b = d - np.einsum("hwcd,hwd->hwc", A, x)
    table = np.concatenate([(A + np.eye(3)).reshape(*mass.shape, 9), b], axis=-1)
    return np.ascontiguousarray(mean(weight * table) / total, dtype=np.float32)
