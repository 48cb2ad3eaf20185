"""Anderson's acceleration of a fixed-point iteration: the last few steps, mixed."""

from __future__ import annotations

import numpy as np

from .._types import Matrix, Vector
from ..kernels.products import cholesky, cholesky_solve
from ..kernels.vectors import dot

#: A residual so much above the least since the history began shows that mixing has failed.
FAILED = 100.0
#: What is added to the diagonal of normal equations, as a share of their trace.
RIDGE = 1e-10


class Mixing:
    r"""x⁺ = T(x) - Σ γ_j ΔT_j, where γ minimises ‖r - Σ γ_j Δr_j‖ and r = T(x) - x.

    Anderson 1965, *Iterative Procedures for Nonlinear Integral Equations*; Walker, Ni 2011. Without
    a memory it is x⁺ = T(x). After a residual that is far too large the history is dropped, so
    that the iteration itself, which converges, goes on from there.

    Parameters
    ----------
    memory : int
        Differences that are kept.
    weights : (k, 1) array
        Factors of the rows of x in the norm.
    """

    def __init__(self, memory: int, weights: Matrix) -> None:
        self.memory, self.weights = memory, weights
        self.clear()

    def clear(self) -> None:
        """Forget everything: the iteration is another one from here."""
        self._residuals: list[Vector] = []  # differences of residuals
        self._images: list[Matrix] = []  # differences of T(x)
        self._last: tuple[Vector, Matrix] | None = None
        self._normal = np.empty((0, 0))  # products of differences of residuals
        self._least = np.inf

    def next(self, x: Matrix, image: Matrix) -> Matrix:
        """Return the next point after x, whose image T(x) is given."""
        if self.memory == 0:
            return image
        residual = (self.weights * (image - x)).ravel()
        size = dot(residual, residual)
        if not size <= FAILED * self._least:
            self.clear()
        self._least = min(self._least, size)
        if self._last is not None:
            self._keep(residual - self._last[0], image - self._last[1])
        self._last = residual, image
        return self._mixed(residual, image)

    def _keep(self, residual: Vector, image: Matrix) -> None:
        """Add differences to the history, and drop the oldest of too many."""
        self._residuals.append(residual)
        self._images.append(image)
        del self._residuals[: -self.memory], self._images[: -self.memory]
        n = len(self._residuals)
        normal, before = np.empty((n, n)), self._normal[-(n - 1) :, -(n - 1) :]
        normal[:-1, :-1] = before[: n - 1, : n - 1]
        normal[-1] = normal[:, -1] = [dot(x, residual) for x in self._residuals]
        self._normal = normal

    def _mixed(self, residual: Vector, image: Matrix) -> Matrix:
        """Return the image less the best combination of differences."""
        d = self._residuals
        if not d:
            return image
        normal = self._normal.copy()
        normal[np.diag_indices(len(d))] += RIDGE * float(normal.trace())
        factor = cholesky(normal)
        if factor is None:
            self.clear()
            return image
        gamma = cholesky_solve(factor, np.array([dot(x, residual) for x in d]))
        mixed, part = image.copy(), np.empty(image.shape)
        for share, difference in zip(gamma, self._images, strict=True):
            mixed -= np.multiply(share, difference, out=part)
        return mixed
