"""Match two shapes: a coupling by Gromov-Wasserstein, and the rotation or reflection it implies."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import Matrix
from ..api.gromov import solve_gromov
from ..errors import InvalidProblem
from ..geometry.coordinates import as_points


class ShapeMatcher:
    r"""Match two point clouds, and map the first onto the second rigidly.

    The coupling minimises Gromov-Wasserstein to a proved gap. Its cross moment Z = U Σ Vᵀ gives the
    orthogonal map R = U Vᵀ, which makes ``Σ P_ij |Rᵀ x_i - y_j|²`` least among all rotations and
    reflections (Kabsch 1976).

    Parameters
    ----------
    scale : bool
        Also scale the first shape by the best factor.
    **options
        Keywords of :func:`epsilot.solve_gromov`, such as ``rtol`` and ``M``.

    Attributes
    ----------
    result_ : GromovResult
        The coupling with its bounds.
    rotation_ : (dx, dy) array
        R: orthonormal rows or columns; for dx = dy an orthogonal matrix.
    is_reflection_ : bool
        Whether R turns the orientation over.
    scale_ : float
        The factor; 1 without ``scale``.
    matches_ : (n,) array
        For each point of X the point of Y that receives most of its mass.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> X = np.random.default_rng(0).normal(size=(30, 2)) * [3, 1]
    >>> turn = np.array([[0.0, 1.0], [-1.0, 0.0]])
    >>> matcher = epsilot.ShapeMatcher().fit(X, X[::-1] @ turn + 7)
    >>> matcher.rotation_.round(6) + 0.0
    array([[ 0.,  1.],
           [-1.,  0.]])
    >>> matcher.matches_[:5]
    array([29, 28, 27, 26, 25])
    """

    def __init__(self, *, scale: bool = False, **options: Any) -> None:
        self.scale, self.options = scale, options

    def fit(
        self, X: ArrayLike, Y: ArrayLike, a: ArrayLike | None = None, b: ArrayLike | None = None
    ) -> ShapeMatcher:
        """Couple two shapes and find the map between them."""
        first, second = as_points(X, "X"), as_points(Y, "Y")
        self.result_ = result = solve_gromov(first, second, a, b, **self.options)
        plan = result.plan_operator
        r, c = plan.marginals()
        self.origin_, self.target_ = r @ first / r.sum(), c @ second / c.sum()
        U, s, Vt = np.linalg.svd(result.cross_moment, full_matrices=False)
        self.rotation_: Matrix = U @ Vt
        is_square = first.shape[1] == second.shape[1]
        self.is_reflection_ = bool(is_square and np.linalg.det(self.rotation_) < 0)
        spread = float(r @ ((first - self.origin_) ** 2).sum(axis=1))
        self.scale_ = float(s.sum() / spread) if self.scale and spread > 0 else 1.0
        self.matches_ = np.asarray(plan.tosparse().argmax(axis=1)).ravel()
        return self

    def transform(self, X: ArrayLike) -> Matrix:
        """Map points of the first space into the second."""
        if not hasattr(self, "rotation_"):
            raise InvalidProblem("this matcher has not been fitted; call fit(X, Y) first.")
        points = as_points(X, "X")
        if points.shape[1] != len(self.rotation_):
            raise InvalidProblem(
                f"X has {points.shape[1]} coordinates per point; the matcher was fitted to "
                f"{len(self.rotation_)}."
            )
        moved: Matrix = self.scale_ * (points - self.origin_) @ self.rotation_ + self.target_
        return moved

    def fit_transform(self, X: ArrayLike, Y: ArrayLike, **weights: ArrayLike | None) -> Matrix:
        """Fit to two shapes and map the first."""
        return self.fit(X, Y, **weights).transform(X)
