"""Vector functions for callers in Python, with the same bits on every processor.

NumPy and BLAS choose instructions and threads by processor for exponentials, logarithms and
products, and each choice rounds differently. Numbers that enter a result are therefore computed
here, with :mod:`.exp_log` and the fixed order of :mod:`.sums`. (NumPy's own sums, extrema and
square roots do not depend on the processor.)
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeGuard, overload

import numpy as np

from .. import parallel
from .._types import Array, Matrix, Vector
from . import dense
from .arrays import empty
from .compiling import KERNEL, njit
from .exp_log import exp as _exp
from .exp_log import log as _log
from .sums import dot as _ordered_dot
from .sums import total

LN2 = 0.6931471805599453
_REAL = np.dtype(np.float64)
#: Smallest normal float, a factor that makes subnormal floats normal, and its logarithm.
_SMALLEST, _SCALE, _LOG_SCALE = 2.0**-1022, 2.0**54, 54 * LN2
#: Largest |x| for which e**x - 1 is summed as a series, and its number of terms.
_MAX_SERIES_SIZE, _N_TERMS = 0.35, 14


@njit(**KERNEL)
def _exp_into(x, out):
    """Write out_i = e**x_i."""
    for i in range(x.size):
        out[i] = _exp(x[i])


@njit(**KERNEL)
def _expm1_into(x, out):
    """Write out_i = e**x_i - 1, by Taylor's series near 0."""
    for i in range(x.size):
        series = 1.0
        for k in range(_N_TERMS, 1, -1):
            series = 1 + x[i] / k * series
        out[i] = x[i] * series if abs(x[i]) < _MAX_SERIES_SIZE else _exp(x[i]) - 1


@njit(**KERNEL)
def _log_of(x):
    """Return the logarithm of a number, which may be subnormal."""
    is_tiny = x < _SMALLEST
    return _log(x * _SCALE if is_tiny else x) - (_LOG_SCALE if is_tiny else 0.0)


@njit(**KERNEL)
def _log_into(x, out):
    """Write out_i = log x_i."""
    for i in range(x.size):
        out[i] = _log_of(x[i])


@njit(**KERNEL)
def _logaddexp_into(x, y, out):
    """Write out_i = log(e**x_i + e**y_i)."""
    for i in range(x.size):
        high, low = max(x[i], y[i]), min(x[i], y[i])
        out[i] = high + _log(1 + _exp(low - high)) if high > -np.inf else -np.inf


@njit(**KERNEL)
def _power_into(x, exponent, out):
    """Write out_i = x_i**exponent, for x_i >= 0."""
    for i in range(x.size):
        out[i] = _exp(exponent * _log_of(x[i]))


@njit(**KERNEL)
def _dot(x, y):
    """Return Σ x y."""
    return _ordered_dot(x, y)


@njit(**KERNEL)
def finite_dot_of(weights, x):
    """Return Σ w x over the positive weights."""
    held = empty(x.size)
    for i in range(x.size):
        held[i] = x[i] if weights[i] > 0 else 0.0
    return _ordered_dot(weights, held)


@njit(**KERNEL)
def distance_of(x, y):
    """Return Σ |x - y|, term after term."""
    total = 0.0
    for i in range(x.size):
        total += abs(x[i] - y[i])
    return total


@njit(**KERNEL)
def _are_at_most(x, y):
    """Tell whether x_i <= y_i for all i."""
    are_all = True
    for i in range(x.size):
        are_all &= x[i] <= y[i]
    return are_all


@njit(**KERNEL)
def _are_between(x, low, high):
    """Tell whether low <= x_i < high for all i."""
    are_all = True
    for i in range(x.size):
        are_all &= low <= x[i] < high
    return are_all


@njit(**KERNEL)
def _below_into(x, out):
    """Write out_i = the next float below x_i, or 0 where x_i is 0."""
    for i in range(x.size):
        out[i] = 0.0 if x[i] == 0 else np.nextafter(x[i], -np.inf)


@njit(**KERNEL)
def _entropies(X, out, start, stop):
    """Write out_i = -Σ_j X_ij log X_ij."""
    terms = empty(X.shape[1])
    for i in range(start, stop):
        for j in range(terms.size):
            x = X[i, j]
            terms[j] = -x * _log(x) if x > 0 else 0.0
        out[i] = total(terms)


def _plain(x: Array) -> Array:
    """Return a C-ordered, read-only float64 array, so that kernels compile for one type only."""
    x = np.ascontiguousarray(x, dtype=np.float64)
    if x.flags.writeable:
        x = x.view()
        x.flags.writeable = False
    return x


def _is_plain(x: object) -> TypeGuard[Vector]:
    """Tell whether kernels take an array without conversion; the check must be fast."""
    return type(x) is np.ndarray and x.ndim == 1 and x.dtype == _REAL and x.flags.c_contiguous


