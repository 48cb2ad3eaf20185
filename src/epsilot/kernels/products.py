"""Matrix products, Cholesky factors and squared distances, in a fixed order.

Every entry of a product is Σ_k A_ik B_kj, one fma after the other in the order of k, whatever the
tiles and the number of threads. BLAS would choose its order by processor, threads and sizes.

Loops take ``DEPTH`` values of k and ``ROWS`` rows of A at a time, which stay in the second-level
cache. A panel of ``WIDTH`` columns of B is copied so that it is contiguous and stays in the first
level. A tile of ``HEIGHT`` by ``WIDTH`` sums is held in registers; processors without AVX-512 have
fewer. Partial sums are kept in ``out``, so that the bits do not depend on these sizes.
"""

from __future__ import annotations

import itertools

import numpy as np
from llvmlite import binding, ir
from numba import config, types
from numba.core import cgutils
from numba.extending import intrinsic
from numba.np.arrayobj import make_array

from .. import parallel
from .._types import Array, Matrix, Vector
from .arrays import copy_block, empty, zeros
from .compiling import KERNEL, njit
from .llvm_ops import IS_PLAIN, address, call, prefer_wide_vectors, spread
from .sums import dot

#: Doubles per vector register, as LLVM sees it.
VECTOR = 8
DEPTH, ROWS = 256, 192


def _tile_sizes():
    """Return height and width of a tile for the registers of the target processor."""
    is_host = not (config.CPU_NAME or config.CPU_FEATURES)
    is_wide = is_host and binding.get_host_cpu_features().get("avx512f", False)
    return (8, 16) if is_wide else (6, 8)


HEIGHT, WIDTH = _tile_sizes()


_DOUBLE, _SINGLE = ir.DoubleType(), ir.FloatType()


def _tile(width, real=_DOUBLE, n_lanes=VECTOR, is_fresh=False):
    """Return an intrinsic that adds a product to ``HEIGHT`` rows and ``width`` columns.

    ``real`` is the type of all numbers; ``n_lanes`` of them fill a vector. With ``is_fresh``, sums
    start at 0 instead of the values in ``out``.
    """

    @intrinsic
    def tile(typing_context, A, first, k0, panel, out, row, col):
        """Add Σ_k A[first + r, k0 + k] panel[k, c] to out[row + r, col + c]."""

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

            tiles = list(itertools.product(range(HEIGHT), range(0, width, n_lanes)))
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


#: Columns of a tile of float32: a register holds twice as many.
SINGLE_WIDTH = 2 * WIDTH

if IS_PLAIN:
    _wide_tile = _narrow_tile = _plain_tile
    _single_tile = _plain_single_tile
else:
    _wide_tile, _narrow_tile = _tile(WIDTH), _tile(VECTOR)
    _single_tile = _tile(SINGLE_WIDTH, _SINGLE, 2 * VECTOR, is_fresh=True)


