"""The separable example of the paper's Section 2.2: any convex f_i, given by its conjugate."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from .._types import Index, Matrix, Vector
from ..errors import InvalidProblem
from ..kernels.vectors import dot, matvec, rmatvec
from ..wording import shown
from .norms import dual_norms

#: A function of the numbers t_i and the components i that they belong to, entry by entry.
OfComponents = Callable[[Vector, Index], Vector]


@dataclass(frozen=True, kw_only=True)
class Separable:
    r"""min Σ f_i(x_i) subject to A x = b, with f_i strongly convex and known by its conjugate.

    .. math:: φ(λ) = <λ, b> + \sum_i f_i^*(-a_i^T λ), \quad x_i(λ) = (f_i^*)'(-a_i^T λ)

    Component i is m f_i^*(-a_i^T λ) + <λ, b>. A ν_i-strongly convex f_i has a conjugate with
    1/ν_i-Lipschitz gradient, so that L_i = m ‖a_i‖²_{H,*} / ν_i. (The paper prints the norm without
    its square.)

    Parameters
    ----------
    A, b : (k, m), (k,) arrays
        Constraints.
    conjugate, conjugate_gradient : callables
        f_i^*(t_i) and (f_i^*)'(t_i) = (f_i')⁻¹(t_i), called with a vector t and the indices i of
        its entries.
    convexity : float or (m,) array
        ν_i > 0.

    Examples
    --------
    The loaded die: of all laws of the numbers 1 to 6 with mean 4.5, the one of largest entropy.
    f(x) = x log x on [0, 1] is 1-strongly convex, and its conjugate's gradient is e^{t-1}, at
    most 1.

    >>> import numpy as np
    >>> from epsilot.finite_sum import Separable, minimize
    >>> def gradient(t, i):
    ...     return np.exp(np.minimum(t - 1, 0))
    >>> def conjugate(t, i):
    ...     return gradient(t, i) + np.maximum(t - 1, 0)
    >>> faces = np.arange(1.0, 7)
    >>> A, b = np.stack([np.ones(6), (faces - 3.5) / 2]), np.array([1, 0.5])
    >>> die = Separable(A=A, b=b, conjugate=conjugate, conjugate_gradient=gradient)
    >>> found = minimize(die, tolerance=1e-4, n_outer=5000, step_constant=3.0)
    >>> found.x.round(2)
    array([0.05, 0.08, 0.11, 0.17, 0.24, 0.35])
    """

    A: Matrix
    b: Vector
    conjugate: OfComponents
    conjugate_gradient: OfComponents
    convexity: float | Vector = 1.0

    def __post_init__(self) -> None:
        if not (np.asarray(self.convexity) > 0).all():
            raise InvalidProblem(
                f"convexity is {shown(self.convexity)}; every f_i must be strongly convex with a "
                "positive constant (add a small quadratic)."
            )

    @property
    def size(self) -> int:
        """Number of constraints."""
        return int(self.A.shape[0])

    @property
    def n_components(self) -> int:
        """Number of variables."""
        return int(self.A.shape[1])

    def primal(self, lam: Vector) -> Vector:
        """Return x(λ)."""
        return self.conjugate_gradient(-rmatvec(self.A, lam), self._all)

    def value(self, lam: Vector) -> float:
        """Return φ(λ)."""
        conjugates = self.conjugate(-rmatvec(self.A, lam), self._all)
        return dot(lam, self.b) + float(conjugates.sum())

    def gradient(self, lam: Vector) -> Vector:
        """Return b - A x(λ)."""
        return self.b - matvec(self.A, self.primal(lam))

    def component_gradient(self, i: int, lam: Vector) -> Vector:
        """Return b - m x_i(λ) a_i."""
        a = self.A[:, i]
        x = self.conjugate_gradient(np.array([-dot(a, lam)]), np.array([i]))
        return np.asarray(self.b - self.n_components * float(x[0]) * a)

    def smoothness(self, norm: str) -> Vector:
        """Return m ‖a_i‖²_{H,*} / ν_i."""
        return np.asarray(self.n_components * dual_norms(self.A, norm) ** 2 / self.convexity)

    @property
    def _all(self) -> Index:
        return np.arange(self.n_components)
