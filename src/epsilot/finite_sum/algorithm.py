r"""PDASMD and PDASMD-B (Luo, Xie, Huo: Algorithms 1 and 2) for any finite-sum dual.

The primal problem is min f(x) subject to A x = b with f strongly convex; its dual

.. math:: φ(λ) = <λ, b> + \max_x (-f(x) - <A^T λ, x>) = \frac1m \sum_{i=1}^m φ_i(λ)

is a mean of smooth convex components (Assumption 1). Nothing here knows about transport.

A norm H goes by its name: "l1", "l2", "linf", or "l" and a number, as "l1.5". A mirror map w says
how the sequence z moves (step 10). It must be 1-strongly convex in the norm H. Its γ enters the
theorems only through the proof's :math:`V_0(u) \le γ \|u\|_H^2 / 2`, that is at z = 0 where the
method starts, so a map need not be smooth everywhere.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Protocol

import numpy as np
from numpy.random import Generator, default_rng
from numpy.typing import NDArray

from .. import memory
from .._types import Index, Matrix, Vector
from ..arguments import check_choice, check_count, check_least, check_positive, numeric
from ..errors import InvalidProblem
from ..kernels.vectors import dot, exp, log
from ..wording import shown

_KNOWN = {"l1": 1.0, "l2": 2.0, "linf": math.inf}


def exponent(norm: object) -> float:
    """Return the p of a norm's name.

    >>> exponent("linf"), exponent("l1.5")
    (inf, 1.5)
    """
    if isinstance(norm, str) and norm in _KNOWN:
        return _KNOWN[norm]
    try:
        p = float(norm[1:]) if isinstance(norm, str) and norm[:1] == "l" else math.nan
    except ValueError:
        p = math.nan
    if not 1 <= p < math.inf:
        raise InvalidProblem(
            f"norm is {shown(norm)}; it must be 'linf', 'l2', 'l1', or 'l' and a number of at "
            "least 1, as 'l1.5'."
        )
    return p


def dual_exponent(p: float) -> float:
    """Return q with 1/p + 1/q = 1."""
    if p == 1:
        return math.inf
    return 1.0 if math.isinf(p) else p / (p - 1)


def power(x: float, p: float) -> float:
    """Return x^p for x > 0."""
    return exp(p * log(x))


def lp(x: Vector, p: float) -> float:
    """Return ‖x‖_p."""
    size = np.abs(x)
    largest = float(size.max())
    if math.isinf(p) or largest == 0:
        return largest
    if p == 1:
        return float(size.sum())
    if p == 2:
        return math.sqrt(dot(x, x))
    return largest * power(float(_powers(size / largest, p).sum()), 1 / p)


def dual_norm(g: Vector, norm: str) -> float:
    """Return ‖g‖_{H,*}: l1 for l∞, l2 for l2, lq with 1/p + 1/q = 1 for lp."""
    return lp(g, dual_exponent(exponent(norm)))


def dual_norms(A: Matrix, norm: str) -> Vector:
    """Return the dual norm of every column of a matrix."""
    return np.array([dual_norm(a, norm) for a in np.ascontiguousarray(A.T)])


def proximal_step(g: Vector, norm: str) -> Vector:
    """Return -argmin_u ‖u‖²_H / 2 + <g, u>: the direction of step 11.

    It is the gradient of ‖g‖²_{H,*} / 2; where that has several, one of them. As printed, the
    sign of 0 is -1.
    """
    q = dual_exponent(exponent(norm))
    if q == 2:
        return g
    if q == 1:
        return np.where(g > 0, 1.0, -1.0) * float(np.abs(g).sum())
    if math.isinf(q):
        i = int(np.argmax(np.abs(g)))
        return np.where(np.arange(g.size) == i, g, 0.0)
    return half_square_gradient(g, q)


def half_square_gradient(x: Vector, p: float) -> Vector:
    """Return the gradient of ‖x‖_p² / 2 for 1 < p < ∞: ‖x‖ (|x_i| / ‖x‖)^{p-1} sign(x_i)."""
    size = lp(x, p)
    if size == 0:
        return np.zeros_like(x)
    return size * np.sign(x) * _powers(np.abs(x) / size, p - 1)


def _powers(x: Vector, p: float) -> Vector:
    """Return x^p of nonnegative numbers, entry by entry."""
    return np.where(x > 0, exp(p * log(np.where(x > 0, x, 1.0))), 0.0)


def _unknown(size: int, norm: str) -> float:
    return math.nan


@dataclass(frozen=True)
class Mirror:
    """A mirror map w given by its gradient and the inverse of that gradient.

    w must be 1-strongly convex in the chosen norm; ``gamma(size, norm)`` is its constant γ there,
    V_0(u) <= γ ‖u‖² / 2, which only the bounds of :mod:`epsilot.theory` need. The ``name`` stands
    for the map in files and texts.
    """

    gradient: Callable[[Vector], Vector] = field(repr=False)
    inverse: Callable[[Vector], Vector] = field(repr=False)
    gamma: Callable[[int, str], float] = field(default=_unknown, repr=False)
    name: str = "custom"

    def step(self, z: Vector, direction: Vector) -> Vector:
        """Return argmin_u V_z(u) + <direction, u> = (∇w)⁻¹(∇w(z) - direction)."""
        return self.inverse(self.gradient(z) - direction)


def _identity(x: Vector) -> Vector:
    return x


def _euclidean_gamma(size: int, norm: str) -> float:
    p = exponent(norm)
    return power(size, 1.0 if math.isinf(p) else max(1 - 2 / p, 0.0))


#: w = ‖·‖₂² / 2: 1-strongly convex in lp for p >= 2 only, with γ = size^(1 - 2/p) there.
EUCLIDEAN = Mirror(_identity, _identity, _euclidean_gamma, "euclidean")


def euclidean(size: int, norm: str) -> Mirror:
    """Return w = s ‖·‖₂² / 2 with the least s that makes it 1-strongly convex in the norm.

    s = 1 for p >= 2, where γ = size^(1 - 2/p): 1 in l2 and the size in l∞. For p < 2 both s and
    γ are size^(2/p - 1).
    """
    p = exponent(norm)
    if p >= 2:
        return EUCLIDEAN
    scale = power(size, 2 / p - 1)
    return Mirror(
        partial(_times, scale), partial(_times, 1 / scale), partial(_constant, scale), "euclidean"
    )


def p_norm(size: int, norm: str) -> Mirror:
    """Return w = s ‖·‖_r² / (2 (r - 1)), which has γ of order log(size) in l1.

    For lp with 1 < p <= 2, r = p and s = 1: γ = 1/(p - 1). For l1, r = 1 + 1/log(size) and s makes
    up for ‖u‖_1 <= size^(1 - 1/r) ‖u‖_r: γ <= e² log(size).
    """
    p = exponent(norm)
    if p >= 2:
        return EUCLIDEAN
    r = 1 + 1 / log(max(size, 3)) if p == 1 else p
    scale = (power(size, 2 * (1 - 1 / r)) if p == 1 else 1.0) / (r - 1)
    return Mirror(
        partial(_slope, r, scale),
        partial(_slope, dual_exponent(r), 1 / scale),
        partial(_constant, scale),
        f"p-norm, r = {r:.3g}",
    )


def _times(scale: float, x: Vector) -> Vector:
    return scale * x


def _constant(value: float, size: int, norm: str) -> float:
    return value


def _slope(r: float, scale: float, x: Vector) -> Vector:
    return scale * half_square_gradient(x, r)


AVERAGES = ("predrawn", "reservoir")


class FiniteSumDual(Protocol):
    """A dual function φ = (1/m) Σ φ_i to be minimised, and the primal point it stands for.

    The sign of λ is free: φ(λ) and φ(-λ) are equally good as long as all methods agree.
    """

    @property
    def size(self) -> int:
        """Number of dual variables, the length of λ."""

    @property
    def n_components(self) -> int:
        """Number m of components."""

    def value(self, lam: Vector) -> float:
        """Return φ(λ)."""

    def gradient(self, lam: Vector) -> Vector:
        """Return ∇φ(λ) = ±(A x(λ) - b)."""

    def component_gradient(self, i: int, lam: Vector) -> Vector:
        """Return ∇φ_i(λ); the mean over i is the gradient."""

    def smoothness(self, norm: str) -> Vector:
        """Return L_i of every component in a norm: "l2", "linf", "l1", or as "l1.5"."""

    def primal(self, lam: Vector) -> NDArray[np.float64]:
        """Return x(λ), the minimiser of the Lagrangian."""


@dataclass(frozen=True)
class Solution:
    """The result of :func:`minimize`."""

    x: NDArray[np.float64]  # averaged primal point x^{S-1}, which the theorems are about
    lam: Vector  # last snapshot ṽ
    value: float  # φ there
    residual: float  # dual norm of A x - b for the average; NaN without a tolerance
    n_outer: int  # outer loops made
    n_component_gradients: int
    converged: bool


def draw(rng: Generator, cumulative: Vector, n_inner: int, batch_size: int) -> tuple[int, Index]:
    """Draw an outer loop's randomness: the step of step 15, and the components of step 8."""
    selected = int(rng.integers(n_inner))
    uniform = rng.random((n_inner, batch_size))
    sample = np.searchsorted(cumulative, uniform * cumulative[-1], side="right")
    return selected, np.minimum(sample, cumulative.size - 1)


