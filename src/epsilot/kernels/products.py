"""Products of matrices and Cholesky factors, in an order that is written down.

Every entry of a product is Σ_k A_ik B_kj, one fma after the other in the order of k, whatever the
tiles and the number of threads: BLAS chooses its order by processor, threads and sizes.

A panel of ``WIDTH`` columns of B is copied so that it lies along memory; ``HEIGHT`` rows of A meet
it in registers, which is what sixteen of 256 bits hold.
"""

from __future__ import annotations

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .. import parallel
from .._types import Array, Matrix, Vector
from .dense import SUM
from .lanes import IS_PLAIN, call, prefer_wide_vectors, spread
from .sums import dot

WIDTH, HEIGHT = 8, 6
#: Columns of a Cholesky factor that are found together.
BLOCK = 64


def _tile(height):
    """Return an intrinsic that writes a tile of a product, ``height`` rows by ``WIDTH`` columns."""

    @intrinsic
    def tile(typing_context, A, i, panel, out, row, col):
        """Write out[row + r, col : col + WIDTH] = A[i + r] panel."""

        def generate(context, builder, signature, args):
            prefer_wide_vectors(builder.function)
            kinds = signature.args
            a, b, c = (make_array(kinds[k])(context, builder, args[k]) for k in (0, 2, 3))
            real, index = ir.DoubleType(), args[1].type
            vector = ir.VectorType(real, WIDTH)

            def place(array, at_row, at_col, kind):
                start = builder.mul(at_row, builder.extract_value(array.shape, 1))
                found = builder.gep(array.data, [builder.add(start, at_col)])
                return builder.bitcast(found, kind.as_pointer())

            zero = ir.Constant(vector, None)
            sums = [cgutils.alloca_once_value(builder, zero) for _ in range(height)]
            rows = [builder.add(args[1], ir.Constant(index, r)) for r in range(height)]
            with cgutils.for_range(builder, builder.extract_value(b.shape, 0)) as loop:
                k, first = loop.index, ir.Constant(index, 0)
                entries = builder.load(place(b, k, first, vector), align=8)
                for at, total in zip(rows, sums, strict=True):
                    factor = spread(builder, builder.load(place(a, at, k, real)), vector)
                    held = call(builder, "fma", factor, entries, builder.load(total))
                    builder.store(held, total)
            for r, total in enumerate(sums):
                at = builder.add(args[4], ir.Constant(index, r))
                builder.store(builder.load(total), place(c, at, args[5], vector), align=8)
            return context.get_dummy_value()

        return types.none(A, types.intp, panel, out, types.intp, types.intp), generate

    return tile


_tall_tile, _flat_tile = _tile(HEIGHT), _tile(1)


@njit(**SUM)
def _pack(B, first, panel):
    """Copy a panel of columns of B, padded with zeros."""
    width = min(WIDTH, B.shape[1] - first)
    for k in range(B.shape[0]):
        for j in range(width):
            panel[k, j] = B[k, first + j]
        for j in range(width, WIDTH):
            panel[k, j] = 0.0


@njit(**SUM)
def _product(A, B, is_by_rows, out, start, stop):
    """out = A B, on rows ``start:stop`` or on that many panels of columns."""
    n, m = out.shape
    r0, r1 = (start, stop) if is_by_rows else (0, n)
    c0, c1 = (0, m) if is_by_rows else (start * WIDTH, min(stop * WIDTH, m))
    panel, edge = np.empty((B.shape[0], WIDTH)), np.empty((HEIGHT, WIDTH))
    for col in range(c0, c1, WIDTH):
        width = min(WIDTH, m - col)
        _pack(B, col, panel)
        for row in range(r0, r1, HEIGHT):
            height = min(HEIGHT, r1 - row)
            if height == HEIGHT and width == WIDTH:
                _tall_tile(A, row, panel, out, row, col)
                continue
            if height == HEIGHT:
                _tall_tile(A, row, panel, edge, 0, 0)
            else:
                for r in range(height):
                    _flat_tile(A, row + r, panel, edge, r, 0)
            out[row : row + height, col : col + width] = edge[:height, :width]


def _plain_product(A, B, is_by_rows, out, start, stop):
    """out = A B, for coverage runs."""
    if is_by_rows:
        out[start:stop] = np.dot(A[start:stop], B)
    else:
        columns = slice(start * WIDTH, stop * WIDTH)
        out[:, columns] = np.dot(A, B[:, columns])


if IS_PLAIN:
    _product = _plain_product


def product(A: Array, B: Array) -> Matrix:
    """Return A B."""
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    n, m = A.shape[0], B.shape[1]
    out = np.empty((n, m))
    is_by_rows = n >= m
    n_items = n if is_by_rows else -(-m // WIDTH)
    parallel.share(_product, n_items, n * B.size // 16, A, B, is_by_rows, out)
    return out


# -- Cholesky ------------------------------------------------------------------------------------


@njit(**SUM)
def _factor(D):
    """Replace the lower half of a small matrix by its Cholesky factor; tell whether it has one."""
    for j in range(D.shape[0]):
        left = D[j, j] - dot(D[j, :j], D[j, :j])
        if not left > 0:
            return False
        D[j, j] = np.sqrt(left)
        for i in range(j + 1, D.shape[0]):
            D[i, j] = (D[i, j] - dot(D[i, :j], D[j, :j])) / D[j, j]
    return True


@njit(**SUM)
def _divide(D, X, start, stop):
    """Replace rows x of X by the solutions of x Dᵀ = x."""
    for i in range(start, stop):
        for j in range(D.shape[0]):
            X[i, j] = (X[i, j] - dot(X[i, :j], D[j, :j])) / D[j, j]


def cholesky(S: Matrix) -> Matrix | None:
    """Return the lower L with L Lᵀ = S, or None if S is not positive definite.

    Only the lower half of S is read, and the upper half of the result means nothing.
    """
    L = np.array(S)
    n = L.shape[0]
    for first in range(0, n, BLOCK):
        last = min(first + BLOCK, n)
        panel = L[first:, first:last]
        if first > 0:
            panel -= product(L[first:, :first], L[first:last, :first].T)
        block, below = panel[: last - first].copy(), panel[last - first :].copy()
        if not _factor(block):
            return None
        parallel.share(_divide, len(below), below.size * BLOCK // 16, block, below)
        panel[: last - first], panel[last - first :] = block, below
    return L


@njit(**SUM)
def _substitute(L, x):
    """Replace x by the solution of L Lᵀ x = x."""
    for i in range(x.size):
        x[i] = (x[i] - dot(L[i, :i], x[:i])) / L[i, i]
    for i in range(x.size - 1, -1, -1):
        x[i] /= L[i, i]
        for j in range(i):
            x[j] -= x[i] * L[i, j]


def cholesky_solve(L: Matrix, b: Vector) -> Vector:
    """Return the solution of L Lᵀ x = b."""
    x = np.array(b)
    _substitute(L, x)
    return x
