"""Sums in a fixed order, so that every compilation of a kernel gives the same bits.

A loop that adds floats becomes SIMD code only if the compiler may reorder it (``reassoc``). The
order then depends on the vector width, on inlining, even on the distance of two arrays in memory
(the scalar loop runs where they might overlap), and equal inputs give different last digits.
Kernels therefore add in loops that are emitted here with explicit vectors. Vector k of
``N_VECTORS`` adds every ``N_VECTORS``-th piece of ``VECTOR`` bytes. The vectors are added in
pairs, then the halves of the last one until a number is left. Entries that fill no vector come
last.
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

from . import exp_log
from .llvm_ops import (
    IS_PLAIN,
    Lane,
    address,
    call,
    keep_order,
    larger,
    like,
    prefer_wide_vectors,
    spread,
)
from .llvm_ops import fma as emit_fma

#: Bytes per vector, and vectors added in parallel to hide the latency of an addition.
VECTOR, N_VECTORS = 64, 4
#: Alignment of all entries, in bytes.
ITEM = 4

_BYTES = {types.float64: 8, types.float32: 4}


def _vector(real, width):
    """Return the type of a vector, or of a number."""
    return real if width == 1 else ir.VectorType(real, width)


class _Adder:
    """Emit the loops that sum one formula over the entries of its arrays.

    The formula takes one entry of each array and the numbers. It returns ``n_written`` values for
    the last arrays, then the terms to add. A pair of terms is a product, added by fma.
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
        """Emit all loops and return the sums."""
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
        """Emit the loop that adds entries start..stop to the lanes in turn, ``width`` at a time."""
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
    """Tell whether the arguments are contiguous float vectors followed by numbers."""
    return all(
        isinstance(x, types.Array) and x.ndim == 1 and x.layout == "C" and x.dtype in _BYTES
        for x in kinds[:n_arrays]
    ) and all(x in _BYTES for x in kinds[n_arrays:])


def summing(
    n_arrays: int, n_sums: int = 1, n_written: int = 0
) -> Callable[[Callable[..., object]], Callable[..., object]]:
    """Turn a formula for one entry of each array into a sum that kernels can call.

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
        """Sum with NumPy, for coverage runs."""

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


# -- sums of terms that are computed on the way ----------------------------------------------------
#
# The inner loops of kernels: sums whose terms are computed as they are added. Each formula is for
# one entry of its arrays, the first arguments, and writes to the last of them. A fused sum has the
# bits of a sum of stored terms.


def _exp(x):
    return x.apply(exp_log.emit_exp) if isinstance(x, Lane) else exp_log.exp(x)


def _exp_below(x):
    return x.apply(exp_log.emit_exp_below) if isinstance(x, Lane) else exp_log.exp_below(x)


def _gibbs(row, g, f, inv_eta):
    """Return the entry exp((f + g - C) / η) of a plan, with the same bits in every kernel."""
    return _exp((f + g - row) * inv_eta)


# -- passes over a cost ------------------------------------------------------------------------


@summing(2)
def exp_sum(row, g, shift, inv_eta):
    """Return Σ exp((g - row - shift) / η)."""
    return (_exp((g - row - shift) * inv_eta),)


@summing(3, n_written=1)
def exp_sum_into(row, g, out, shift, inv_eta):
    """Write exp((g - row - shift) / η) and return the sum."""
    x = _exp((g - row - shift) * inv_eta)
    return x, x


@summing(3, n_written=1)
def gibbs_into(row, g, out, f, inv_eta):
    """Write exp((f + g - row) / η) and return the sum."""
    x = _gibbs(row, g, f, inv_eta)
    return x, x


@summing(3, n_written=1)
def add_gibbs(row, g, part, f, inv_eta):
    """Add x = exp((f + g - row) / η) to the column sums ``part``; return Σ x."""
    x = _gibbs(row, g, f, inv_eta)
    return part + x, x


@summing(3, n_sums=2, n_written=1)
def add_priced_gibbs(row, g, part, f, inv_eta):
    """Add x = exp((f + g - row) / η) to the column sums ``part``; return Σ x and Σ x row."""
    x = _gibbs(row, g, f, inv_eta)
    return part + x, x, (x, row)


@summing(3)
def gibbs_dot(row, g, v, f, inv_eta):
    """Return Σ exp((f + g - row) / η) v."""
    return ((_gibbs(row, g, f, inv_eta), v),)


@summing(4, n_sums=3)
def gibbs_price(row, g, v, d, f, inv_eta):
    """Return Σ x, Σ x row and Σ row d, where x = exp((f + g - row) / η) v."""
    x = _gibbs(row, g, f, inv_eta) * v
    return x, (x, row), (row, d)


# -- PDASMD --------------------------------------------------------------------------------------


def _snapshot(row, snap, log_norm, inv_eta):
    """Return an entry of a row's softmax at the snapshot."""
    return _exp_below(emit_fma(snap - row, inv_eta, -log_norm))


@summing(3, n_written=1)
def softmax_into(row, lam, out, shift, inv_eta):
    """Write exp((λ - row) / η - shift) in the precision of the row, and return the sum.

    The exponent is computed in the precision of λ.
    """
    x = _exp_below(like(emit_fma(lam - like(row, lam), inv_eta, -shift), row))
    return x, x


@summing(4, n_sums=2, n_written=1)
def snapshot_row(row, snap, E, S, log_norm, inv_eta):
    """Write S, the softmax row of the snapshot; return Σ S E and Σ S."""
    x = _snapshot(row, snap, log_norm, inv_eta)
    return x, (x, E), x


@summing(5, n_sums=2, n_written=2)
def both_rows(row, snap, v, E, S, log_norm, best, inv_eta):
    """Write E = exp((v - best) / η) and S, the softmax row; return Σ S E and Σ S."""
    e = _exp_below((v - best) * inv_eta)
    x = _snapshot(row, snap, log_norm, inv_eta)
    return e, x, (x, e), x


@summing(5, n_sums=2, n_written=1)
def two_totals(row, snap, E, F, S, log_norm, inv_eta):
    """Write S, the softmax row of the snapshot; return Σ S E and Σ S F."""
    x = _snapshot(row, snap, log_norm, inv_eta)
    return x, (x, E), (x, F)


@summing(4, n_written=1)
def corrected(mu, S, E, g, ratio, weight):
    """Write g = μ + weight S (E ratio - 1) (step 9) and return ‖g‖₁."""
    x = emit_fma(weight * S, emit_fma(E, ratio, -1.0), mu)
    return x, abs(x)