def _reduced_gradient(
    dual: FiniteSumDual, mu: Vector, v: Vector, v_snap: Vector, sample: Index, weights: Vector
) -> Vector:
    """Return the full gradient at the snapshot, corrected by the sampled components at v."""
    g = mu.copy()
    for i in sample:
        g += (dual.component_gradient(i, v) - dual.component_gradient(i, v_snap)) / weights[i]
    return g


def minimize(
    dual: FiniteSumDual,
    *,
    norm: str = "l2",
    mirror: Mirror | None = None,
    batch_size: int = 1,
    inner_loops: int | None = None,
    step_constant: float = 9.0,
    n_outer: int = 1000,
    tolerance: float | None = None,
    average: str = "predrawn",
    start: Vector | None = None,
    seed: int | Generator = 0,
    callback: Callable[[int, NDArray[np.float64], Vector], object] | None = None,
) -> Solution:
    r"""Minimise a strongly convex f under linear constraints through its finite-sum dual.

    Accelerated stochastic mirror descent with variance reduction. After S outer loops of l inner
    steps, with :math:`\|λ^*\|_H \le R` and the mirror map γ-smooth,

    .. math:: \|E[b - A x^{S-1}]\|_{H,*} \le
        \frac{4 \bar L R (1 + (l-1)/B + 2 c γ)}{l\, S (S + 7)}.

    Parameters
    ----------
    dual : FiniteSumDual
        Value, gradients, smoothness constants and x(λ).
    norm : str
        The norm H, in which components are smooth and the proximal step is taken: "l2", "linf",
        "l1", or "l" and a number, as "l1.5".
    mirror : Mirror, optional
        The mirror map, 1-strongly convex in the norm; the Euclidean one by default.
    batch_size : int
        Components B drawn for each inner step; 1 is Algorithm 1.
    inner_loops : int, optional
        Inner steps l for each full gradient, by default ⌈m / B⌉.
    step_constant : float
        The 9 of the listing; 3 suffices for the l2 norm.
    n_outer : int
        Outer loops S at most.
    tolerance : float, optional
        Stop when the average satisfies ‖A x - b‖_{H,*} <= tolerance. Costs one full gradient
        more for each outer loop.
    average : {"predrawn", "reservoir"}
        How step 15 picks its y without keeping all of them: the index is drawn beforehand, or
        each y replaces its predecessor with probability 1/j. The law is the same.
    start : (size,) array, optional
        First λ, zero by default.
    seed : int or Generator
        Fixes the whole run.
    callback : callable, optional
        Called as ``callback(s, x, lam)`` after each outer loop; returning True stops.

    Returns
    -------
    Solution

    Examples
    --------
    The point of the plane x₁ + x₂ = 1 nearest to the origin:

    >>> import numpy as np
    >>> from epsilot.finite_sum import SeparableQuadratic, minimize
    >>> dual = SeparableQuadratic(np.ones((1, 2)), np.ones(1))
    >>> minimize(dual, n_outer=200).x.round(3)
    array([0.5, 0.5])

    References
    ----------
    Luo, Xie, Huo, *Improved Rate of First Order Algorithms for Entropic Optimal Transport*,
    Algorithms 1 and 2; Allen-Zhu 2017, *Katyusha*, Algorithm 5.
    """
    _check_others(dual, mirror, callback, norm, average)
    m, B = dual.n_components, check_count("batch_size", batch_size, 1)
    n_inner = -(-m // B) if inner_loops is None else check_count("inner_loops", inner_loops, 1)
    n_outer, c = check_count("n_outer", n_outer, 0), check_positive("step_constant", step_constant)
    tolerance = None if tolerance is None else check_least("tolerance", tolerance, 0)
    memory.ask(16 * n_inner * B, "an outer loop", "lower batch_size or inner_loops")
    rng = seed if isinstance(seed, Generator) else default_rng(check_count("seed", seed, 0))
    L = dual.smoothness(norm)  # step 1
    L_bar, law = float(L.mean()), L / L.sum()
    cumulative = np.cumsum(law)
    tau2, mirror = 1 / (2 * B), mirror or euclidean(dual.size, norm)
    v_snap = np.zeros(dual.size) if start is None else _start(start, dual.size)
    y, z = v_snap.copy(), v_snap.copy()
    weight_sum, x_sum = 0.0, np.zeros_like(dual.primal(v_snap))
    residual_sum, residual = np.zeros(dual.size), math.nan
    is_done, s = False, 0
    for s in range(n_outer):
        tau1 = 2 / (s + 4)  # step 3
        alpha = 1 / (c * tau1 * L_bar)
        mu = dual.gradient(v_snap)  # step 4
        selected, sample = draw(rng, cumulative, n_inner, B)
        y_sum, y_selected = np.zeros(dual.size), y
        for j in range(n_inner):
            v = tau1 * z + tau2 * v_snap + (1 - tau1 - tau2) * y  # step 7
            g = _reduced_gradient(dual, mu, v, v_snap, sample[j], B * m * law)  # steps 8 and 9
            z = mirror.step(z, alpha * g)  # step 10
            y = v - proximal_step(g, norm) / (c * L_bar)  # step 11
            y_sum += y
            is_picked = j == selected if average == "predrawn" else rng.random() * (j + 1) < 1
            y_selected = y if is_picked else y_selected
        v_snap = y_sum / n_inner  # step 13
        weight_sum += 1 / tau1  # step 14
        x_sum += dual.primal(y_selected) / tau1  # step 15
        if tolerance is not None:
            residual_sum += dual.gradient(y_selected) / tau1
            residual = dual_norm(residual_sum / weight_sum, norm)
            is_done = residual <= tolerance
        is_told = callback is not None and callback(s, x_sum / weight_sum, v_snap) is True
        if is_done or is_told:  # step 16
            break
    made = s + 1 if n_outer > 0 else 0
    x = x_sum / weight_sum if made else dual.primal(v_snap)
    total = made * (m + 2 * n_inner * B)
    return Solution(x, v_snap, dual.value(v_snap), residual, made, total, is_done)


def _check_others(
    dual: object, mirror: object, callback: object, norm: object, average: object
) -> None:
    """Reject arguments that are not numbers."""
    for name, value, is_good in (
        ("dual", dual, hasattr(dual, "n_components")),
        ("mirror", mirror, mirror is None or isinstance(mirror, Mirror)),
        ("callback", callback, callback is None or callable(callback)),
    ):
        if not is_good:
            raise InvalidProblem(f"{name} is {shown(value)}; see minimize for what it must offer.")
    exponent(norm)
    check_choice("average", average, AVERAGES)


def _start(given: object, size: int) -> Vector:
    start = np.array(numeric(given, "start"))
    if start.shape != (size,) or not np.isfinite(start).all():
        raise InvalidProblem(
            f"start has shape {start.shape}; it must be a finite vector of {size} entries."
        )
    return start
