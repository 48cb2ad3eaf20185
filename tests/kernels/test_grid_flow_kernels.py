"""Kernels of flows on grids against plain Python, step by step."""

from itertools import product

import numpy as np
import pytest

from epsilot.kernels import grid_flow as kernels
from epsilot.kernels.grid_flow import flow_to_plan

SHAPES = [
    (1, 1, 1), (1, 1, 7), (1, 5, 8), (1, 16, 17), (4, 3, 5), (2, 2, 2), (5, 6, 7),
    (1, 6, 1), (6, 1, 1), (4, 1, 5), (5, 4, 1), (3, 2, 7),
]  # fmt: skip
COSTS = [(1, 1, 1), (7, 2, 5)]


def whole(x):
    return np.array(x, dtype=np.int64)


def cells(shape):
    return list(product(*map(range, shape)))


def edges(shape):
    """Return {(cell, next cell): axis}."""
    found = {}
    for cell in cells(shape):
        for axis in range(3):
            ahead = tuple(x + (k == axis) for k, x in enumerate(cell))
            if ahead[axis] < shape[axis]:
                number = [int(np.ravel_multi_index(c, shape)) for c in (cell, ahead)]
                found[tuple(number)] = axis
    return found


def marked(marks, shape):
    """Return the edges of a tree."""
    ahead = {(u, axis): (u, v) for (u, v), axis in edges(shape).items()}
    return {ahead[u, axis] for u in range(marks.size) for axis in range(3) if marks[u] >> axis & 1}


def is_spanning(tree, n):
    """Tell whether n - 1 edges join all cells."""
    leaders = list(range(n))

    def leader(u):
        while leaders[u] != u:
            u = leaders[u]
        return u

    for u, v in tree:
        leaders[leader(u)] = leader(v)
    return len(tree) == n - 1 and len({leader(u) for u in range(n)}) == 1


def supplies(shape, kind, seed=0):
    rng = np.random.default_rng(seed)
    n = int(np.prod(shape))
    supply = rng.integers(-50, 50, n)
    if kind == "empty":
        supply *= rng.random(n) < 0.2
    elif kind == "large":
        supply = supply.astype(np.int64) << 50
    supply[0] -= supply.sum()
    return whole(supply)


def fresh(n):
    links = np.zeros((6, n + 1), dtype=np.uint32)
    numbers = np.zeros((2, n + 1), dtype=np.int64)
    return *links, np.zeros(n + 1, dtype=np.bool_), *numbers


def n_tiles(shape):
    return int(kernels.tiles(shape)[1].prod())


def first_basis(shape, supply, costs):
    tree = fresh(supply.size)
    kernels.basis(kernels.comb(shape), supply, costs, shape, tree)
    return tree


@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_the_steepest_arc_of_a_box_is_found(shape, costs):
    rng = np.random.default_rng(1)
    y = whole(rng.integers(-30, 30, int(np.prod(shape)) + 1))
    low = whole([rng.integers(0, n) for n in shape])
    high = whole([rng.integers(a, n) + 1 for a, n in zip(low, shape, strict=True)])
    inside = {
        np.ravel_multi_index(c, shape)
        for c in cells(shape)
        if (low <= c).all() and (c < high).all()
    }
    steps = {(u, v): costs[axis] for (u, v), axis in edges(shape).items() if u in inside}
    arcs = {**steps, **{(v, u): c for (u, v), c in steps.items()}}
    reduced = {(u, v): int(c + y[u] - y[v]) for (u, v), c in arcs.items()}
    least, i, j = kernels.steepest(y, low, high, whole(shape), whole(costs))
    assert least == min([0, *reduced.values()])
    assert least == 0 or reduced[i, j] == least


