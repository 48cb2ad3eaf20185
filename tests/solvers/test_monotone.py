"""Exact transport on a line: equal to POT's simplex, proved by brute force, for any masses."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from ot.lp import emd2

import epsilot
from epsilot import memory
from epsilot.geometry import Grid, PointCloud, points
from epsilot.metrics import METRICS
from tuning import tune
from weights import even, random, sparse, uneven

#: how points are drawn, by what they are hard for
SHAPES = {
    "uniform": lambda rng, n: rng.random(n) + 0.1,
    "far from 0": lambda rng, n: 1e6 + rng.random(n),
    "whole": lambda rng, n: rng.integers(1, 6, n).astype(float),
    "clustered": lambda rng, n: 1 + rng.integers(0, 3, n) + 1e-7 * rng.normal(size=n),
    "in order": lambda rng, n: np.arange(1.0, n + 1),
    "all scales": lambda rng, n: 10.0 ** rng.uniform(-6, 6, n),
}
SIZES = [(200, 200), (200, 70), (1, 50), (50, 1), (1, 1)]


def check(x, y, a, b, metric, **options):
    """Solve, and compare with POT and with brute force."""
    cloud = PointCloud(x, y, metric)
    result = epsilot.solve(cloud, a, b, rtol=1e-9, method="monotone", on_limit="ignore", **options)
    C = cloud.block(0, len(x))
    size = max(C.max(), 1e-300)
    exact = float((C * np.outer(a, b)).sum() if 1 in C.shape else size * emd2(a, b, C / size))
    assert result.value == pytest.approx(exact, rel=1e-9, abs=1e-13 * size)
    assert result.gap <= max(1e-9 * result.value, 1e-13 * size)
    f, g = result.potentials
    assert (f[:, None] + g <= C).all()
    plan = result.plan_operator.tosparse()
    assert plan.nnz <= len(x) + len(y) - 1
    assert np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum() <= 1e-12
    return result


@pytest.mark.parametrize("metric", METRICS)
@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("weights", [even, random, uneven, sparse])
def test_every_shape_is_solved_exactly(rng, metric, shape, weights):
    for n, m in SIZES:
        x, y = SHAPES[shape](rng, n), SHAPES[shape](rng, m)
        check(x, y, weights(rng, n), weights(rng, m), metric)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("shape", SHAPES)
def test_many_points_are_proved_in_order(rng, metric, shape, monkeypatch):
    tune(monkeypatch, points, min_searched_entries=1)
    x, y = SHAPES[shape](rng, 300), SHAPES[shape](rng, 200)
    check(x, y, random(rng, 300), random(rng, 200), metric)


#: points on a line with their masses
SIDES = st.lists(st.tuples(st.integers(-4, 4), st.integers(1, 5)), min_size=1, max_size=9)


@given(SIDES, SIDES, st.sampled_from(["sqeuclidean", "cityblock"]))
def test_small_lines_of_any_kind(source, target, metric):
    (x, a), (y, b) = (np.array(side, float).T for side in (source, target))
    check(x, y, a / a.sum(), b / b.sum(), metric)


#: a problem on a line, as users ask for it
ASKED = {
    "points": lambda x, y, **k: epsilot.solve_sample(x, y, **k),
    "lazy points": lambda x, y, **k: epsilot.solve_sample(x, y, lazy=True, **k),
    "distances": lambda x, y, **k: epsilot.solve_sample(x, y, metric="euclidean", **k),
    "l1 grid": lambda x, y, **k: epsilot.solve_grid(x, y, normalize=True, **k),
    "grid of squares": lambda x, y, **k: epsilot.solve_grid(
        x, y, metric="sqeuclidean", normalize=True, **k
    ),
}


@pytest.mark.parametrize("name", ASKED)
def test_auto_chooses_it_on_a_line_and_gives_the_reason(rng, name):
    x, y = rng.random(300), rng.random(280)
    result = ASKED[name](x, y, rtol=1e-9)
    assert result.method == "monotone"
    assert "from left to right" in result.choice
    assert result.converged
    other = "auction" if name == "grid of squares" else "restricted_simplex"
    assert result.value == pytest.approx(ASKED[name](x, y, rtol=1e-9, method=other).value, rel=1e-9)
    entropic = ASKED[name](x, y, reg=1.0, max_iter=1, on_limit="ignore")
    assert entropic.method.startswith("sinkhorn")


UNFIT = {
    "a matrix": np.ones((3, 3)),
    "the plane": PointCloud(np.eye(2), np.eye(2)),
    "an image": Grid((3, 3)),
    "a callable": PointCloud([0.0, 1.0], [0.5], lambda x, Y: ((x - Y) ** 2).sum(axis=1)),
}


@pytest.mark.parametrize("name", UNFIT)
def test_other_costs_are_refused_in_a_sentence(name):
    with pytest.raises(epsilot.InvalidProblem, match=r"monotone .* on a line .*solve_sample"):
        epsilot.solve(UNFIT[name], method="monotone")


def test_memory_is_checked_before_the_run(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 200 << 20)
    x = np.arange(400_000.0)
    with pytest.raises(epsilot.InvalidProblem, match=r"monotone on 400,000 .* MiB"):
        epsilot.solve(PointCloud(x, x), method="monotone")
