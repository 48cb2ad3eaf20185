"""The tiles that products of matrices are made of, in an order that is written down.

Every entry of a product is Σ_k A_ik B_kj, one fma after the other in the order of k, whatever the
tiles and the number of threads: BLAS chooses its order by processor, threads and sizes.

``DEPTH`` of the k are taken at a time, and ``ROWS`` rows of A, which stay in the second cache; a
panel of ``WIDTH`` columns of B is copied so that it lies along memory and stays in the first. A
tile of ``HEIGHT`` by ``WIDTH`` sums is held in registers, which are fewer without AVX-512: sums
wait in ``out`` for the next k, and have the same bits whatever the sizes here are.
"""

from __future__ import annotations

from itertools import product

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .compiling import njit
from .dense import SUM
from .llvm_ops import IS_PLAIN, address, call, prefer_wide_vectors, spread

#: Numbers of a vector register, as LLVM sees it.
VECTOR = 8
DEPTH, ROWS = 256, 192


def _tile_sizes():
    """Return height and width of a tile, by the registers that code is compiled for."""
    is_host = not (config.CPU_NAME or config.CPU_FEATURES)
    is_wide = is_host and binding.get_host_cpu_features().get("avx512f", False)
    return (8, 16) if is_wide else (6, 8)


HEIGHT, WIDTH = _tile_sizes()


_DOUBLE, _SINGLE = ir.DoubleType(), ir.FloatType()


def _tile(width, real=_DOUBLE, n_lanes=VECTOR, is_fresh=False):
    """Return an intrinsic that adds a product to ``HEIGHT`` rows and ``width`` columns.

    ``real`` is the type of all numbers, of which a vector has ``n_lanes``; ``is_fresh`` tells that
    sums begin at 0 instead of what is there.
    """

    @intrinsic
    def tile(typing_context, A, first, k0, panel, out, row, col):
        """out[row + r, col + c] += Σ_k A[first + r, k0 + k] panel[k, c]."""

        def generate(context, builder, signature, args):
            prefer_wide_vectors(builder.function)
            kinds = signature.args
            a, b, c = (make_array(kinds[k])(context, builder, args[k]) for k in (0, 3, 4))
            index, align = args[1].type, 64 // n_lanes
            vector = ir.VectorType(real, n_lanes)

            def after(start, k):
                return builder.add(start, ir.Constant(index, k))

            def place(array, at_row, at_col, kind):
                start = builder.mul(at_row, builder.extract_value(array.shape, 1))
                n_entries = n_lanes if kind is vector else 1
                found = address(context, builder, array, builder.add(start, at_col), n_entries)
                return builder.bitcast(found, kind.as_pointer())

            tiles = list(product(range(HEIGHT), range(0, width, n_lanes)))
            places = [place(c, after(args[5], r), after(args[6], j), vector) for r, j in tiles]
            begin = [
                ir.Constant(vector, None) if is_fresh else builder.load(x, align=align)
                for x in places
            ]
            sums = [cgutils.alloca_once_value(builder, x) for x in begin]
            with cgutils.for_range(builder, builder.extract_value(b.shape, 0)) as loop:
                k, zero = loop.index, ir.Constant(index, 0)
                entries = {
                    j: builder.load(place(b, k, after(zero, j), vector), align=align)
                    for j in range(0, width, n_lanes)
                }
                for (r, j), total in zip(tiles, sums, strict=True):
                    at = place(a, after(args[1], r), builder.add(args[2], k), real)
                    factor = spread(builder, builder.load(at), vector)
                    held = call(builder, "fma", factor, entries[j], builder.load(total))
                    builder.store(held, total)
            for total, x in zip(sums, places, strict=True):
                builder.store(builder.load(total), x, align=align)
            return context.get_dummy_value()

        at = types.intp
        return types.none(A, at, at, panel, out, at, at), generate

    return tile


def _plain_tile(A, first, k0, panel, out, row, col):
    """Add to a tile, for coverage runs."""
    rows = A[first : first + HEIGHT, k0 : k0 + len(panel)]
    width = min(WIDTH, out.shape[1] - col)
    out[row : row + HEIGHT, col : col + width] += np.dot(rows, panel[:, :width])


def _plain_single_tile(A, first, k0, panel, out, row, col):
    """Write a tile, for coverage runs."""
    rows = A[first : first + HEIGHT, k0 : k0 + len(panel)]
    width = min(SINGLE_WIDTH, out.shape[1] - col)
    out[row : row + HEIGHT, col : col + width] = np.dot(rows, panel[:, :width])


#: Columns of a tile of float32, of which a register has twice as many.
SINGLE_WIDTH = 2 * WIDTH

if IS_PLAIN:
    _wide_tile = _narrow_tile = _plain_tile
    _single_tile = _plain_single_tile
else:
    _wide_tile, _narrow_tile = _tile(WIDTH), _tile(VECTOR)
    _single_tile = _tile(SINGLE_WIDTH, _SINGLE, 2 * VECTOR, is_fresh=True)


@njit(**SUM)
def empty_panels(n_cols, depth):
    """Return space for panels of columns of B."""
    return np.zeros((-(-n_cols // WIDTH), depth, WIDTH))


@njit(**SUM)
def multiply(A, first, last, k0, panels, depth, out, row, col, stop):
    """Add the product of A[first:last, k0:k0 + depth] and panels to out[row:, col:stop]."""
    edge, rest = np.zeros((HEIGHT, WIDTH)), np.zeros((HEIGHT, depth))
    whole = last - (last - first) % HEIGHT
    for i in range(whole, last):
        for k in range(depth):
            rest[i - whole, k] = A[i, k0 + k]
    for p in range(panels.shape[0]):
        c, panel = col + p * WIDTH, panels[p, :depth]
        width = min(WIDTH, stop - c)
        for i in range(first, last, HEIGHT):
            height, at = min(HEIGHT, last - i), row + i - first
            if height == HEIGHT and width == WIDTH:
                _wide_tile(A, i, k0, panel, out, at, c)
                continue
            edge[:height, :width] = out[at : at + height, c : c + width]
            if height < HEIGHT:
                _wide_tile(rest, 0, 0, panel, edge, 0, 0)
            elif width > VECTOR:
                _wide_tile(A, i, k0, panel, edge, 0, 0)
            else:
                _narrow_tile(A, i, k0, panel, edge, 0, 0)
            out[at : at + height, c : c + width] = edge[:height, :width]


@njit(**SUM)
def multiply_singles(A, panels, out, start, stop):
    """out = A B in float32, on tiles ``start:stop`` of rows, of which A and out have whole ones."""
    edge = np.empty((HEIGHT, SINGLE_WIDTH), np.float32)
    for p in range(panels.shape[0]):
        col = p * SINGLE_WIDTH
        width = min(SINGLE_WIDTH, out.shape[1] - col)
        for row in range(start * HEIGHT, stop * HEIGHT, HEIGHT):
            if width == SINGLE_WIDTH:
                _single_tile(A, row, 0, panels[p], out, row, col)
            else:
                _single_tile(A, row, 0, panels[p], edge, 0, 0)
                out[row : row + HEIGHT, col:] = edge[:, :width]
