"""Recover the points whose Euclidean distances, or their squares, a stored cost holds.

Squared distances of points in d dimensions, less those of one row and of one column, are scalar
products: a matrix of rank d. Some of its rows and columns determine the points up to a motion of
space. Products of matrices are sums of a few terms in a fixed order here, so that the points have
the same bits on every processor.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Index, Matrix, Vector
from ..metrics import METRICS
from .tree_index import Embedding


@dataclass(frozen=True, kw_only=True)
class RecoveryTuning:
    """Tuning parameters of the recovery of points."""

    min_side: int = 1500  # rows and columns of a cost; on smaller ones points save no time
    max_dimensions: int = 4
    sample_side: int = 24  # rows and columns among which the rank is counted
    n_fitted_rows: int = 128  # rows that determine lengths and angles
    n_checked_pairs: int = 4096
    rank_rtol: float = 1e-6  # share of the largest product below which others are round-off
    cost_rtol: float = 1e-6  # error of a distance that is tolerated, as a share of the largest
    min_pivot: float = 1e-10  # least pivot of an elimination, as a share of the largest entry


TUNING = RecoveryTuning()


def recover_points(C: Matrix, added: float) -> Embedding | None:
    """Return points whose distances, or squares of them, plus ``added`` are the entries of C.

    None if there are none in two to four dimensions. Costs are compared on a sample only.
    """
    if min(C.shape) < TUNING.min_side:
        return None
    for name, power in (("sqeuclidean", 1), ("euclidean", 2)):
        costs = _Squares(C, added, power)
        found = _points_of(costs)
        if found is None:
            continue
        X, Y = found
        if _are_distances(costs, X, Y):
            return Embedding(X, Y, METRICS[name].key, added)
    return None


class _Squares(NamedTuple):
    """The squared distances that a cost may hold."""

    C: Matrix
    added: float
    power: int  # of the costs less ``added``, to be squares

    def at(self, rows: Index, cols: Index) -> Matrix:
        """Return the squares of some rows and columns."""
        distances = np.asarray(self.C[rows[:, None], cols]) - self.added
        return distances if self.power == 1 else distances * distances


def evenly_spread(size: int, most: int) -> Index:
    """Return evenly spread indices, at most the given number."""
    return np.arange(min(size, most)) * size // min(size, most)


def _points_of(costs: _Squares) -> tuple[Matrix, Matrix] | None:
    """Return points of both sides, from the squares along a few rows and columns."""
    n, m = costs.C.shape
    i, j = evenly_spread(n, TUNING.sample_side), evenly_spread(m, TUNING.sample_side)
    axes = _axes_of(_products(costs.at(i, j)))
    if axes is None:
        return None
    rows = np.concatenate([i[:1], i[1:][axes[0]]])
    cols = np.concatenate([j[:1], j[1:][axes[1]]])
    along_cols, along_rows = costs.at(np.arange(n), cols), costs.at(rows, np.arange(m))
    at_first = along_cols[:, 0]  # squares of the first column
    # Products of all rows with the chosen columns, and of the chosen rows with all columns.
    first = at_first[rows[0]]
    U = 0.5 * (at_first[:, None] + along_cols[rows[0], 1:] - along_cols[:, 1:] - first)
    W = 0.5 * (at_first[rows[1:], None] + along_rows[0] - along_rows[1:] - first)
    V = _solved(U[rows[1:]], W)
    return None if V is None else _placed(U, V, at_first, first)


def _products(squares: Matrix) -> Matrix:
    """Return the scalar products of all rows but the first with all columns but the first."""
    twice = squares[1:, :1] + squares[:1, 1:] - squares[1:, 1:] - squares[0, 0]
    return np.asarray(0.5 * twice)


def _axes_of(products: Matrix) -> tuple[Index, Index] | None:
    """Return the pivots of an elimination, as many as the rank, or None if that is too large."""
    rest = products.copy()
    largest = float(np.abs(rest).max())
    rows: list[int] = []
    cols: list[int] = []
    while len(rows) <= TUNING.max_dimensions:
        at = int(np.abs(rest).argmax())
        i, j = divmod(at, rest.shape[1])
        pivot = float(rest[i, j])
        if not abs(pivot) > TUNING.rank_rtol * largest:
            return (np.array(rows), np.array(cols)) if len(rows) >= 2 else None
        rows.append(i)
        cols.append(j)
        rest = rest - rest[:, j, None] * (rest[i] / pivot)
    return None


def _placed(U: Matrix, V: Matrix, at_first: Vector, first: float) -> tuple[Matrix, Matrix] | None:
    """Return points x = A u and y = A⁻ᵀ v + c, where ``at_first`` holds the squares |x - c|².

    Rows of U are the u, columns of V the v. The squares are linear in the entries of AᵀA and of
    Aᵀ c, which a least squares fit determines.
    """
    d = U.shape[1]
    pairs = [(a, b) for a in range(d) for b in range(a + 1)]
    fitted = evenly_spread(len(U), TUNING.n_fitted_rows)
    u = U[fitted]
    columns = [u[:, a] * u[:, b] * (1.0 if a == b else 2.0) for a, b in pairs]
    columns += [-2.0 * u[:, a] for a in range(d)]
    solution = _fitted(np.stack(columns, axis=1), at_first[fitted] - first)
    if solution is None:
        return None
    gram = np.zeros((d, d))
    for (a, b), value in zip(pairs, solution, strict=False):
        gram[a, b] = gram[b, a] = value
    upper = _root(gram)
    if upper is None:
        return None
    X = _times(U, upper.T)
    placed = _solved(upper.T, np.concatenate([V, solution[len(pairs) :, None]], axis=1))
    if placed is None:
        return None
    Y, c = placed[:, :-1].T, placed[:, -1]
    return X, np.ascontiguousarray(Y + c)


def _fitted(columns: Matrix, values: Vector) -> Vector | None:
    """Return the coefficients of a least squares fit, by normal equations of unit columns."""
    sizes = np.sqrt((columns * columns).sum(axis=0))
    if not sizes.min() > 0:
        return None
    units = columns / sizes
    matrix = (units[:, :, None] * units[:, None, :]).sum(axis=0)
    right = (units * values[:, None]).sum(axis=0)
    solution = _solved(matrix, right[:, None])
    return None if solution is None else solution[:, 0] / sizes


def _solved(matrix: Matrix, right: Matrix) -> Matrix | None:
    """Return the solution of linear equations by elimination, or None if they have none."""
    A, B = matrix.copy(), right.copy()
    size, largest = len(A), float(np.abs(A).max())
    for k in range(size):
        pivot = k + int(np.abs(A[k:, k]).argmax())
        if not abs(A[pivot, k]) > TUNING.min_pivot * largest:
            return None
        A[[k, pivot]], B[[k, pivot]] = A[[pivot, k]], B[[pivot, k]]
        for i in range(k + 1, size):
            share = A[i, k] / A[k, k]
            A[i] -= share * A[k]
            B[i] -= share * B[k]
    for k in range(size - 1, -1, -1):
        for i in range(k + 1, size):
            B[k] -= A[k, i] * B[i]
        B[k] /= A[k, k]
    return B


def _root(gram: Matrix) -> Matrix | None:
    """Return the upper triangular A with AᵀA = gram, or None if the matrix has none."""
    d = len(gram)
    A = np.zeros((d, d))
    least = TUNING.min_pivot * float(np.abs(gram).max())
    for k in range(d):
        left = float(gram[k, k])
        for s in range(k):
            left -= float(A[s, k]) ** 2
        if not left > least:
            return None
        A[k, k] = math.sqrt(left)
        for j in range(k + 1, d):
            value = float(gram[k, j])
            for s in range(k):
                value -= float(A[s, k] * A[s, j])
            A[k, j] = value / A[k, k]
    return A


def _times(A: Matrix, B: Matrix) -> Matrix:
    """Return A B, term after term."""
    out = np.zeros((len(A), B.shape[1]))
    for k in range(len(B)):
        out += A[:, k, None] * B[k]
    return out


def _are_distances(costs: _Squares, X: Matrix, Y: Matrix) -> bool:
    """Tell whether the points give the costs of a sample of pairs."""
    n, m = costs.C.shape
    k = np.arange(TUNING.n_checked_pairs)
    i = k * n // k.size
    j = (k * 2654435761) % m
    given = costs.C[i, j] - costs.added
    differences = X[i] - Y[j]
    squares = np.zeros(k.size)
    for axis in range(X.shape[1]):
        squares += differences[:, axis] ** 2
    expected = squares if costs.power == 1 else np.sqrt(squares)
    errors = np.abs(given - expected)
    return bool(errors.max() <= TUNING.cost_rtol * np.abs(given).max())
