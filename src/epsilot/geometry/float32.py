"""float32 passes over point clouds: log-sum-exp, costs, and candidates for minima."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import parallel
from .._types import Array, FloatArray, Index, Matrix, Vector
from ..kernels import k_least as kernels
from ..kernels.products import HEIGHT, SINGLE_WIDTH, multiply_singles
from ..metrics import HALF_ULP, Metric, MetricKey
from .sweeps import Block
from .tuning import TUNING

# -- squared distances as products -----------------------------------------------------------------
#
# .. math:: |x_i - y_j|^2 = |x_i|^2 + |y_j|^2 - 2 \langle x_i, y_j \rangle
#
# is the product of (|x|², 1, -2x) and (1, |y|², y), of d + 2 terms. It has an error of a few
# roundings of the largest |x|² + |y|²: good enough to choose arcs, never used in proofs. Points
# should be near the origin.


def _row_spans(n: int, m: int) -> Iterator[tuple[int, int]]:
    """Yield the rows of blocks, the same on every machine."""
    rows = TUNING.block_row_multiple * max(
        1, round(2 * TUNING.block_entries / m / TUNING.block_row_multiple)
    )
    return ((start, min(start + rows, n)) for start in range(0, n, rows))


def _left_factor(X: Matrix, factor: float, shift: float) -> FloatArray:
    """Return rows (factor |x|² + shift, factor, -2 factor x), padded with zeros to whole tiles."""
    n, d = X.shape
    left = np.zeros(
        (-(-n // TUNING.block_row_multiple) * TUNING.block_row_multiple, d + 2), np.float32
    )
    left[:n, 0], left[:n, 1] = factor * _squares(X) + shift, factor
    left[:n, 2:] = -2 * factor * X
    return left


def _right_panels(Y: Matrix) -> FloatArray:
    """Return columns (1, |y|², y) in panels of the width of a tile."""
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
        part = left[
            start : start
            + -(-(stop - start) // TUNING.block_row_multiple) * TUNING.block_row_multiple
        ]
        if len(out) != len(part):
            out = np.empty((len(part), len(Y)), np.float32)
        work = out.size * panels.shape[1] // TUNING.terms_per_entry
        parallel.share(multiply_singles, len(part) // HEIGHT, work, part, panels, out)
        yield start, stop, out[: stop - start]


def _squares(X: Matrix) -> Vector:
    """Return |x|² of every point, added from the first coordinate to the last."""
    total = np.zeros(len(X))
    for x in X.T:
        total += x * x
    return total


# -- minima by float32 -----------------------------------------------------------------------------
#
# float32 narrows down the columns of a minimum; float64 computes it.

Singles = NDArray[np.float32]
#: The first arguments of kernels of clouds: sources, targets, metric, shift.
Exact = tuple[Array, Array, MetricKey, np.floating]


@dataclass(frozen=True)
class Float32Points:
    """Sources and targets relative to their centre, rounded to float32."""

    X: Singles
    Y: Singles
    largest: float  # bound of every computed cost
    error: float  # bound of the error of a float32 cost

    @classmethod
    def of(
        cls, X: Matrix, Y: Matrix, centre: Vector, metric: Metric, shift: float
    ) -> Float32Points | None:
        """Round points, or return None where float32 cannot hold them or its error is unknown.

        float32 costs leave out the shift, whose rounding in float64 counts as error.
        """
        X, Y = X - centre, Y - centre
        reach = np.maximum(np.abs(X).max(axis=0), np.abs(Y).max(axis=0))
        is_held = TUNING.min_float32_reach < reach.max() < TUNING.max_float32_reach
        if metric.float32_error is None or not is_held:
            return None
        largest, error = metric.float32_error(reach)
        error += HALF_ULP**2 * (abs(shift) + largest)
        return cls(X.astype(np.float32), Y.astype(np.float32), 1.01 * largest, 1.01 * error)

    def _rough(
        self, swap: bool, g: Vector, least: float
    ) -> tuple[Singles, Singles, Singles, float]:
        """Return points, potentials relative to the largest, and the error of cost - g.

        Potentials below ``least``, relative to the largest, are raised to it.
        """
        X, Y = (self.Y, self.X) if swap else (self.X, self.Y)
        top = float(g.max())
        relative = np.maximum(g - top, least) if top > -np.inf else g
        lowest = float(np.min(relative, where=relative > -np.inf, initial=0.0))
        error = self.error + 8 * HALF_ULP * (self.largest - lowest)
        return X, np.ascontiguousarray(Y.T), relative.astype(np.float32), error

    def ctransform(self, exact: Exact, swap: bool, g: Vector) -> Vector:
        """Return min_j C_ij - g_j, the minimum of the float64 values to the last bit."""
        X, Y, *_ = exact
        out = np.empty(len(X))
        too_low = -2 * (self.largest + self.error)  # for any row to have its minimum there
        args = *exact, g, *self._rough(swap, g, too_low), out
        parallel.share(kernels.ctransform_rows_float32, len(X), len(X) * Y.shape[1], *args)
        return out

    def k_least(
        self, exact: Exact, rows: Index, prices: Vector, k: int
    ) -> tuple[Index, Matrix, Vector]:
        """Return the k columns of least cost + price of some rows, their costs and thresholds."""
        n, m = rows.size, exact[1].shape[1]
        cols, costs, thresholds = np.zeros((n, k), dtype=np.int64), np.zeros((n, k)), np.empty(n)
        places = np.ascontiguousarray(rows, dtype=np.int64)
        args = (
            *exact,
            prices,
            places,
            *self._rough(False, -prices, -np.inf),
            cols,
            costs,
            thresholds,
        )
        parallel.share(kernels.least_columns_float32, n, n * m, *args)
        return cols, costs, thresholds
