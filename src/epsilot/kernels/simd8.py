"""SIMD loops on vectors of eight doubles, and sets of 512 bits, for small problems.

Compilers vectorise loops for many iterations, and a row of sixteen entries spends its time in
their set-up. Here such loops are emitted with explicit vectors. Rows are padded to a multiple of
``WIDTH`` entries, and ties are broken alike on every processor. A set is a row of ``BYTES`` bytes;
bit v of it is bit v % 8 of byte v // 8.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .llvm_ops import IS_PLAIN, address, constant, prefer_wide_vectors, spread

#: Entries per vector, rows priced together, bytes per set.
WIDTH, HEIGHT, BYTES = 8, 4, 64

_REAL, _INDEX = ir.DoubleType(), ir.IntType(64)
_REALS, _INDICES = ir.VectorType(_REAL, WIDTH), ir.VectorType(_INDEX, WIDTH)
_SET = ir.VectorType(_INDEX, BYTES // 8)
_FLAGS = ("nnan", "nsz")


class _Code:
    """Emit the parts of the loops below."""

    def __init__(self, context, builder, signature, args):
        prefer_wide_vectors(builder.function)
        self.context, self.builder = context, builder
        self.kinds, self.args = signature.args, args

    def array(self, k):
        """Return argument k, an array."""
        return make_array(self.kinds[k])(self.context, self.builder, self.args[k])

    def number(self, k):
        """Return argument k as an index."""
        return self.context.cast(self.builder, self.args[k], self.kinds[k], types.int64)

    def size(self, k, axis=0):
        """Return the length of argument k along an axis."""
        return self.builder.extract_value(self.array(k).shape, axis)

    def place(self, array, at, kind):
        """Return the address of entry ``at`` as that of a vector."""
        found = address(self.context, self.builder, array, at, BYTES if kind is _SET else WIDTH)
        return self.builder.bitcast(found, kind.as_pointer())

    def load(self, array, at, kind=_REALS):
        """Read a vector from entry ``at`` on."""
        return self.builder.load(self.place(array, at, kind), align=1 if kind is _SET else 8)

    def store(self, value, array, at):
        """Write a vector from entry ``at`` on."""
        align = 1 if value.type is _SET else 8
        self.builder.store(value, self.place(array, at, value.type), align=align)

    def load_one(self, array, at):
        """Read entry ``at``."""
        return self.builder.load(address(self.context, self.builder, array, at))

    def variable(self, value):
        """Return a variable that the loops change."""
        return cgutils.alloca_once_value(self.builder, value)

    def steps(self, stop):
        """Open a loop over 0, WIDTH, 2 WIDTH ..."""
        zero, stride = ir.Constant(_INDEX, 0), ir.Constant(_INDEX, WIDTH)
        return cgutils.for_range_slice(self.builder, zero, stop, stride, _INDEX)

    def lanes(self, at):
        """Return at, at + 1, ..."""
        first = ir.Constant(_INDICES, [ir.Constant(_INDEX, k) for k in range(WIDTH)])
        return self.builder.add(spread(self.builder, at, _INDICES), first)

    def lesser(self, one, two):
        """Return the pair (value, place) with the lesser value, the first if they are equal.

        A third part, the second least value, is updated in the same way.
        """
        is_less = self.builder.fcmp_ordered("<", two[0], one[0], flags=_FLAGS)
        best = [self.builder.select(is_less, y, x) for x, y in zip(one[:2], two[:2], strict=True)]
        if len(one) == 3:
            worse = self.builder.select(is_less, one[0], two[0], flags=_FLAGS)
            best.append(self.smaller(worse, self.smaller(one[2], two[2])))
        return tuple(best)

    def part(self, x, first, width):
        """Return some lanes of a vector."""
        places = ir.Constant(ir.VectorType(ir.IntType(32), width), [*range(first, first + width)])
        return self.builder.shuffle_vector(x, ir.Constant(x.type, ir.Undefined), places)

    def smaller(self, x, y):
        """Return the smaller numbers."""
        is_less = self.builder.fcmp_ordered("<", x, y, flags=_FLAGS)
        return self.builder.select(is_less, x, y, flags=_FLAGS)

    def keep_lesser(self, best, *parts):
        """Store values and places in the variables ``best`` where they are less."""
        held = tuple(self.builder.load(x) for x in best)
        for found, variable in zip(self.lesser(held, parts), best, strict=True):
            self.builder.store(found, variable)

    def least(self, best):
        """Return the least of the lanes of a variable and its place."""
        pair, width = tuple(self.builder.load(x) for x in best), WIDTH
        while width > 1:
            width //= 2
            halves = [tuple(self.part(x, first, width) for x in pair) for first in (0, width)]
            pair = self.lesser(*halves)
        first = ir.Constant(ir.IntType(32), 0)
        return tuple(self.builder.extract_element(x, first) for x in pair)


@intrinsic
def least_of_block(typing_context, C, y, row):
    """Return the least C_ij + y_i - y_j over HEIGHT rows i from ``row`` on, and its column j.

    Prices of columns come first in y, then those of rows.
    """
    kinds = types.Tuple([types.float64, types.int64])

    def generate(context, builder, signature, args):
        code = _Code(context, builder, signature, args)
        costs, prices, m = code.array(0), code.array(1), code.size(0, 1)
        rows = [builder.add(code.number(2), ir.Constant(_INDEX, r)) for r in range(HEIGHT)]
        starts = [builder.mul(row, m) for row in rows]
        own = [spread(builder, code.load_one(prices, builder.add(r, m)), _REALS) for r in rows]
        best = code.variable(constant(_REALS, np.inf)), code.variable(constant(_INDICES, 0))
        with code.steps(m) as (j, _):
            sums = [
                builder.fadd(code.load(costs, builder.add(start, j)), price)
                for start, price in zip(starts, own, strict=True)
            ]
            while len(sums) > 1:
                sums = [code.smaller(*two) for two in zip(sums[::2], sums[1::2], strict=True)]
            reduced = builder.fsub(sums[0], code.load(prices, j))
            code.keep_lesser(best, reduced, code.lanes(j))
        return context.make_tuple(builder, kinds, code.least(best))

    return kinds(C, y, types.int64), generate


@intrinsic
def least_of_row(typing_context, row, g):
    """Return the least row_j - g_j, and its place j."""
    kinds = types.Tuple([types.float64, types.int64])

    def generate(context, builder, signature, args):
        code = _Code(context, builder, signature, args)
        costs, prices = code.array(0), code.array(1)
        best = code.variable(constant(_REALS, np.inf)), code.variable(constant(_INDICES, -1))
        with code.steps(code.size(0)) as (j, _):
            reduced = builder.fsub(code.load(costs, j), code.load(prices, j))
            code.keep_lesser(best, reduced, code.lanes(j))
        return context.make_tuple(builder, kinds, code.least(best))

    return kinds(row, g), generate


@intrinsic
def two_least_of_row(typing_context, row, g):
    """Return the least row_j - g_j, its place j, and the second least."""
    kinds = types.Tuple([types.float64, types.int64, types.float64])

    def generate(context, builder, signature, args):
        code = _Code(context, builder, signature, args)
        costs, prices = code.array(0), code.array(1)
        none = constant(_REALS, np.inf)
        best = code.variable(none), code.variable(constant(_INDICES, 0)), code.variable(none)
        with code.steps(code.size(0)) as (j, _):
            reduced = builder.fsub(code.load(costs, j), code.load(prices, j))
            code.keep_lesser(best, reduced, code.lanes(j), none)
        return context.make_tuple(builder, kinds, code.least(best))

    return kinds(row, g), generate


@intrinsic
def relax(typing_context, row, g, length, i, distances, befores):
    """Shorten distances to length + row_j - g_j, from row i; return the least and its place."""
    kinds = types.Tuple([types.float64, types.int64])

    def generate(context, builder, signature, args):
        code = _Code(context, builder, signature, args)
        costs, prices, distances, befores = (code.array(k) for k in (0, 1, 4, 5))
        length = spread(builder, args[2], _REALS)
        own = spread(builder, code.number(3), _INDICES)
        best = code.variable(constant(_REALS, np.inf)), code.variable(constant(_INDICES, 0))
        with code.steps(code.size(0)) as (j, _):
            reduced = builder.fsub(code.load(costs, j), code.load(prices, j))
            held = code.load(distances, j), code.load(befores, j, _INDICES)
            found = code.lesser(held, (builder.fadd(reduced, length), own))
            code.store(found[0], distances, j)
            code.store(found[1], befores, j)
            code.keep_lesser(best, found[0], code.lanes(j))
        return context.make_tuple(builder, kinds, code.least(best))

    return kinds(row, g, types.float64, types.int64, distances, befores), generate


@intrinsic
def lower_to(typing_context, row, f, g):
    """Lower g_j to row_j - f where that is less."""

    def generate(context, builder, signature, args):
        code = _Code(context, builder, signature, args)
        costs, prices = code.array(0), code.array(2)
        own = spread(builder, args[1], _REALS)
        with code.steps(code.size(0)) as (j, _):
            slack, held = builder.fsub(code.load(costs, j), own), code.load(prices, j)
            code.store(code.smaller(slack, held), prices, j)
        return context.get_dummy_value()

    return types.none(row, types.float64, g), generate


@intrinsic
def add_to(typing_context, row, factor, sums):
    """Add factor row_j to sums_j."""

    def generate(context, builder, signature, args):
        code = _Code(context, builder, signature, args)
        costs, sums = code.array(0), code.array(2)
        factor = spread(builder, args[1], _REALS)
        with code.steps(code.size(0)) as (j, _):
            term = builder.fmul(code.load(costs, j), factor)
            code.store(builder.fadd(code.load(sums, j), term), sums, j)
        return context.get_dummy_value()

    return types.none(row, types.float64, sums), generate


@intrinsic
def add_where(typing_context, sets, u, by, y):
    """Add ``by`` to y_v for the members v of set u."""

    def generate(context, builder, signature, args):
        code = _Code(context, builder, signature, args)
        bits, y = code.array(0), code.array(3)
        start = builder.mul(code.number(1), ir.Constant(_INDEX, BYTES))
        by, nothing = spread(builder, args[2], _REALS), constant(_REALS, 0.0)
        with code.steps(code.size(3)) as (v, _):
            at = builder.add(start, builder.lshr(v, ir.Constant(_INDEX, 3)))
            byte = code.load_one(bits, at)
            is_member = builder.bitcast(byte, ir.VectorType(ir.IntType(1), WIDTH))
            step = builder.select(is_member, by, nothing)
            code.store(builder.fadd(code.load(y, v), step), y, v)
        return context.get_dummy_value()

    return types.none(sets, types.int64, types.float64, y), generate


def _on_sets(formula):
    """Return an intrinsic that writes a formula of two sets to a third: out = formula(s, t)."""

    @intrinsic
    def of_sets(typing_context, sets, out, s, t):
        def generate(context, builder, signature, args):
            code = _Code(context, builder, signature, args)
            bits, size = code.array(0), ir.Constant(_INDEX, BYTES)
            out, s, t = (builder.mul(code.number(k), size) for k in (1, 2, 3))
            value = formula(builder, code.load(bits, s, _SET), code.load(bits, t, _SET))
            code.store(value, bits, out)
            return context.get_dummy_value()

        return types.none(sets, types.int64, types.int64, types.int64), generate

    return of_sets


#: Write the union, or the difference, of sets s and t to the set ``out``.
unite = _on_sets(lambda builder, s, t: builder.or_(s, t))
subtract = _on_sets(lambda builder, s, t: builder.and_(s, builder.not_(t)))


if IS_PLAIN:  # plain Python for coverage runs

    def least_of_block(C, y, row):
        """Return the least C_ij + y_i - y_j over HEIGHT rows i, and its column j."""
        m = C.shape[1]
        rows = slice(row, row + HEIGHT)
        return least_of_row((C[rows] + y[m:][rows, None]).min(axis=0), y[:m])

    def least_of_row(row, g):
        """Return the least row_j - g_j, and its place j."""
        j = int(np.argmin(row - g))
        return row[j] - g[j], j

    def two_least_of_row(row, g):
        """Return the least row_j - g_j, its place j, and the second least."""
        least, j = least_of_row(row, g)
        return least, j, np.delete(row - g, j).min()

    def relax(row, g, length, i, distances, befores):
        """Shorten distances to length + row_j - g_j, from row i; return the least."""
        found = row - g + length
        befores[found < distances] = i
        np.minimum(distances, found, out=distances)
        return least_of_row(distances, np.zeros_like(g))

    def lower_to(row, f, g):
        """Lower g_j to row_j - f where that is less."""
        np.minimum(g, row - f, out=g)

    def add_to(row, factor, sums):
        """Add factor row_j to sums_j."""
        sums += factor * row

    def add_where(sets, u, by, y):
        """Add ``by`` to y_v for the members v of set u."""
        y[np.unpackbits(sets[u], bitorder="little")[: y.size] > 0] += by

    def unite(sets, out, s, t):
        """Write the union of sets s and t."""
        sets[out] = sets[s] | sets[t]

    def subtract(sets, out, s, t):
        """Write the difference of sets s and t."""
        sets[out] = sets[s] & ~sets[t]
