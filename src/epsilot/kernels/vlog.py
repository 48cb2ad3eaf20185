"""A vectorisable natural logarithm, the companion of :mod:`.vexp`.

* x = 2**k m with m in [√½, √2), by integer arithmetic on the bits (no 64-bit arithmetic shift
  and no integer conversion, which AVX2 lacks);
* log m = 2 artanh s with s = (m - 1) / (m + 1), |s| <= 0.172, by its series to s**19;
* k ln 2 is added in two parts.

Relative error at most 4e-16 for normal positive x. log 0 = -inf, log inf = inf, and negative
numbers and NaN give NaN; subnormal numbers give about -709 instead of their logarithm.
"""

from __future__ import annotations

import math
import struct

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .llvm_ops import IS_PLAIN, prefer_wide_vectors

_REAL, _INTEGER = ir.DoubleType(), ir.IntType(64)
_SQRT_HALF_BITS = struct.unpack("<q", struct.pack("<d", math.sqrt(0.5)))[0]
_TWO_52_BITS = 0x4330000000000000
_BIAS = 1024 << 52


def _reduced(builder, value, n_terms):
    """Emit the logarithm of a normal positive value, with terms to s**(2 n_terms + 1)."""

    def real(number):
        return ir.Constant(_REAL, number)

    def integer(number):
        return ir.Constant(_INTEGER, number)

    bits = builder.bitcast(value, _INTEGER)
    k = builder.lshr(builder.add(bits, integer(_BIAS - _SQRT_HALF_BITS)), integer(52))
    exponent = builder.shl(k, integer(52))
    m = builder.bitcast(builder.add(builder.sub(bits, exponent), integer(_BIAS)), _REAL)
    k = builder.bitcast(builder.or_(k, integer(_TWO_52_BITS)), _REAL)
    k = builder.fsub(k, real(2.0**52 + 1024))
    s = builder.fdiv(builder.fsub(m, real(1.0)), builder.fadd(m, real(1.0)))
    square = builder.fmul(s, s)
    series = real(1 / (2 * n_terms + 1))
    for i in range(n_terms - 1, 0, -1):
        series = builder.fma(series, square, real(1 / (2 * i + 1)))
    twice = builder.fadd(s, s)
    low = builder.fmul(k, real(1.90821492927058770002e-10))
    tail = builder.fma(builder.fmul(twice, square), series, low)
    return builder.fma(k, real(6.93147180369123816490e-01), builder.fadd(twice, tail))


@intrinsic
def log(typing_context, x):
    """Return the natural logarithm of a float, in float64."""
    if x not in (types.float64, types.float32):
        return None

    def generate(context, builder, signature, args):
        (value,) = args
        prefer_wide_vectors(builder.function)
        result = _reduced(builder, value, 9)
        zero, infinity = ir.Constant(_REAL, 0.0), ir.Constant(_REAL, math.inf)
        for condition, special in (
            (builder.fcmp_ordered("==", value, zero), -math.inf),
            (builder.fcmp_ordered("==", value, infinity), math.inf),
            (builder.fcmp_unordered("<", value, zero), math.nan),
        ):
            result = builder.select(condition, ir.Constant(_REAL, special), result)
        return result

    return types.float64(types.float64), generate


@intrinsic
def rough_log(typing_context, x):
    """Return the logarithm of a normal positive float64 scalar, to a relative 5e-11."""
    if x != types.float64:
        return None

    def generate(context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        return _reduced(builder, args[0], 5)

    return x(x), generate


def _plain_log(x):
    """Return the natural logarithm, in plain Python for coverage runs."""
    with np.errstate(all="ignore"):
        return np.log(x)


if IS_PLAIN:
    log = rough_log = _plain_log
