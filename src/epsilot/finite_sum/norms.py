"""The norms H that components may be smooth in: l1, l2, l∞, and lp for any p >= 1.

A norm goes by its name: "l1", "l2", "linf", or "l" and a number, as "l1.5".
"""

from __future__ import annotations

import math

import numpy as np

from .._types import Matrix, Vector
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