@pytest.mark.parametrize("shape", SHAPES)
def test_halving_sums_blocks(shape):
    fine, coarse = whole(shape), -(-whole(shape) // 2)
    supply = supplies(shape, "random")
    expected = np.zeros(coarse, dtype=np.int64)
    for cell, x in zip(cells(shape), supply, strict=True):
        expected[tuple(c // 2 for c in cell)] += x
    np.testing.assert_array_equal(kernels.halved(supply, fine, coarse), expected.ravel())


@pytest.mark.parametrize("shape", SHAPES)
def test_trees_span_and_refine_along_the_coarse_one(shape):
    fine, coarse = whole(shape), -(-whole(shape) // 2)
    comb = kernels.comb(coarse)
    assert is_spanning(marked(comb, tuple(coarse)), comb.size)
    tree = marked(kernels.refined(comb, coarse, fine), shape)
    assert is_spanning(tree, int(np.prod(shape)))
    where = cells(shape)
    block = [int(np.ravel_multi_index([c // 2 for c in cell], coarse)) for cell in where]
    across = {(block[u], block[v]) for u, v in tree if block[u] != block[v]}
    assert across == marked(comb, tuple(coarse))


@pytest.mark.parametrize("kind", ["random", "empty", "large"])
@pytest.mark.parametrize("costs", COSTS)
@pytest.mark.parametrize("shape", SHAPES)
def test_every_pivot_leaves_a_basis_and_the_last_an_optimum(shape, costs, kind):
    sides, costs, supply = whole(shape), whole(costs), supplies(shape, kind)
    tree = first_basis(sides, supply, costs)
    graph, at, left, values = edges(shape), 0, n_tiles(sides), []
    while left > 0:
        assert kernels.is_basis(tree, supply, costs, sides)
        flows = kernels.flows_of(tree, sides)
        values.append(int((np.abs(flows).astype(object) * costs[:, None]).sum()))
        at, left, _, _ = kernels.pivots(tree, sides, costs, at, left, 1)
    assert values == sorted(values, reverse=True)
    y = tree[8]
    assert all(abs(int(y[u] - y[v])) <= costs[axis] for (u, v), axis in graph.items())
    assert -int((y[:-1].astype(object) * supply).sum()) == values[-1]


def test_a_basis_with_any_number_changed_is_none():
    shape, costs, supply = whole((1, 6, 7)), whole((1, 1, 1)), supplies((1, 6, 7), "random")
    names = ("parents", "after", "before", "last", "sizes", "is_up", "flow", "prices")
    for name, part in zip(names, (0, 2, 3, 4, 5, 6, 7, 8), strict=True):
        tree = first_basis(shape, supply, costs)
        assert kernels.is_basis(tree, supply, costs, shape)
        tree[part][5] = not tree[part][5] if part == 6 else tree[part][5] + 1
        assert not kernels.is_basis(tree, supply, costs, shape), name


def delivered(supply, flows, shape):
    """Return the flow_to_plan of a flow, cell by cell in the order of the kernel."""
    n = supply.size
    arcs = {u: [] for u in range(n)}
    left = dict.fromkeys(range(n), 0)
    for (u, v), axis in edges(shape).items():
        x = int(flows[axis, u])
        if x:
            a, b = (u, v) if x > 0 else (v, u)
            arcs[a].append((axis, b, abs(x)))
            left[b] += 1
    held = {u: [(u, int(supply[u]))] if supply[u] > 0 else [] for u in range(n)}
    found, order = [], [u for u in range(n) if left[u] == 0]

    def taken(u, amount):
        out = []
        while amount > 0:
            owner, x = held[u].pop(0)
            if x > amount:
                held[u].insert(0, (owner, x - amount))
                x = amount
            out.append((owner, x))
            amount -= x
        return out

    for u in order:
        found += [(owner, u, x) for owner, x in taken(u, max(0, -int(supply[u])))]
        for _, v, x in sorted(arcs[u], key=lambda arc: (arc[0], arc[1] < u)):
            held[v] += taken(u, x)
            left[v] -= 1
            if left[v] == 0:
                order.append(v)
    assert len(order) == n
    return found


@pytest.mark.parametrize("kind", ["random", "empty", "large"])
@pytest.mark.parametrize("shape", SHAPES)
def test_parcels_are_those_of_plain_python(shape, kind):
    sides, costs, supply = whole(shape), whole((1, 1, 1)), supplies(shape, kind)
    tree = first_basis(sides, supply, costs)
    for budget in (0, 1 << 40):
        kernels.pivots(tree, sides, costs, 0, n_tiles(sides), budget)
        flows = kernels.flows_of(tree, sides)
        source, target, mass = flow_to_plan(supply, flows, sides)
        found = list(zip(source.tolist(), target.tolist(), mass.tolist(), strict=True))
        assert found == delivered(supply, flows, shape)
        assert len(found) < max(1, np.count_nonzero(supply))
        assert len({(i, j) for i, j, _ in found}) == len(found)
        sent = np.zeros(supply.size, dtype=np.int64)
        np.add.at(sent, source, mass)
        np.add.at(sent, target, -mass)
        np.testing.assert_array_equal(sent, supply)
