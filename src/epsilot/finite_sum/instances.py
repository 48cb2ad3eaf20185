"""Problems with a finite-sum dual: separable ones, entropic and quadratic transport."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from .._types import Index, Matrix, Vector
from ..errors import InvalidProblem
from ..kernels.vectors import dot, entropy, exp, log, matvec, rmatvec
from ..problems.problem import Entropic
from ..wording import shown
from .algorithm import EUCLIDEAN, dual_norms, exponent

#: A function of numbers t_i and their component indices i, entry by entry.
OfComponents = Callable[[Vector, Index], Vector]


class Constrained:
    """The sizes of a problem with the constraints A x = b."""

    A: Matrix

    @property
    def size(self) -> int:
        """Number of constraints."""
        return int(self.A.shape[0])

    @property
    def n_components(self) -> int:
        """Number of variables."""
        return int(self.A.shape[1])


@dataclass(frozen=True, kw_only=True)
class Separable(Constrained):
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


@dataclass(frozen=True)
class SeparableQuadratic(Constrained):
    r"""min Σ d_i (x_i - c_i)² / 2 subject to A x = b, with the closed form below.

    .. math:: φ_i(λ) = <λ, b> - m (a_i^T λ\, x_i(λ) + d_i (x_i(λ) - c_i)^2 / 2), \quad
        x_i(λ) = c_i - a_i^T λ / d_i

    Parameters
    ----------
    A, b : (k, m), (k,) arrays
        Constraints of full row rank.
    d, c : (m,) arrays, optional
        Positive curvatures and centres; ones and zeros by default.
    """

    A: Matrix
    b: Vector
    d: Vector = field(default_factory=lambda: np.ones(1))
    c: Vector = field(default_factory=lambda: np.zeros(1))

    def __post_init__(self) -> None:
        for name in ("d", "c"):
            wide = np.broadcast_to(getattr(self, name), (self.n_components,))
            object.__setattr__(self, name, np.array(wide, dtype=np.float64))

    def primal(self, lam: Vector) -> Vector:
        """Return x(λ)."""
        return self.c - rmatvec(self.A, lam) / self.d

    def objective(self, x: Vector) -> float:
        """Return f(x)."""
        return float((self.d * (x - self.c) ** 2).sum() / 2)

    def value(self, lam: Vector) -> float:
        """Return φ(λ)."""
        x = self.primal(lam)
        return dot(lam, self.b - matvec(self.A, x)) - self.objective(x)

    def gradient(self, lam: Vector) -> Vector:
        """Return b - A x(λ)."""
        return self.b - matvec(self.A, self.primal(lam))

    def component_gradient(self, i: int, lam: Vector) -> Vector:
        """Return b - m x_i(λ) a_i."""
        a = self.A[:, i]
        x = float(self.c[i] - dot(a, lam) / self.d[i])
        return np.asarray(self.b - self.n_components * x * a)

    def smoothness(self, norm: str) -> Vector:
        """Return m ‖a_i‖²_{H,*} / d_i."""
        return np.asarray(self.n_components * dual_norms(self.A, norm) ** 2 / self.d)

    def solution(self) -> tuple[Vector, Vector]:
        """Return x* and λ* = (A D⁻¹ Aᵀ)⁻¹ (A c - b)."""
        gram, rest = (self.A / self.d) @ self.A.T, self.A @ self.c - self.b
        lam = np.asarray(np.linalg.solve(gram, rest), dtype=np.float64)
        return self.primal(lam), lam


class _RowTransport:
    """The common part of transport problems with rows eliminated from the dual."""

    C: Matrix
    p: Vector
    q: Vector

    @property
    def size(self) -> int:
        """Number of columns."""
        return self.q.size

    @property
    def n_components(self) -> int:
        """Number of rows."""
        return self.p.size

    def _row(self, i: int, lam: Vector) -> Vector:
        """Return row i of X(λ)."""
        raise NotImplementedError

    def primal(self, lam: Vector) -> Matrix:
        """Return X(λ), whose rows sum to p."""
        return np.stack([self._row(i, lam) for i in range(self.n_components)])

    def gradient(self, lam: Vector) -> Vector:
        """Return Xᵀ 1 - q."""
        return np.asarray(self.primal(lam).sum(axis=0) - self.q)

    def component_gradient(self, i: int, lam: Vector) -> Vector:
        """Return n x_i(λ) - q; only differences matter to the method."""
        return self.n_components * self._row(i, lam) - self.q


@dataclass(frozen=True)
class EntropicTransport(_RowTransport):
    r"""The semi-dual of entropic transport: the paper's own instance.

    .. math:: φ(λ) = \sum_i p_i η (\log \sum_j e^{(λ_j - C_{ij})/η} - \log p_i) - <λ, q>

    Component i is n p_i times a log-sum-exp, whose Hessian form is a variance over η. A variance
    of u is at most (max u - min u)² / 4, so that L_i = 2^(-2/p) n p_i / η in lp: n p_i / η in l∞
    and n p_i / (2η) in l2. ``factor`` multiplies it: 5 gives the paper's constant for l∞, 2 that
    for l2.
    """

    C: Matrix
    p: Vector
    q: Vector
    eta: float
    factor: float = 1.0

    @classmethod
    def of(cls, problem: Entropic, factor: float = 1.0) -> EntropicTransport:
        """Return the semi-dual of a dense entropic problem."""
        C = problem.geometry.matrix()
        return cls(C, problem.p, problem.q, problem.eta, factor)

    def _row(self, i: int, lam: Vector) -> Vector:
        t = (lam - self.C[i]) / self.eta
        e = exp(t - t.max())
        return np.asarray(self.p[i] * (e / e.sum()))

    def value(self, lam: Vector) -> float:
        """Return φ(λ)."""
        t = (lam - self.C) / self.eta
        top = t.max(axis=1)
        lse = top + log(exp(t - top[:, None]).sum(axis=1))
        return self.eta * dot(self.p, lse - log(self.p)) - dot(lam, self.q)

    def smoothness(self, norm: str) -> Vector:
        """Return 2^(-2/p) n p_i / η, times ``factor``; two opposite entries of u attain it."""
        constant = self.factor * 2 ** (-2 / exponent(norm))
        return constant * self.n_components * self.p / self.eta

    def objective(self, X: Matrix) -> float:
        """Return <C, X> - η H(X)."""
        return float((self.C * X).sum()) - self.eta * entropy(X)


@dataclass(frozen=True)
class QuadraticTransport(_RowTransport):
    r"""min <C, X> + (γ/2) ‖X‖² over plans, with the rows eliminated; its plans are sparse.

    Row i of X(λ) is the projection of (λ - C_i)/γ on {x >= 0, sum x = p_i}, and

    .. math:: φ(λ) = \sum_i \max_{x} (<λ - C_i, x> - \tfrac γ2 ‖x‖²) - <λ, q>.

    L_i = n/γ in l2 and n m/γ in l∞, since ‖x‖₁² <= m ‖x‖₂²; m^(1 - 2/p) times n/γ in lp, p > 2.
    """

    C: Matrix
    p: Vector
    q: Vector
    gamma: float

    @cached_property
    def _ranks(self) -> Vector:
        return np.arange(1.0, self.size + 1)

    def _row(self, i: int, lam: Vector) -> Vector:
        t = (lam - self.C[i]) / self.gamma
        falling = np.sort(t)[::-1]
        excess = np.cumsum(falling) - self.p[i]
        last = np.flatnonzero(falling * self._ranks > excess)[-1]
        return np.asarray(np.maximum(t - excess[last] / (last + 1), 0.0))

    def value(self, lam: Vector) -> float:
        """Return φ(λ)."""
        X = self.primal(lam)
        return dot(lam, X.sum(axis=0) - self.q) - self.objective(X)

    def objective(self, X: Matrix) -> float:
        """Return <C, X> + (γ/2) ‖X‖²."""
        return float((self.C * X).sum() + self.gamma / 2 * (X**2).sum())

    def smoothness(self, norm: str) -> Vector:
        """Return n/γ, times m^(1 - 2/p) in lp for p > 2: the γ of the Euclidean map there."""
        factor = EUCLIDEAN.gamma(self.size, norm)
        return np.full(self.n_components, factor * self.n_components / self.gamma)
