"""Products and squared distances: accurate, and the same bits on any threads."""

import numpy as np
import pytest

from epsilot import parallel
from epsilot.kernels import products
from epsilot.kernels.products import squared_distances

SHAPES = [(1, 1, 1), (6, 5, 8), (5, 0, 3), (7, 9, 17), (13, 70, 7), (103, 131, 103), (250, 300, 90)]


@pytest.mark.parametrize("shape", SHAPES)
def test_a_product(shape, rng):
    n, k, m = shape
    A, B = rng.normal(size=(n, k)), rng.normal(size=(k, m))
    np.testing.assert_allclose(products.product(A, B), A @ B, rtol=0, atol=1e-12)
    np.testing.assert_allclose(products.product(B.T, A.T), (A @ B).T, rtol=0, atol=1e-12)


@pytest.mark.parametrize("size", [1, 5, 64, 65, 200])
def test_a_cholesky_factor(size, rng):
    X, b = rng.normal(size=(size, size + 3)), rng.normal(size=size)
    S = X @ X.T + np.eye(size)
    L = products.cholesky(S)
    assert L is not None
    np.testing.assert_allclose(np.tril(L), np.linalg.cholesky(S), rtol=0, atol=1e-12 * S.max())
    np.testing.assert_allclose(S @ products.cholesky_solve(L, b), b, rtol=0, atol=1e-10)


def test_an_indefinite_matrix_has_no_factor():
    S = np.eye(100)
    S[90, 90] = -1.0
    assert products.cholesky(S) is None


@pytest.mark.parametrize("is_free", [False, True])
@pytest.mark.parametrize(("n", "m"), [(1, 1), (7, 5), (30, 200), (70, 450)])
def test_a_schur_complement(n, m, is_free, rng):
    X = rng.random((n, m))
    rows, cols = X.sum(axis=1), X.sum(axis=0) * (1 if is_free else 1.5)
    L = products.schur_factor(X, rows, cols, is_free=is_free)
    S = np.diag(cols) - X.T @ (X / rows[:, None])
    b = rng.normal(size=m)
    b -= b.mean() if is_free else 0.0
    np.testing.assert_allclose(S @ products.cholesky_solve(L, b), b, rtol=0, atol=1e-9)


def test_threads_do_not_change_a_bit(rng):
    A, B = rng.normal(size=(150, 140)), rng.normal(size=(140, 333))
    S = rng.normal(size=(300, 310))
    S = products.product(S, S.T)
    found = set()
    for n_threads in (1, 2, 3):
        with parallel.limit(n_threads):
            L = products.cholesky(S)
            found.add((products.product(A, B).tobytes(), np.tril(L).tobytes()))
    assert len(found) == 1


#: points of both clouds, coordinates, how far from the origin
CASES = [(1, 1, 1, 0.0), (5, 7, 16, 0.0), (33, 17, 300, 1e6), (200, 16, 520, -1e3)]


def by_differences(x, y):
    x, y = np.asarray(x, np.longdouble), np.asarray(y, np.longdouble)
    return ((x[:, None] - y) ** 2).sum(axis=2)


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64])
@pytest.mark.parametrize(("n", "m", "d", "shift"), CASES)
def test_squared_distances(n, m, d, shift, dtype, rng):
    shift = min(max(shift, -1e4), 1e4) if dtype is np.float16 else shift
    x, y = ((rng.normal(size=(k, d)) + shift).astype(dtype) for k in (n, m))
    found, expected = np.empty((n, m)), by_differences(x, y)
    squared_distances(x, y, found)
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-13 * expected.max())
    itself = np.empty((n, n))
    squared_distances(x, x, itself)
    assert (itself >= 0).all()


def test_threads_do_not_change_a_bit_of_distances(rng):
    x, y = rng.normal(size=(2, 150, 300))
    found = set()
    for n_threads in (1, 2, 3):
        out = np.empty((150, 150))
        with parallel.limit(n_threads):
            squared_distances(x, y, out)
        found.add(out.tobytes())
    assert len(found) == 1
