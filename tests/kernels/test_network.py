"""The network simplex of the kernels: its tree after every few pivots, and its optimum."""

import numpy as np
import pytest
from ot.lp import emd

from epsilot.kernels import network


def fresh_tree(n_nodes):
    links = np.zeros((6, n_nodes + 1), dtype=np.uint32)
    return *links, np.zeros(n_nodes + 1, np.bool_), np.zeros(n_nodes + 1), np.zeros(n_nodes + 1)


def check(tree, sources, targets, costs, supply):
    """Check all that the tree's arrays promise."""
    parents, preds, after, before, last, sizes, is_up, flow, y = tree
    root = supply.size
    order = [root]
    while len(order) <= root:
        order.append(after[order[-1]])
    assert sorted(order) == list(range(root + 1))
    assert after[order[-1]] == root
    np.testing.assert_array_equal(before[after], np.arange(root + 1))
    place = np.argsort(order)
    counted, left = np.ones(root + 1, int), np.append(supply, 0.0)
    for u in order[:0:-1]:
        assert place[parents[u]] < place[u] < place[parents[u]] + sizes[parents[u]]
        counted[parents[u]] += counted[u]
        left[u] -= flow[u] if is_up[u] else -flow[u]
        left[parents[u]] += flow[u] if is_up[u] else -flow[u]
        assert flow[u] > 0 or (flow[u] == 0 and is_up[u])  # strongly feasible
        if preds[u] != network.ARTIFICIAL:
            i, j = sources[preds[u]], targets[preds[u]]
            assert (i, j) == ((u, parents[u]) if is_up[u] else (parents[u], u))
            assert costs[preds[u]] + y[i] - y[j] == pytest.approx(0, abs=1e-12)
        else:
            assert parents[u] == root
    np.testing.assert_array_equal(counted, sizes)
    np.testing.assert_array_equal(place[last], place + counted - 1)
    np.testing.assert_allclose(left, 0, atol=1e-14)


def problem(rng, kind, n=17, m=23):
    p, q, C = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m)), rng.random((n, m))
    if kind == "assignment":
        C, p = C[:, :n], np.full(n, 1 / 32)
        q = p
    elif kind == "ties":
        C = np.abs(np.subtract.outer(np.arange(n), np.arange(m))) / m
        p, q = rng.multinomial(64, p) / 64, rng.multinomial(64, q) / 64
    return p, q, C


@pytest.mark.parametrize("big", [4.0, 1e3])
@pytest.mark.parametrize("kind", ["random", "assignment", "ties"])
def test_every_pivot_leaves_a_strongly_feasible_tree(rng, kind, big):
    for _ in range(5):
        p, q, C = problem(rng, kind)
        n, m = C.shape
        keys = rng.permutation(n * m)
        sources, targets = (keys // m).astype(np.uint32), (n + keys % m).astype(np.uint32)
        costs, supply, tree = C.ravel()[keys], np.concatenate([p, -q]), fresh_tree(n + m)
        network.crash(sources, targets, costs, np.argsort(costs), supply, big, tree)
        check(tree, sources, targets, costs, supply)
        at, pivots, total = 0, 1, 0
        while pivots:
            pivots, at, priced, _ = network.pivots(sources, targets, costs, tree, at, 1e-12, 1)
            check(tree, sources, targets, costs, supply)
            total += pivots
            assert priced >= pivots
        assert total > 5
        assert network.shortage(tree, 0.0) == pytest.approx(0, abs=1e-14)
        exact = (emd(p, q, C) * C).sum()
        _, preds, *_, flow, y = tree
        used = np.flatnonzero(preds[:-1] != network.ARTIFICIAL)
        value = flow[used] @ costs[preds[used]]
        assert value == pytest.approx(exact, abs=1e-13)
        assert (C + y[:n, None] - y[n:-1]).min() > -1e-11


def test_the_first_cheapest_arc_of_a_block_is_found(rng):
    n_arcs = 40
    sources, targets = rng.integers(0, 9, (2, n_arcs)).astype(np.uint32)
    y, costs = rng.integers(0, 3, 9) * 1.0, rng.integers(0, 3, n_arcs) * 1.0
    reduced = costs + y[sources] - y[targets]
    for start in range(n_arcs):
        for stop in range(start + 1, n_arcs + 1):
            ends = np.uint32(start), np.uint32(stop)
            least, arc = network._cheapest(
                sources, targets, costs, y, *ends, np.inf, np.uint32(n_arcs)
            )
            assert arc == start + np.argmin(reduced[start:stop])
            assert least == reduced[arc]


def test_arcs_that_cannot_carry_all_leave_a_shortage_at_any_price():
    sources, targets = np.array([0, 1], np.uint32), np.array([2, 3], np.uint32)
    costs, supply, tree = np.array([0.5, 0.5]), np.array([0.7, 0.3, -0.4, -0.6]), fresh_tree(4)
    network.crash(sources, targets, costs, np.arange(2), supply, 1.0, tree)
    network.pivots(sources, targets, costs, tree, 0, 1e-12, 100)
    before = tree[-1].copy()
    assert network.shortage(tree, 5.0) == pytest.approx(0.3)
    np.testing.assert_allclose(tree[-1] - before, [0, 5, 0, 5, 0])
