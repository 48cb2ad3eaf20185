"""Sums in an order that is written down, so that every compilation of a kernel adds alike.

A loop that adds floats becomes SIMD code only if the compiler may reorder it (``reassoc``). What
it then makes of the loop depends on the vector width, on whether the loop was inlined, even on
the distance of two arrays in memory (the scalar loop runs where they might overlap): equal inputs
give other last digits. Kernels therefore compute terms one by one into an array, without fast
mathematics, and add them up here: vector k of ``N_VECTORS`` adds every ``N_VECTORS``-th piece of
``VECTOR`` bytes; the vectors are added in pairs, then the halves of the last one until a number
is left; entries that fill no vector come last.
"""

from __future__ import annotations

import numba
import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .vexp import prefer_wide_vectors

#: Bytes of a vector, and vectors that are added side by side to hide the latency of an addition.
VECTOR, N_VECTORS = 64, 4

_BYTES = {types.float64: 8, types.float32: 4}


def _call(builder, name, *args):
    """Emit a call of an LLVM intrinsic on floats or vectors of them."""
    kind = args[0].type
    is_vector = isinstance(kind, ir.VectorType)
    bits = 64 if (kind.element if is_vector else kind) == ir.DoubleType() else 32
    function = cgutils.get_or_insert_function(
        builder.module, ir.FunctionType(kind, [kind] * len(args)),
        f"llvm.{name}.{f'v{kind.count}' if is_vector else ''}f{bits}",
    )  # fmt: skip
    return builder.call(function, args)


class _Adder:
    """Emits the loops of one or several sums over the entries of the same arrays."""

    def __init__(self, context, builder, dtype, arrays, steps):
        prefer_wide_vectors(builder.function)
        self.builder, self.arrays, self.steps, self.item = builder, arrays, steps, _BYTES[dtype]
        self.size = builder.extract_value(arrays[0].shape, 0)
        self.real, self.width = context.get_data_type(dtype), VECTOR // self.item
        self.vector = ir.VectorType(self.real, self.width)

    def sums(self):
        """Emit everything and return the sums."""
        block = self.width * N_VECTORS
        lanes = [[self._zero(self.vector) for _ in self.steps] for _ in range(N_VECTORS)]
        rest = [self._zero(self.real) for _ in self.steps]
        self._run(self._index(0), self._whole(block), self.vector, lanes)
        self._run(self._whole(block), self._whole(self.width), self.vector, lanes[:1])
        self._run(self._whole(self.width), self.size, self.real, [rest])
        builder = self.builder
        return [
            builder.fadd(self._folded([builder.load(x) for x in vectors]), builder.load(last))
            for vectors, last in zip(zip(*lanes, strict=True), rest, strict=True)
        ]

    def _index(self, number):
        return ir.Constant(self.size.type, number)

    def _whole(self, length):
        """Emit the largest multiple of ``length`` that is not above the size."""
        return self.builder.sub(self.size, self.builder.urem(self.size, self._index(length)))

    def _zero(self, kind):
        return cgutils.alloca_once_value(self.builder, ir.Constant(kind, None))

    def _run(self, start, stop, kind, lanes):
        """Emit the loop that adds entries start..stop, a piece of this kind to each in turn."""
        builder, length = self.builder, self.width if kind is self.vector else 1
        stride = self._index(length * len(lanes))
        with cgutils.for_range_slice(builder, start, stop, stride, self.size.type) as (i, _):
            for k, totals in enumerate(lanes):
                at = builder.add(i, self._index(k * length))
                entries = [self._entry(array, at, kind) for array in self.arrays]
                for step, total in zip(self.steps, totals, strict=True):
                    builder.store(step(builder, builder.load(total), *entries), total)

    def _entry(self, array, at, kind):
        place = self.builder.gep(array.data, [at])
        return self.builder.load(self.builder.bitcast(place, kind.as_pointer()), align=self.item)

    def _folded(self, vectors):
        """Emit the sum of vectors, in pairs, and then of the halves of the last one."""
        builder, width = self.builder, self.width
        while len(vectors) > 1:
            pairs = zip(vectors[::2], vectors[1::2], strict=True)
            vectors = [builder.fadd(x, y) for x, y in pairs]
        (x,) = vectors
        while width > 1:
            width //= 2
            x = builder.fadd(*(self._part(x, first, width) for first in (0, width)))
        return builder.extract_element(x, ir.Constant(ir.IntType(32), 0))

    def _part(self, x, first, width):
        places = ir.Constant(ir.VectorType(ir.IntType(32), width), [*range(first, first + width)])
        return self.builder.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), places)


