"""The simplex and the assignment of small problems: their parts, and their invariants."""

import numpy as np
import pytest
from numba import njit
from scipy.optimize import linear_sum_assignment

from epsilot.kernels import simd8, small_simplex
from epsilot.kernels.assignment import assign


@njit
def least_of_block(C, y, row):
    return simd8.least_of_block(C, y, row)


@njit
def least_of_row(row, g):
    return simd8.least_of_row(row, g)


@njit
def two_least_of_row(row, g):
    return simd8.two_least_of_row(row, g)


@njit
def relax(row, g, length, i, distances, befores):
    return simd8.relax(row, g, length, i, distances, befores)


@njit
def on_sets(sets, y):
    simd8.unite(sets, 0, 1, 2)
    simd8.subtract(sets, 3, 1, 2)
    simd8.add_where(sets, 1, 2.0, y)


@njit
def on_rows(row, g, sums):
    simd8.lower_to(row, 0.25, g)
    simd8.add_to(row, 0.5, sums)


def padded(C):
    n, m = small_simplex.padded(*C.shape)
    out = np.full((n, m), np.inf)
    out[: C.shape[0], : C.shape[1]] = C
    return out


@pytest.mark.parametrize("has_ties", [False, True])
@pytest.mark.parametrize("m", [8, 16, 64, 200])
def test_the_least_of_rows_is_found(rng, m, has_ties):
    for _ in range(50):
        C, y = rng.random((8, m)), rng.random(8 + m)
        if has_ties:
            C, y = np.floor(3 * C), np.floor(2 * y)
        reduced = C + y[m:, None] - y[:m]
        value, j = least_of_block(C, y, 4)
        assert value == reduced[4:].min() == reduced[4:, j].min()
        value, j = least_of_row(C[0], y[:m])
        slack = C[0] - y[:m]
        assert value == slack.min() == slack[j]
        least, j, second = two_least_of_row(C[0], y[:m])
        assert (least, second) == tuple(np.sort(slack)[:2])
        assert slack[j] == least
        distances, befores = rng.random(m), np.full(m, -1)
        wanted = np.minimum(distances, slack + 0.5)
        is_new = slack + 0.5 < distances
        value, j = relax(C[0], y[:m], 0.5, 7, distances, befores)
        np.testing.assert_array_equal(distances, wanted)
        np.testing.assert_array_equal(befores, np.where(is_new, 7, -1))
        assert value == wanted.min() == wanted[j]


def test_sets_and_vectors(rng):
    sets = rng.integers(0, 256, (4, simd8.BYTES), dtype=np.uint8)
    s, t = sets[1].copy(), sets[2].copy()
    y = np.zeros(512)
    on_sets(sets, y)
    np.testing.assert_array_equal(sets[0], s | t)
    np.testing.assert_array_equal(sets[3], s & ~t)
    np.testing.assert_array_equal(y, 2.0 * np.unpackbits(s, bitorder="little"))
    row, g, sums = rng.random((3, 24))
    wanted = np.minimum(g, row - 0.25), sums + 0.5 * row
    on_rows(row, g, sums)
    np.testing.assert_array_equal(g, wanted[0])
    np.testing.assert_array_equal(sums, wanted[1])


def started(C, p, q):
    """Return a padded cost and the tree that the simplex starts from."""
    full = padded(C)
    n, m = full.shape
    tree = small_simplex.zero_tree(-(-(n + m) // 8) * 8)
    order, closed = np.arange(p.size), np.zeros(p.size + q.size, np.int64)
    small_simplex.greedy(full, p, q, np.zeros(m), order, np.zeros(m), np.zeros(m), closed, tree)
    small_simplex.price(full, closed, tree)
    return full, tree, closed


def check(C, p, q, tree):
    """Check all that the arrays of a tree promise."""
    y, flow, parents, sets, _ = tree
    m = C.shape[1]
    nodes = [*range(q.size), *range(m, m + p.size)]
    (root,) = [u for u in nodes if parents[u] == u]
    assert root < m
    below = {u: {u} for u in nodes}
    left = np.zeros(y.size)
    left[: q.size], left[m : m + p.size] = q, p
    for u in nodes:
        v = u
        while v != root:
            v = int(parents[v])
            below[v].add(u)
        if u != root:
            v = int(parents[u])
            i, j = (u - m, v) if u >= m else (v - m, u)
            assert C[i, j] + y[m + i] - y[j] == pytest.approx(0, abs=1e-12)
            left[u] -= flow[u]
            left[v] -= flow[u]
            assert flow[u] > 0 or (flow[u] == 0 and u >= m)  # strongly feasible
    np.testing.assert_allclose(left, 0, atol=1e-14)
    for u in nodes:
        assert set(np.flatnonzero(np.unpackbits(sets[u], bitorder="little"))) == below[u]


@pytest.mark.parametrize("kind", ["random", "ties", "wide", "single row", "single column"])
def test_every_pivot_leaves_a_strongly_feasible_tree(rng, kind):
    n, m = {"wide": (3, 21), "single row": (1, 9), "single column": (9, 1)}.get(kind, (11, 13))
    for _ in range(10):
        C, p, q = rng.random((n, m)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
        if kind == "ties":  # exactly representable masses, so that flows are exactly zero
            C = rng.integers(0, 3, (n, m)) / 2
            p, q = rng.multinomial(64, p) / 64, rng.multinomial(64, q) / 64
            C, p, q = C[p > 0][:, q > 0], p[p > 0], q[q > 0]
        full, tree, _ = started(C, p, q)
        check(full, p, q, tree)
        for _ in range(500):
            if small_simplex.pivots(full, tree, 1, 1e-12, 1) == 0:
                break
            check(full, p, q, tree)
        y = tree[0]
        width = full.shape[1]
        assert (C + y[width : width + p.size, None] - y[: q.size]).min() >= -1e-12


def test_nodes_are_listed_before_their_parents(rng):
    p, q = rng.dirichlet(np.ones(9)), rng.dirichlet(np.ones(14))
    full, tree, closed = started(rng.random((9, 14)), p, q)
    small_simplex.pivots(full, tree, 1, 1e-12, 1000)
    marks, stack = np.zeros((2, tree[0].size), np.int64)
    small_simplex.close(full.shape[1], q.size, tree, closed, marks, stack)
    place = {int(u): k for k, u in enumerate(closed)}
    assert len(place) == p.size + q.size
    assert all(place[int(tree[2][u])] > k for u, k in place.items() if int(tree[2][u]) != u)


@pytest.mark.parametrize("kind", ["random", "ties", "points", "all equal"])
@pytest.mark.parametrize("n", [1, 2, 3, 8, 17, 60])
def test_assignments_are_optimal(rng, n, kind):
    for _ in range(10):
        C = rng.random((n, n))
        if kind == "ties":
            C = np.floor(4 * C)
        elif kind == "points":
            C = ((rng.random((n, 1, 2)) - rng.random((1, n, 2))) ** 2).sum(-1)
        elif kind == "all equal":
            C[:] = 1.0
        full = padded(C)
        m = full.shape[1]
        v, ints, work = np.zeros(m), np.zeros((5, m), np.int64), np.zeros((4, m))
        assign(full, n, v, *ints, work)
        columns = ints[0, :n]
        assert sorted(columns) == list(range(n))
        best = C[linear_sum_assignment(C)].sum()
        assert C[np.arange(n), columns].sum() == pytest.approx(best, abs=1e-12)
        slack = C - v[:n] - (C[np.arange(n), columns] - v[columns])[:, None]
        assert slack.min() >= -1e-14
