"""Products of matrices and Cholesky factors, in an order that is written down (:mod:`.tiles`)."""

from __future__ import annotations

import numpy as np

from .. import parallel
from .._types import Array, Matrix, Vector
from .compiling import njit
from .dense import SUM
from .sums import dot
from .tiles import DEPTH, ROWS, WIDTH, empty_panels, multiply

#: Columns that a thread gets together.
COLUMNS = 16
#: Columns of a Cholesky factor that are found together.
BLOCK = 64
#: Columns of a symmetric matrix that are computed together, from the diagonal on.
STRIP = 192
#: Share of the diagonal that is added to it.
RIDGE = 1e-12


@njit(**SUM)
def _pack_panels(B, first, last, k0, depth, panels):
    """Copy columns of B, panel after panel."""
    for j in range(first, last, WIDTH):
        panel = panels[(j - first) // WIDTH]
        for k in range(depth):
            for c in range(min(WIDTH, last - j)):
                panel[k, c] = B[k0 + k, j + c]


@njit(**SUM)
def _product(A, B, is_by_rows, out, start, stop):
    """out = A B, on rows ``start:stop`` or on that many times ``COLUMNS`` columns."""
    n, m = out.shape
    r0, r1 = (start, stop) if is_by_rows else (0, n)
    c0, c1 = (0, m) if is_by_rows else (start * COLUMNS, min(stop * COLUMNS, m))
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
    n_items = n if is_by_rows else -(-m // COLUMNS)
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
    return _replaced_by_factor(np.array(S))


def _replaced_by_factor(L: Matrix) -> Matrix | None:
    """Return a matrix whose lower half has become its Cholesky factor, or None if it has none."""
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


def schur_factor(X: Matrix, rows: Vector, cols: Vector, *, is_free: bool) -> Matrix | None:
    """Return the Cholesky factor of S = diag(cols) - Xᵀ diag(1 / rows) X, or None if it has none.

    Blocks of X that hardly touch make S singular but for round-off: its diagonal grows by
    ``RIDGE``. If rows and columns are the sums of X (``is_free``), S 1 = 0, and right sides must be
    orthogonal to 1: S gets a multiple of 1 1ᵀ.
    """
    m = cols.size
    S, across = np.empty((m, m)), np.ascontiguousarray(X.T)
    for first in range(0, m, STRIP):  # above the strips S stays as it was allocated, and unread
        last = min(first + STRIP, m)
        shares, strip = X[:, first:last] / rows[:, None], S[first:, first:last]
        np.negative(product(across[first:], shares), out=strip)
        strip[np.diag_indices(last - first)] += (1 + RIDGE) * cols[first:last]
        if is_free:
            strip += cols.mean() / m
    return _replaced_by_factor(S)