def _each(kernel: Callable[..., None], x: float | Vector, *args: float) -> float | Vector:
    """Apply a kernel to all entries of an array, or to a number."""
    if _is_plain(x):
        out = np.empty(x.size)
        kernel(x, *args, out)
        return out
    x = np.asarray(x, dtype=np.float64)
    out = np.empty(x.size)
    kernel(x.ravel(), *args, out)
    return out.reshape(x.shape) if x.ndim else float(out[0])


@overload
def exp(x: float) -> float: ...
@overload
def exp(x: Vector) -> Vector: ...
def exp(x: float | Vector) -> float | Vector:
    """Return e**x of an array or a number, 0 below -708."""
    return _each(_exp_into, x)


@overload
def expm1(x: float) -> float: ...
@overload
def expm1(x: Vector) -> Vector: ...
def expm1(x: float | Vector) -> float | Vector:
    """Return e**x - 1 of an array or a number."""
    return _each(_expm1_into, x)


@overload
def log(x: float) -> float: ...
@overload
def log(x: Vector) -> Vector: ...
def log(x: float | Vector) -> float | Vector:
    """Return the natural logarithm of an array or a number, -inf of 0."""
    return _each(_log_into, x)


def logaddexp(x: Vector, y: Vector) -> Vector:
    """Return log(e**x + e**y)."""
    out = np.empty(x.size)
    _logaddexp_into(_plain(x), _plain(y), out)
    return out


@overload
def power(x: float, exponent: float) -> float: ...
@overload
def power(x: Vector, exponent: float) -> Vector: ...
def power(x: float | Vector, exponent: float) -> float | Vector:
    """Return x**exponent for x >= 0."""
    return _each(_power_into, x, float(exponent))


def dot(x: Vector, y: Vector) -> float:
    """Return Σ x y."""
    if _is_plain(x) and _is_plain(y):
        return float(_dot(x, y))
    return float(_dot(_plain(x), _plain(y)))


def finite_dot(weights: Vector, x: Vector) -> float:
    """Return Σ w x where empty entries (weight 0) may hold any value."""
    if _is_plain(weights) and _is_plain(x):
        return float(finite_dot_of(weights, x))
    return float(finite_dot_of(_plain(weights), _plain(x)))


def distance(x: Vector, y: Vector) -> float:
    """Return the l1 distance Σ |x - y| of two vectors."""
    return float(distance_of(x, y))


def are_at_most(x: Vector, y: Vector) -> bool:
    """Tell whether x_i <= y_i for all i; no comparison with NaN holds."""
    return bool(_are_at_most(x, y))


def are_between(x: Vector, low: float, high: float) -> bool:
    """Tell whether low <= x_i < high for all i; no comparison with NaN holds."""
    return bool(_are_between(x, low, high))


def below(x: Vector) -> Vector:
    """Return numbers below those that x was rounded from; a difference of 0 is exact."""
    out = np.empty(x.size)
    _below_into(x, out)
    return out


def matvec(A: Matrix, v: Vector) -> Vector:
    """Return A v."""
    out = np.empty(A.shape[0])
    parallel.share(dense.matvec, A.shape[0], A.size, _plain(A), _plain(v), out)
    return out


def rmatvec(A: Matrix, u: Vector) -> Vector:
    """Return Aᵀ u."""
    out = np.empty(A.shape[1])
    parallel.share(dense.rmatvec, A.shape[1], A.size, _plain(A), _plain(u), out)
    return out


def entropy(X: Matrix) -> float:
    """Return -Σ x log x over the entries of a matrix or a vector, where 0 log 0 = 0."""
    X = np.atleast_2d(X)
    out = np.empty(X.shape[0])
    parallel.share(_entropies, X.shape[0], 2 * X.size, _plain(X), out)
    return float(out.sum())


# -- rounding onto the transport polytope ----------------------------------------------------------
#
# These loops add in the plain order of the entries, without SIMD.


@njit(**KERNEL)
def shrink(mass, wanted, out):
    """Write out = min(1, wanted / mass), dividing only below 1; return ‖mass - wanted‖₁."""
    error = 0.0
    for i in range(mass.size):
        error += abs(mass[i] - wanted[i])
        out[i] = wanted[i] / mass[i] if mass[i] > wanted[i] else 1.0
    return error


@njit(**KERNEL)
def shortfall(mass, scaling, wanted, out):
    """Write out = max(wanted - scaling mass, 0); return its sum."""
    total = 0.0
    for i in range(mass.size):
        missing = wanted[i] - scaling[i] * mass[i]
        out[i] = missing if missing > 0 else 0.0
        total += out[i]
    return total
