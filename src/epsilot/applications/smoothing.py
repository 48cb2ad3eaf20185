"""Smooth a recolouring in place, so that it follows the picture's edges and not its noise."""

from __future__ import annotations

import math

import numpy as np

from .._types import Matrix, Vector
from .pixels import Pixels

#: Pixels of the reduced picture on which coefficients are computed.
WORK_PIXELS = 1 << 19
#: Variance of colour below which a neighbourhood is treated as flat.
FLATNESS = 0.05**2
# A transparent pixel's colour counts for nothing where others are to be had.
_LEAST_OPACITY = 1e-3


def reduced(pixels: Pixels) -> tuple[Matrix, Vector]:
    """Return the mean colours (h, w, 3) and opacities (h, w) of equal rectangles of a picture."""
    height, width = pixels.shape[:2]
    factor = max(1.0, math.sqrt(height * width / WORK_PIXELS))
    h, w = max(1, round(height / factor)), max(1, round(width / factor))
    rows = np.arange(h + 1) * height // h
    cols = np.arange(w) * width // w
    colors, mass = np.empty((h, w, 3)), np.empty((h, w))
    for i in range(h):
        where = slice(rows[i] * width, rows[i + 1] * width)
        part, opacity = pixels.take(where)
        weight = np.ones(len(part)) if opacity is None else opacity + _LEAST_OPACITY
        columns = np.column_stack([part * weight[:, None], weight]).reshape(-1, width, 4)
        sums = np.add.reduceat(columns.sum(axis=0), cols, axis=0)
        colors[i], mass[i] = sums[:, :3] / sums[:, 3:], sums[:, 3]
    return colors, mass / mass.max()


def local_affine(guide: Matrix, shift: Matrix, mass: Vector, radius: float) -> Matrix:
    r"""Return the affine maps of colour that fit a displacement around each pixel.

    In each window the displacement is regressed on the colour,

    .. math:: \min_{A, b} \sum_p m_p \big(|A x_p + b - d_p|^2 + \varepsilon |A|^2\big),

    and the coefficients of all windows over a pixel are averaged: the guided filter. Where
    the picture is flat the displacement becomes its mean; along edges it follows the picture.

    Parameters
    ----------
    guide, shift : (h, w, 3) arrays
        Colours x and their displacements d.
    mass : (h, w) array
        What each pixel counts.
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

    spread = covariance(guide, x) + FLATNESS * np.eye(3)
    A = np.swapaxes(np.linalg.solve(spread, covariance(shift, d)), -1, -2)
    b = d - np.einsum("hwcd,hwd->hwc", A, x)
    table = np.concatenate([(A + np.eye(3)).reshape(*mass.shape, 9), b], axis=-1)
    return np.ascontiguousarray(mean(weight * table) / total, dtype=np.float32)
