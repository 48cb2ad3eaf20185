"""Sums in an order that is written down, so that every compilation of a kernel adds alike.

A loop that adds floats becomes SIMD code only if the compiler may reorder it (``reassoc``). What
it then makes of the loop depends on the vector width, on whether the loop was inlined, even on
the distance of two arrays in memory (the scalar loop runs where they might overlap): equal inputs
give other last digits. Kernels therefore add up here, in loops that are emitted with explicit
vectors: vector k of ``N_VECTORS`` adds every ``N_VECTORS``-th piece of ``VECTOR`` bytes; the
vectors are added in pairs, then the halves of the last one until a number is left; entries that
fill no vector come last.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .llvm_ops import IS_PLAIN, Lane, address, call, keep_order, larger, prefer_wide_vectors, spread

#: Bytes of a vector, and vectors that are added side by side to hide the latency of an addition.
VECTOR, N_VECTORS = 64, 4
#: Bytes to whose multiples all entries are aligned.
ITEM = 4

_BYTES = {types.float64: 8, types.float32: 4}


def _vector(real, width):
    """Return the type of a vector, or of a number."""
    return real if width == 1 else ir.VectorType(real, width)


class _Adder:
    """Emits the loops of the sums of one formula over the entries of its arrays.

    The formula takes an entry of each array and the numbers, and returns ``n_written`` values
    for the last arrays, then the terms to add; a pair is a product, added by fma.
    """

    def __init__(self, context, builder, dtype, formula, n_written, arrays, numbers):
        prefer_wide_vectors(builder.function)
        self.context, self.builder = context, builder
        self.formula, self.n_written, self.arrays = formula, n_written, arrays
        self.size = builder.extract_value(arrays[0].shape, 0)
        self.real, self.width = context.get_data_type(dtype), VECTOR // _BYTES[dtype]
        self.numbers = {
            width: [Lane(builder, spread(builder, x, _vector(x.type, width))) for x in numbers]
            for width in (1, self.width)
        }

    def sums(self, n_sums):
        """Emit everything and return the sums."""
        block = self.width * N_VECTORS
        lanes = [[self._zero(self.width) for _ in range(n_sums)] for _ in range(N_VECTORS)]
        rest = [self._zero(1) for _ in range(n_sums)]
        self._run(self._index(0), self._whole(block), self.width, lanes)
        self._run(self._whole(block), self._whole(self.width), self.width, lanes[:1])
        self._run(self._whole(self.width), self.size, 1, [rest])
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

    def _zero(self, width):
        zero = ir.Constant(_vector(self.real, width), None)
        return cgutils.alloca_once_value(self.builder, zero)

    def _run(self, start, stop, width, lanes):
        """Emit the loop that adds entries start..stop, a piece of this width to each in turn."""
        builder, stride = self.builder, self._index(width * len(lanes))
        with cgutils.for_range_slice(builder, start, stop, stride, self.size.type) as (i, _):
            for k, totals in enumerate(lanes):
                at = builder.add(i, self._index(k * width))
                places = [self._place(array, at, width) for array in self.arrays]
                entries = [Lane(builder, builder.load(x, align=ITEM)) for x in places]
                values = self.formula(*entries, *self.numbers[width])
                written = places[len(places) - self.n_written :]
                for value, place in zip(values[: self.n_written], written, strict=True):
                    builder.store(value.value, place, align=ITEM)
                for term, total in zip(values[self.n_written :], totals, strict=True):
                    builder.store(self._added(builder.load(total), term), total)
                keep_order(builder)

    def _added(self, total, term):
        if isinstance(term, tuple):
            return call(self.builder, "fma", term[0].value, term[1].value, total)
        return self.builder.fadd(total, term.value)

    def _place(self, array, at, width):
        place = address(self.context, self.builder, array, at, width)
        kind = _vector(place.type.pointee, width)
        return self.builder.bitcast(place, kind.as_pointer())

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


def _is_served(kinds, n_arrays):
    """Tell whether the arguments are contiguous vectors of floats, then numbers."""
    return all(
        isinstance(x, types.Array) and x.ndim == 1 and x.layout == "C" and x.dtype in _BYTES
        for x in kinds[:n_arrays]
    ) and all(x in _BYTES for x in kinds[n_arrays:])


def summing(
    n_arrays: int, n_sums: int = 1, n_written: int = 0
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Make a function for kernels of a formula for one entry of each of the first arguments.

    The formula returns ``n_written`` values for the last arrays, then the terms of the sums, which
    are in the precision of the first array; all its operands must be of one precision.
    """

    def compiled(formula):
        def typed(typing_context, *kinds):
            if not _is_served(kinds, n_arrays):
                return None
            dtype = kinds[0].dtype
            result = dtype if n_sums == 1 else types.UniTuple(dtype, n_sums)

            def generate(context, builder, signature, args):
                arrays = [
                    make_array(kind)(context, builder, x)
                    for kind, x in zip(signature.args[:n_arrays], args, strict=False)
                ]
                adder = _Adder(context, builder, dtype, formula, n_written, arrays, args[n_arrays:])
                sums = adder.sums(n_sums)
                return sums[0] if n_sums == 1 else context.make_tuple(builder, result, sums)

            return result(*kinds), generate

        first = inspect.Parameter("typing_context", inspect.Parameter.POSITIONAL_OR_KEYWORD)
        own = inspect.signature(formula)
        typed.__signature__ = own.replace(parameters=[first, *own.parameters.values()])
        for name in ("__name__", "__qualname__", "__doc__", "__module__"):
            setattr(typed, name, getattr(formula, name))
        return intrinsic(typed)

    def plain(formula):
        """Make the same of NumPy's operations, for coverage runs."""

        def summed(*args):
            values = formula(*args)
            for array, value in zip(args[n_arrays - n_written : n_arrays], values, strict=False):
                array[:] = value
            sums = [np.dot(*x) if isinstance(x, tuple) else np.sum(x) for x in values[n_written:]]
            return sums[0] if n_sums == 1 else tuple(sums)

        return summed

    return plain if IS_PLAIN else compiled


@summing(1)
def total(x):
    """Return Σ x."""
    return (x,)


@summing(2)
def dot(x, y):
    """Return Σ x y."""
    return ((x, y),)


@summing(1)
def l1(x):
    """Return Σ |x|."""
    return (abs(x),)


@summing(2)
def distance(x, y):
    """Return Σ |x - y|."""
    return (abs(x - y),)


@summing(1)
def positive(x):
    """Return the sum of the positive x."""
    return (larger(x, 0.0),)


@intrinsic
def fma(typing_context, x, y, z):
    """Return x y + z, rounded once."""
    if x not in _BYTES or not x == y == z:
        return None

    def generate(context, builder, signature, args):
        return call(builder, "fma", *args)

    return x(x, y, z), generate


def _plain_fma(x, y, z):
    """Return x y + z, for coverage runs."""
    return x * y + z


if IS_PLAIN:
    fma = _plain_fma
