"""Exponentials as a factor and a whole power of two, which every product with them keeps apart.

exp(x / η) = m 2**k may be far out of the range of floats, and rounding x / η may have cost it
digits; but m and k are what they are, and multiplying by powers of two rounds nothing.
"""

from __future__ import annotations

import math

import numpy as np

from .. import parallel
from .._types import Vector
from ..kernels import grid as kernels


def split(x: Vector, shift: float, eta: float) -> tuple[Vector, Vector]:
    """Return factors m and whole powers k with exp((x - shift) / η) = m 2**k."""
    m, k = np.empty(x.size), np.empty(x.size)
    parallel.share(kernels.split, x.size, x.size, x, shift, 1 / eta, m, k)
    return m, k


def lifted(m: Vector, k: Vector, level: float, v: Vector) -> Vector:
    """Return v m 2**(k - level)."""
    out = np.zeros(v.size)
    if level == -math.inf:
        return out
    parallel.share(kernels.lift, v.size, v.size, m, k, level, v, out)
    return out


def geometric(m: float, k: float, length: int) -> tuple[Vector, Vector]:
    """Return the powers 0, 1, ... of m 2**k as factors and whole powers of two, by doubling."""
    factors, powers = np.ones(length), np.zeros(length)
    done = 1
    while done < length:
        end = min(2 * done, length)
        factors[done:end], extra = np.frexp(factors[: end - done] * m)
        powers[done:end] = powers[: end - done] + k + extra
        (m,), (more,) = np.frexp([m * m])
        k, done = 2 * k + more, end
    return factors, powers


def landed(
    f: Vector, shift: float, eta: float, level: float | Vector, *fields: Vector
) -> list[Vector]:
    """Return exp((f - shift) / η) 2**level times the fields."""
    m, k = split(f, shift, eta)
    k += level
    for x in fields:
        parallel.share(kernels.land, x.size, x.size, m, k, 0.0, x)
    return list(fields)


def joined(m: Vector, k: Vector) -> Vector:
    """Return m 2**k, 0 below the range of floats."""
    return np.asarray(np.ldexp(m, np.maximum(k, -2000.0).astype(np.int32)))
