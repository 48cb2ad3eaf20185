r"""Squared distances in float32, as products: rough costs of points with several coordinates.

.. math:: |x_i - y_j|^2 = |x_i|^2 + |y_j|^2 - 2 \langle x_i, y_j \rangle

is the product of (|x|², 1, -2x) and (1, |y|², y), of d + 2 terms. It is off by some roundings of
the largest |x|² + |y|²: enough to choose arcs by, and nothing to prove with. Points should be near
the origin.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from .. import parallel
from .._types import FloatArray, Matrix, Vector
from ..kernels.tiles import HEIGHT, SINGLE_WIDTH, multiply_singles
from .sweeps import BLOCK_ENTRIES, Block

#: Coordinates from which on a product is quicker than differences.
LEAST_DIMENSION = 4
#: Rows of a block are a multiple of this, on every machine: whole tiles, and even shares for two.
ROWS = 48
#: Entries of a product, times its terms, that take as long as one of other passes.
TERMS = 8


def _row_spans(n: int, m: int) -> Iterator[tuple[int, int]]:
    """Yield the rows of blocks, the same on every machine."""
    rows = ROWS * max(1, round(2 * BLOCK_ENTRIES / m / ROWS))
    return ((start, min(start + rows, n)) for start in range(0, n, rows))


def _left_factor(X: Matrix, factor: float, shift: float) -> FloatArray:
    """Return (factor |x|² + shift, factor, -2 factor x) in rows, with zeros for whole tiles."""
    n, d = X.shape
    left = np.zeros((-(-n // ROWS) * ROWS, d + 2), np.float32)
    left[:n, 0], left[:n, 1] = factor * _squares(X) + shift, factor
    left[:n, 2:] = -2 * factor * X
    return left


def _right_panels(Y: Matrix) -> FloatArray:
    """Return (1, |y|², y) in columns, panel after panel of as many as a tile has."""
    m, d = Y.shape
    right = np.vstack([np.ones(m), _squares(Y), Y.T])
    panels = np.zeros((-(-m // SINGLE_WIDTH), d + 2, SINGLE_WIDTH), np.float32)
    for p, panel in enumerate(panels):
        columns = right[:, p * SINGLE_WIDTH : (p + 1) * SINGLE_WIDTH]
        panel[:, : columns.shape[1]] = columns
    return panels


def square_blocks(X: Matrix, Y: Matrix, factor: float, shift: float) -> Iterator[Block]:
    """Yield blocks of factor |x_i - y_j|² + shift in float32."""
    left, panels = _left_factor(X, factor, shift), _right_panels(Y)
    out = np.empty((0, len(Y)), np.float32)
    for start, stop in _row_spans(len(X), len(Y)):
        part = left[start : start + -(-(stop - start) // ROWS) * ROWS]
        if len(out) != len(part):
            out = np.empty((len(part), len(Y)), np.float32)
        work = out.size * panels.shape[1] // TERMS
        parallel.share(multiply_singles, len(part) // HEIGHT, work, part, panels, out)
        yield start, stop, out[: stop - start]


def _squares(X: Matrix) -> Vector:
    """Return the |x|², added up from the first coordinate to the last."""
    total = np.zeros(len(X))
    for x in X.T:
        total += x * x
    return total