def _summing(*steps):
    """Return a typing function of an intrinsic that adds by ``step(builder, total, *entries)``."""

    def typed(*arrays):
        is_served = all(
            isinstance(x, types.Array) and x.ndim == 1 and x.layout == "C" and x.dtype in _BYTES
            for x in arrays
        ) and all(x.dtype == arrays[0].dtype for x in arrays)
        if not is_served:
            return None
        dtype = arrays[0].dtype
        result = dtype if len(steps) == 1 else types.UniTuple(dtype, len(steps))

        def generate(context, builder, signature, args):
            held = [
                make_array(kind)(context, builder, x)
                for kind, x in zip(signature.args, args, strict=True)
            ]
            sums = _Adder(context, builder, dtype, held, steps).sums()
            return sums[0] if len(steps) == 1 else context.make_tuple(builder, result, sums)

        return result(*arrays), generate

    return typed


def _first(builder, t, x, *_):
    return builder.fadd(t, x)


def _product(builder, t, x, y, *_):
    return _call(builder, "fma", x, y, t)


def _product_of_others(builder, t, _, y, z):
    return _call(builder, "fma", y, z, t)


def _product_of_ends(builder, t, x, _, z):
    return _call(builder, "fma", x, z, t)


def _absolute(builder, t, x):
    return builder.fadd(t, _call(builder, "fabs", x))


def _difference(builder, t, x, y):
    return builder.fadd(t, _call(builder, "fabs", builder.fsub(x, y)))


def _positive(builder, t, x):
    zero = ir.Constant(x.type, None)
    return builder.fadd(t, builder.select(builder.fcmp_ordered(">", x, zero), x, zero))


@intrinsic
def total(typing_context, x):
    """Return Σ x."""
    return _summing(_first)(x)


@intrinsic
def dot(typing_context, x, y):
    """Return Σ x y."""
    return _summing(_product)(x, y)


@intrinsic
def total_and_dot(typing_context, x, y):
    """Return Σ x and Σ x y."""
    return _summing(_first, _product)(x, y)


@intrinsic
def two_dots(typing_context, x, y, z):
    """Return Σ x y and Σ x z."""
    return _summing(_product, _product_of_ends)(x, y, z)


@intrinsic
def price(typing_context, x, costs, extra):
    """Return Σ x, Σ x costs and Σ costs extra."""
    return _summing(_first, _product, _product_of_others)(x, costs, extra)


@intrinsic
def l1(typing_context, x):
    """Return Σ |x|."""
    return _summing(_absolute)(x)


@intrinsic
def distance(typing_context, x, y):
    """Return Σ |x - y|."""
    return _summing(_difference)(x, y)


@intrinsic
def positive(typing_context, x):
    """Return the sum of the positive x."""
    return _summing(_positive)(x)


@intrinsic
def fma(typing_context, x, y, z):
    """Return x y + z, rounded once."""
    if x not in _BYTES or not x == y == z:
        return None

    def generate(context, builder, signature, args):
        return _call(builder, "fma", *args)

    return x(x, y, z), generate


if numba.config.DISABLE_JIT:  # plain Python for coverage runs

    def total(x):
        """Return Σ x."""
        return x.sum()

    def dot(x, y):
        """Return Σ x y."""
        return np.dot(x, y)

    def total_and_dot(x, y):
        """Return Σ x and Σ x y."""
        return x.sum(), np.dot(x, y)

    def two_dots(x, y, z):
        """Return Σ x y and Σ x z."""
        return np.dot(x, y), np.dot(x, z)

    def price(x, costs, extra):
        """Return Σ x, Σ x costs and Σ costs extra."""
        return x.sum(), np.dot(x, costs), np.dot(costs, extra)

    def l1(x):
        """Return Σ |x|."""
        return np.abs(x).sum()

    def distance(x, y):
        """Return Σ |x - y|."""
        return np.abs(x - y).sum()

    def positive(x):
        """Return the sum of the positive x."""
        return np.maximum(x, 0).sum()

    def fma(x, y, z):
        """Return x y + z."""
        return x * y + z