@njit(**KERNEL)
def empty_panels(n_cols, depth):
    """Return zeros for panels of columns of B."""
    return zeros((-(-n_cols // WIDTH), depth, WIDTH))


@njit(**KERNEL)
def multiply(A, first, last, k0, panels, depth, out, row, col, stop):
    """Add the product of A[first:last, k0:k0 + depth] and panels to out[row:, col:stop]."""
    edge, rest = zeros((HEIGHT, WIDTH)), zeros((HEIGHT, depth))
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
            copy_block(out[at : at + height, c : c + width], edge[:height, :width])
            if height < HEIGHT:
                _wide_tile(rest, 0, 0, panel, edge, 0, 0)
            elif width > VECTOR:
                _wide_tile(A, i, k0, panel, edge, 0, 0)
            else:
                _narrow_tile(A, i, k0, panel, edge, 0, 0)
            copy_block(edge[:height, :width], out[at : at + height, c : c + width])


@njit(**KERNEL)
def multiply_singles(A, panels, out, start, stop):
    """Write A B in float32, on tiles ``start:stop`` of rows; A and out have whole tiles of rows."""
    edge = empty((HEIGHT, SINGLE_WIDTH), np.float32)
    for p in range(panels.shape[0]):
        col = p * SINGLE_WIDTH
        width = min(SINGLE_WIDTH, out.shape[1] - col)
        for row in range(start * HEIGHT, stop * HEIGHT, HEIGHT):
            if width == SINGLE_WIDTH:
                _single_tile(A, row, 0, panels[p], out, row, col)
            else:
                _single_tile(A, row, 0, panels[p], edge, 0, 0)
                copy_block(edge[:, :width], out[row : row + HEIGHT, col:])


# -- products and Cholesky factors -----------------------------------------------------------------
#
# Both use the tiles above.

#: Columns per work item of a thread.
THREAD_COLUMNS = 16
#: Columns of a Cholesky factor that are computed together.
CHOLESKY_BLOCK = 64
#: Columns of a symmetric matrix that are computed together, from the diagonal down.
SYMMETRIC_STRIP = 192
#: Fraction of the diagonal that is added to it.
RIDGE = 1e-12


@njit(**KERNEL)
def _pack_panels(B, first, last, k0, depth, panels):
    """Copy columns of B, panel after panel."""
    for j in range(first, last, WIDTH):
        panel = panels[(j - first) // WIDTH]
        for k in range(depth):
            for c in range(min(WIDTH, last - j)):
                panel[k, c] = B[k0 + k, j + c]


@njit(**KERNEL)
def _product(A, B, is_by_rows, out, start, stop):
    """Write A B, on rows ``start:stop`` or on these groups of ``THREAD_COLUMNS`` columns."""
    n, m = out.shape
    r0, r1 = (start, stop) if is_by_rows else (0, n)
    c0, c1 = (0, m) if is_by_rows else (start * THREAD_COLUMNS, min(stop * THREAD_COLUMNS, m))
    n_terms = B.shape[0]
    panels = empty_panels(c1 - c0, min(DEPTH, n_terms))
    out[r0:r1, c0:c1] = 0.0
    for k0 in range(0, n_terms, DEPTH):
        depth = min(DEPTH, n_terms - k0)
        _pack_panels(B, c0, c1, k0, depth, panels)
        for first in range(r0, r1, ROWS):
            last = min(first + ROWS, r1)
            multiply(A, first, last, k0, panels, depth, out, first, c0, c1)


def product(A: Array, B: Array) -> Matrix:
    """Return A B."""
    A, B = np.ascontiguousarray(A), np.ascontiguousarray(B)
    n, m = A.shape[0], B.shape[1]
    out = np.empty((n, m))
    is_by_rows = n >= m
    n_items = n if is_by_rows else -(-m // THREAD_COLUMNS)
    parallel.share(_product, n_items, n * B.size // 16, A, B, is_by_rows, out)
    return out


# -- Cholesky ------------------------------------------------------------------------------------


@njit(**KERNEL)
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


@njit(**KERNEL)
def _divide(D, X, start, stop):
    """Replace rows x of X by the solutions of x Dᵀ = x."""
    for i in range(start, stop):
        for j in range(D.shape[0]):
            X[i, j] = (X[i, j] - dot(X[i, :j], D[j, :j])) / D[j, j]


def cholesky(S: Matrix) -> Matrix | None:
    """Return the lower L with L Lᵀ = S, or None if S is not positive definite.

    Only the lower half of S is read, and only the lower half of the result is meaningful.
    """
    return _replaced_by_factor(np.array(S))


def _replaced_by_factor(L: Matrix) -> Matrix | None:
    """Overwrite the lower half of a matrix with its Cholesky factor; return None if it has none."""
    n = L.shape[0]
    for first in range(0, n, CHOLESKY_BLOCK):
        last = min(first + CHOLESKY_BLOCK, n)
        panel = L[first:, first:last]
        if first > 0:
            panel -= product(L[first:, :first], L[first:last, :first].T)
        block, below = panel[: last - first].copy(), panel[last - first :].copy()
        if not _factor(block):
            return None
        parallel.share(_divide, len(below), below.size * CHOLESKY_BLOCK // 16, block, below)
        panel[: last - first], panel[last - first :] = block, below
    return L


@njit(**KERNEL)
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


def schur_factor(X: Matrix, rows: Vector, cols: Vector, *, is_free: bool) -> Matrix | None:
    """Return the Cholesky factor of S = diag(cols) - Xᵀ diag(1 / rows) X, or None if it has none.

    Blocks of X that are almost disconnected make S singular up to round-off, so its diagonal grows
    by ``RIDGE``. If rows and columns are the sums of X (``is_free``), S 1 = 0, and right sides must
    be orthogonal to 1: S gets a multiple of 1 1ᵀ.
    """
    m = cols.size
    S, across = np.empty((m, m)), np.ascontiguousarray(X.T)
    for first in range(0, m, SYMMETRIC_STRIP):  # entries above the strips are never read
        last = min(first + SYMMETRIC_STRIP, m)
        shares, strip = X[:, first:last] / rows[:, None], S[first:, first:last]
        np.negative(product(across[first:], shares), out=strip)
        strip[np.diag_indices(last - first)] += (1 + RIDGE) * cols[first:last]
        if is_free:
            strip += cols.mean() / m
    return _replaced_by_factor(S)


# -- squared distances -----------------------------------------------------------------------------
#
# For points of many coordinates, by inner products:
#
# .. math:: |x_i - y_j|^2 = |x_i|^2 + |y_j|^2 - 2 \langle x_i, y_j \rangle
#
# Points are taken relative to the first of x, so that clouds far from the origin lose no digits. No
# point of x is farther from it than twice the largest distance, no point of y than once, so that
# every square is within rounding of the largest. Numbers of float32 become float64 as they are
# copied; products use the tiles above.


@njit(**KERNEL)
def _shift(point, origin, out):
    """Write coordinates of a point relative to another; return the sum of their squares."""
    for k in range(out.size):
        out[k] = np.float64(point[k]) - np.float64(origin[k])
    return dot(out, out)


@njit(**KERNEL)
def _squares(x, y, out, start, stop):
    """Write out_ij = |x_i - y_j|², on rows ``start:stop``."""
    (n_terms, m), most = (x.shape[1], y.shape[0]), min(DEPTH, x.shape[1])
    rows, panels = empty((ROWS, most)), empty_panels(m, most)
    moved = empty(most)
    own, others = zeros(stop - start), zeros(m)
    out[start:stop] = 0.0
    for k0 in range(0, n_terms, DEPTH):
        depth = min(DEPTH, n_terms - k0)
        here = slice(k0, k0 + depth)
        origin = x[0, here]
        for j in range(m):
            others[j] += _shift(y[j, here], origin, moved[:depth])
            panel, c = panels[j // WIDTH], j % WIDTH
            for k in range(depth):
                panel[k, c] = moved[k]
        for first in range(start, stop, ROWS):
            height = min(ROWS, stop - first)
            for i in range(height):
                own[first - start + i] += _shift(x[first + i, here], origin, rows[i, :depth])
            multiply(rows, 0, height, 0, panels, depth, out, first, 0, m)
    for i in range(start, stop):
        for j in range(m):
            out[i, j] = max((own[i - start] + others[j]) - 2 * out[i, j], 0.0)


def squared_distances(x: Array, y: Array, out: Matrix) -> None:
    """Write the squared distances of points (n, d) and (m, d), of float32 or float64."""
    x, y = (_as_read(z) for z in (x, y))
    parallel.share(_squares, len(x), out.size * x.shape[1] // 16, x, y, out)


def _as_read(x: Array) -> Array:
    """Return points as contiguous float32 or float64, the types of compiled kernels."""
    return np.ascontiguousarray(x, x.dtype if x.dtype == np.float32 else np.float64)
