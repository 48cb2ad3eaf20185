"""Vectorisable exponential and logarithm, with the same bits on every processor.

``math.exp`` inside a numba loop stays a scalar call, and rounds as the system's library does.
Here exp is emitted as straight-line LLVM code, on floats or vectors of them, so that the loop
around it becomes SIMD code:

* k = round(x / ln 2) by adding and subtracting 1.5 * 2**52, whose low bits then hold k;
* r = x - k ln 2 with a two-constant ln 2, |r| <= ln 2 / 2;
* 1 + r + r² q(r) by Horner's rule, where q minimises the largest relative error;
* 2**k is added to the exponent bits of the result.

Relative error at most 7e-16 (float64) and 2.3e-7 (float32). Below -708 (-87) the result is
0, above the overflow threshold inf, and NaN stays NaN. The instructions carry no fast-math
flags.
"""

from __future__ import annotations

import math
import struct
from typing import NamedTuple

import numpy as np
from llvmlite import ir
from numba import types
from numba.extending import intrinsic

from .compiling import INLINE, njit
from .llvm_ops import IS_PLAIN, call, constant, integers, prefer_wide_vectors


class _Format(NamedTuple):
    """Constants of one floating-point format."""

    mantissa: int
    low: float
    high: float
    ln2_high: float
    ln2_low: float
    polynomial: tuple[float, ...]  # from the highest power

    @property
    def rounder(self) -> float:
        """A number so large that adding it rounds to whole numbers."""
        return 1.5 * 2.0**self.mantissa


LOG2_E = 1.4426950408889634

_DOUBLE = _Format(
    52, -708.0, 709.782712893384, 6.93147180369123816490e-01, 1.90821492927058770002e-10,
    (
        2.7476808436201135e-07, 2.763500604211804e-06, 2.480193177991432e-05,
        0.00019841185203057628, 0.0013888888516073422, 0.0083333333708921, 0.04166666666813741,
        0.16666666666611513, 0.49999999999998324, 1.0, 1.0,
    ),
)  # fmt: skip
_SINGLE = _Format(
    23, -87.0, 88.72283, 0.693359375, -2.12194440e-4,
    (0.008312520183297138, 0.04189015693027246, 0.16667114649773096, 0.4999923149425397, 1.0, 1.0),
)  # fmt: skip
_FORMATS = {types.float64: _DOUBLE, types.float32: _SINGLE}


def _format(kind):
    """Return the constants of a type, and a function that makes constants of that type."""
    element = kind.element if isinstance(kind, ir.VectorType) else kind
    fmt, dtype = (_DOUBLE, np.float64) if element == ir.DoubleType() else (_SINGLE, np.float32)
    return fmt, lambda number: constant(kind, float(dtype(number)))


