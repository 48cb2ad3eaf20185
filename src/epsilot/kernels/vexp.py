"""A vectorisable exponential.

``math.exp`` inside a numba loop stays a scalar call. Here exp is emitted as straight-line
LLVM code, so that the loop around it becomes SIMD code:

* k = round(x / ln 2) by adding and subtracting 1.5 * 2**52, whose low bits then hold k;
* r = x - k ln 2 with a two-constant ln 2, |r| <= ln 2 / 2;
* a Taylor polynomial of degree 11 (6 in float32) in r, by Horner's rule;
* 2**k is added to the exponent bits of the result.

Relative error at most 9e-15 (float64) and 2.3e-7 (float32). Below -708 (-87) the result is
0, above the overflow threshold inf, and NaN stays NaN. The instructions carry no fast-math
flags, so callers may use ``reassoc`` for their sums without folding the rounding trick away.
"""

from __future__ import annotations

import math

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

_WIDE = '"prefer-vector-width"="512"'


class _Format:
    """Constants of one floating-point format."""

    def __init__(self, real, bits, mantissa, low, high, ln2_high, ln2_low, degree, dtype):
        self.real, self.integer, self.mantissa = real, ir.IntType(bits), mantissa
        self.low, self.high = self(low, dtype), self(high, dtype)
        self.ln2_high, self.ln2_low = self(ln2_high, dtype), self(ln2_low, dtype)
        self.log2_e = self(1 / math.log(2), dtype)
        self.rounder = self(1.5 * 2.0**mantissa, dtype)
        self.taylor = [self(1 / math.factorial(k), dtype) for k in range(degree, -1, -1)]
        self.zero, self.infinity = self(0.0, dtype), self(math.inf, dtype)

    def __call__(self, value, dtype):
        return ir.Constant(self.real, float(dtype(value)))


_FORMATS = {
    types.float64: _Format(
        ir.DoubleType(), 64, 52, -708.0, 709.782712893384,
        6.93147180369123816490e-01, 1.90821492927058770002e-10, 11, np.float64,
    ),
    types.float32: _Format(
        ir.FloatType(), 32, 23, -87.0, 88.72283, 0.693359375, -2.12194440e-4, 6, np.float32
    ),
}  # fmt: skip


def prefer_wide_vectors(function):
    """Ask LLVM for 512-bit vectors in one function, where the CPU has them."""
    set.add(function.attributes, _WIDE)  # llvmlite's own add knows only unquoted names


@intrinsic
def wide_vectors(typing_context):
    """Mark the calling kernel as one that profits from 512-bit vectors."""

    def generate(context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def larger(typing_context, x, y):
    """Return the larger of two floats that are not NaN, so that a maximum is vectorised.

    The flags must be on the selection itself: without them LLVM keeps the order of comparisons.
    """
    if x not in _FORMATS or x != y:
        return None

    def generate(context, builder, signature, args):
        flags = ("nnan", "nsz")
        is_larger = builder.fcmp_ordered(">", *args, flags=flags)
        return builder.select(is_larger, *args, flags=flags)

    return x(x, y), generate


def _core(builder, fmt, value):
    """Emit e**value for a value in range."""
    prefer_wide_vectors(builder.function)
    rounded = builder.fma(value, fmt.log2_e, fmt.rounder)
    minus_k = builder.fsub(fmt.rounder, rounded)
    r = builder.fma(minus_k, fmt.ln2_high, value)
    r = builder.fma(minus_k, fmt.ln2_low, r)
    result = fmt.taylor[0]
    for coefficient in fmt.taylor[1:]:
        result = builder.fma(result, r, coefficient)
    exponent = builder.shl(
        builder.bitcast(rounded, fmt.integer), ir.Constant(fmt.integer, fmt.mantissa)
    )
    bits = builder.add(builder.bitcast(result, fmt.integer), exponent)
    return builder.bitcast(bits, fmt.real)


@intrinsic
def exp(typing_context, x):
    """Return e**x for a float32 or float64 scalar."""
    if x not in _FORMATS:
        return None
    fmt = _FORMATS[x]

    def generate(context, builder, signature, args):
        (value,) = args
        result = _core(builder, fmt, value)
        result = builder.select(builder.fcmp_ordered("<", value, fmt.low), fmt.zero, result)
        result = builder.select(builder.fcmp_ordered(">", value, fmt.high), fmt.infinity, result)
        return builder.select(builder.fcmp_unordered("uno", value, value), value, result)

    return x(x), generate


@intrinsic
def exp_below(typing_context, x):
    """Return e**x for an x known to be below 709 (88), not NaN; at least e**-708 (e**-87).

    A fifth cheaper than :func:`exp`, which looks for overflow and NaN.
    """
    if x not in _FORMATS:
        return None
    fmt = _FORMATS[x]

    def generate(context, builder, signature, args):
        flags = ("nnan", "nsz")
        is_large = builder.fcmp_ordered(">", args[0], fmt.low, flags=flags)
        return _core(builder, fmt, builder.select(is_large, args[0], fmt.low, flags=flags))

    return x(x), generate


@intrinsic
def power_of_two(typing_context, k):
    """Return 2**k for a whole float64 number k of at most 1023; 0 below -1000."""
    if k != types.float64:
        return None
    fmt = _FORMATS[k]

    def generate(context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        bits = builder.bitcast(builder.fadd(args[0], fmt.rounder), fmt.integer)
        bits = builder.shl(bits, ir.Constant(fmt.integer, fmt.mantissa))
        result = builder.bitcast(builder.add(bits, ir.Constant(fmt.integer, 1023 << 52)), fmt.real)
        is_small = builder.fcmp_ordered("<", args[0], ir.Constant(fmt.real, -1000.0))
        return builder.select(is_small, fmt.zero, result)

    return k(k), generate


@intrinsic
def exponent(typing_context, x):
    """Return the whole number k with 2**k <= x < 2**(k + 1), for a normal positive float64 x."""
    if x != types.float64:
        return None
    fmt = _FORMATS[x]

    def generate(context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        bits = builder.bitcast(args[0], fmt.integer)
        bits = builder.lshr(bits, ir.Constant(fmt.integer, fmt.mantissa))
        bits = builder.or_(bits, ir.Constant(fmt.integer, 0x4330000000000000))
        held = builder.bitcast(bits, fmt.real)
        return builder.fsub(held, ir.Constant(fmt.real, 2.0**52 + 1023))

    return x(x), generate


if numba.config.DISABLE_JIT:  # plain Python for coverage runs

    def power_of_two(k):
        """Return 2**k, 0 below -1000."""
        return 2.0**k if k >= -1000 else 0.0

    def exponent(x):
        """Return the exponent of x."""
        return float(math.frexp(x)[1] - 1)

    def exp(x):
        """Return e**x."""
        with np.errstate(all="ignore"):
            return np.exp(x)

    def exp_below(x):
        """Return e**x, at least e**-708."""
        return np.exp(max(x, -708.0))

    def larger(x, y):
        """Return the larger of two numbers."""
        return x if x > y else y

    def wide_vectors():
        """Do nothing."""
