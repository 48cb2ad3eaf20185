"""Minima over the columns of a cloud: float32 says where to look, float64 what they are."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from .. import parallel
from .._types import Array, Index, Matrix, Vector
from ..kernels import float32_min as kernels
from ..metrics import HALF_ULP, Metric

#: Coordinates whose squares, and sums of them, are well inside the range of float32.
SMALLEST, LARGEST = 1e-12, 1e12

Singles = NDArray[np.float32]
#: What kernels of clouds take first: sources, targets, metric, shift.
Exact = tuple[Array, Array, int, np.floating]


@dataclass(frozen=True)
class Bounded:
    """Sources and targets relative to a point in their middle, rounded to float32."""

    X: Singles
    Y: Singles
    largest: float  # no computed cost is above it
    error: float  # of a rough cost

    @classmethod
    def of(
        cls, X: Matrix, Y: Matrix, centre: Vector, metric: Metric, shift: float
    ) -> Bounded | None:
        """Round points, or return None where float32 cannot hold them or its error is unknown.

        The shift, which rough costs do not have, rounds those of float64.
        """
        X, Y = X - centre, Y - centre
        reach = np.maximum(np.abs(X).max(axis=0), np.abs(Y).max(axis=0))
        if metric.float32_error is None or not SMALLEST < reach.max() < LARGEST:
            return None
        largest, error = metric.float32_error(reach)
        error += HALF_ULP**2 * (abs(shift) + largest)
        return cls(X.astype(np.float32), Y.astype(np.float32), 1.01 * largest, 1.01 * error)

    def _rough(
        self, swap: bool, g: Vector, least: float
    ) -> tuple[Singles, Singles, Singles, float]:
        """Return points, potentials relative to the largest, and what cost - g may be off.

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
        parallel.share(kernels.ctransform_rows, len(X), len(X) * Y.shape[1], *args)
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
        parallel.share(kernels.least_columns, n, n * m, *args)
        return cols, costs, thresholds