@intrinsic
def wide_vectors(typing_context):
    """Let LLVM use 512-bit vectors in the calling kernel."""

    def generate(context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        return context.get_dummy_value()

    return types.none(), generate


@intrinsic
def larger(typing_context, x, y):
    """Return the larger of two floats that are not NaN, so that a maximum is vectorised.

    The flags must be on the selection itself: without them LLVM keeps the order of comparisons.
    Of zeros of either sign, either may be returned.
    """
    if x not in _FORMATS or x != y:
        return None

    def generate(context, builder, signature, args):
        flags = ("nnan", "nsz")
        is_larger = builder.fcmp_ordered(">", *args, flags=flags)
        return builder.select(is_larger, *args, flags=flags)

    return x(x, y), generate


def _core(builder, value):
    """Emit e**value for a value in range."""
    prefer_wide_vectors(builder.function)
    fmt, real = _format(value.type)
    bits, rounder = integers(value.type), real(fmt.rounder)
    rounded = call(builder, "fma", value, real(LOG2_E), rounder)
    minus_k = builder.fsub(rounder, rounded)
    r = call(builder, "fma", minus_k, real(fmt.ln2_high), value)
    r = call(builder, "fma", minus_k, real(fmt.ln2_low), r)
    result = real(fmt.polynomial[0])
    for coefficient in fmt.polynomial[1:]:
        result = call(builder, "fma", result, r, real(coefficient))
    exponent = builder.shl(builder.bitcast(rounded, bits), constant(bits, fmt.mantissa))
    return builder.bitcast(builder.add(builder.bitcast(result, bits), exponent), value.type)


def emit_exp(builder, value):
    """Emit e**value."""
    fmt, real = _format(value.type)
    result = _core(builder, value)
    is_low = builder.fcmp_ordered("<", value, real(fmt.low))
    result = builder.select(is_low, real(0.0), result)
    is_high = builder.fcmp_ordered(">", value, real(fmt.high))
    result = builder.select(is_high, real(math.inf), result)
    return builder.select(builder.fcmp_unordered("uno", value, value), value, result)


def emit_exp_below(builder, value):
    """Emit e**value for a value that is not NaN and does not overflow."""
    fmt, real = _format(value.type)
    flags = ("nnan", "nsz")
    is_large = builder.fcmp_ordered(">", value, real(fmt.low), flags=flags)
    return _core(builder, builder.select(is_large, value, real(fmt.low), flags=flags))


@intrinsic
def exp(typing_context, x):
    """Return e**x for a float32 or float64 scalar."""
    if x not in _FORMATS:
        return None

    def generate(context, builder, signature, args):
        return emit_exp(builder, args[0])

    return x(x), generate


@intrinsic
def exp_below(typing_context, x):
    """Return e**x for an x known to be below 709 (88), not NaN; at least e**-708 (e**-87).

    20 % faster than :func:`exp`, which checks for overflow and NaN.
    """
    if x not in _FORMATS:
        return None

    def generate(context, builder, signature, args):
        return emit_exp_below(builder, args[0])

    return x(x), generate


@intrinsic
def power_of_two(typing_context, k):
    """Return 2**k for a whole float64 number k of at most 1023; 0 below -1000."""
    if k != types.float64:
        return None

    def generate(context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        real, bits = args[0].type, integers(args[0].type)
        held = builder.fadd(args[0], ir.Constant(real, _DOUBLE.rounder))
        held = builder.shl(builder.bitcast(held, bits), ir.Constant(bits, _DOUBLE.mantissa))
        result = builder.bitcast(builder.add(held, ir.Constant(bits, 1023 << 52)), real)
        is_small = builder.fcmp_ordered("<", args[0], ir.Constant(real, -1000.0))
        return builder.select(is_small, ir.Constant(real, 0.0), result)

    return k(k), generate


@intrinsic
def exponent(typing_context, x):
    """Return the whole number k with 2**k <= x < 2**(k + 1), for a normal positive float64 x."""
    if x != types.float64:
        return None

    def generate(context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        real, bits = args[0].type, integers(args[0].type)
        held = builder.bitcast(args[0], bits)
        held = builder.lshr(held, ir.Constant(bits, _DOUBLE.mantissa))
        held = builder.or_(held, ir.Constant(bits, 0x4330000000000000))
        held = builder.bitcast(held, real)
        return builder.fsub(held, ir.Constant(real, 2.0**52 + 1023))

    return x(x), generate


if IS_PLAIN:  # plain Python for coverage runs

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
        return np.exp(np.maximum(x, -708.0))

    def larger(x, y):
        """Return the larger of two numbers."""
        return x if x > y else y

    def wide_vectors():
        """Do nothing."""


# -- logarithm -------------------------------------------------------------------------------------
#
# * x = 2**k m with m in [√½, √2), by integer arithmetic on the bits (no 64-bit arithmetic shift
#   and no integer conversion, which AVX2 lacks);
# * log m = 2 artanh s with s = (m - 1) / (m + 1), |s| <= 0.172, by its series to s**19;
# * k ln 2 is added in two parts.
#
# Relative error at most 4e-16 for normal positive x. log 0 = -inf, log inf = inf, and negative
# numbers and NaN give NaN; subnormal numbers give about -709 instead of their logarithm.

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


# -- powers ----------------------------------------------------------------------------------------

_LN2 = float.fromhex("0x1.62e42fefa39efp-1")  # log 2
_SQRT_2 = math.sqrt(2.0)
_SPLITTER = 2.0**27 + 1
_ROUNDER = 1.5 * 2.0**52
_LEAST_NORMAL = float(np.finfo(np.float64).tiny)


@njit(**{**INLINE, "cache": False})
def power(x, y):
    """Return x**y for x >= 0 and y > 0, to a relative error of about 1e-16 (3 + y).

    With x = 2**k m, the product y k is split into a whole number and a rest without rounding, so
    that large and small x are as accurate as others. Subnormal numbers count as 0.
    """
    x = np.float64(x)
    is_tiny = x < _LEAST_NORMAL
    x = 1.0 if is_tiny else x
    k = exponent(x)
    m = x * power_of_two(-k)
    is_high = m > _SQRT_2
    m = 0.5 * m if is_high else m
    k = k + 1.0 if is_high else k
    wide = y * _SPLITTER
    high = wide - (wide - y)  # 26 bits, so that high * k is exact
    power = y * log(m)
    n = (y * k + power * LOG2_E + _ROUNDER) - _ROUNDER
    rest = ((high * k - n) + (y - high) * k) * _LN2 + power
    return 0.0 if is_tiny else exp(rest) * power_of_two(n)
