"""The auction on clouds of any kind: exact, proved, and never above what the matrix allows."""

import numpy as np
import ot
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

import epsilot
from epsilot.geometry import PointCloud
from epsilot.solvers import arc_simplex, auction
from tuning import tuned

#: Coordinates: few values and so many ties, or any.
COORDINATES = {
    "whole": st.integers(0, 3).map(float),
    "halves": st.integers(-8, 8).map(lambda k: k / 2),
    "any": st.floats(-1, 1, width=32, allow_subnormal=False),
    "far": st.integers(0, 1000).map(lambda k: 1e6 + k / 1024),
}
MASSES = {
    "even": st.just(1.0),
    "whole": st.integers(0, 3).map(float),
    "decades": st.floats(-12, 0).map(lambda x: 10.0**x),
}


@st.composite
def clouds(draw):
    """Draw a cloud and masses: both sides may have duplicates, few points, or zeros."""
    n, m, d = (
        draw(st.integers(1, 30)),
        draw(st.integers(1, 30)),
        draw(st.sampled_from([1, 2, 3, 5])),
    )
    elements = COORDINATES[draw(st.sampled_from(sorted(COORDINATES)))]
    X, Y = (draw(arrays(float, (size, d), elements=elements)) for size in (n, m))
    masses = []
    for size in (n, m):
        kind = MASSES[draw(st.sampled_from(sorted(MASSES)))]
        mass = draw(arrays(float, size, elements=kind))
        mass[draw(st.integers(0, size - 1))] += 1.0
        masses.append(mass / mass.sum())
    metric = draw(st.sampled_from(["sqeuclidean", "euclidean", "cityblock"]))
    return X, Y, metric, *masses


def onto_one_cell(metric="sqeuclidean"):
    """Return two points far from the origin, of which one side uses one only."""
    X, Y = np.full((29, 1), 1e6), np.array([[1e6], [1e6 + 2.0**-10]])
    X[28] += 2.0**-10
    a = np.array([1.0, *17 * [0.0], *10 * [1.0], 2.0]) / 13
    return X, Y, metric, a, np.array([1.0, 0.0])


def onto_one_point(seed):
    """Return a few distinct points with masses of twelve decades, and a single point."""
    rng = np.random.default_rng(seed)
    X, a = rng.normal(size=(4, 1))[rng.integers(0, 4, 19)], 10.0 ** rng.uniform(-12, 0, 19)
    metric = ["sqeuclidean", "euclidean", "cityblock"][seed % 3]
    return X, rng.normal(size=(1, 1)), metric, a / a.sum(), np.ones(1)


@example(onto_one_cell(), 2, 7, 1e-9)
@example(onto_one_point(1), 2, 10**6, 1e-9)
@example(onto_one_point(15), 2, 7, 0.05)
@given(
    clouds(),
    st.sampled_from([2, 8, 512]),
    st.sampled_from([7, 10**6]),
    st.sampled_from([1e-9, 0.05]),
)
def test_clouds_of_any_kind_are_solved_to_the_tolerance(drawn, coarsest, bids, rtol):
    X, Y, metric, a, b = drawn
    cloud = PointCloud(X, Y, metric)
    C = cloud.block(0, a.size)
    with (
        tuned(auction, max_coarsest_cells=coarsest),
        tuned(auction, max_bids_per_step=bids),
        tuned(arc_simplex, pivots_per_step=bids),
    ):
        result = epsilot.solve(cloud, a, b, rtol=rtol, method="auction")
    exact = float((C * np.outer(a, b)).sum()) if 1 in C.shape else ot.emd2(a, b, C)
    size = max(abs(exact), 1e-9 * C.max())
    assert result.converged
    assert result.value <= exact + 1.01 * rtol * size + 1e-13 * C.max()
    assert result.lower_bound <= exact + 1e-13 * C.max() <= result.value + 2e-13 * C.max()
    f, g = result.potentials
    assert (f[:, None] + g <= C).all()
    plan = result.plan_operator.tosparse()
    assert plan.nnz == 0 or plan.data.min() > 0
    assert np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum() <= 1e-12
    assert plan.multiply(C).sum() == pytest.approx(result.value, abs=1e-13 * C.max())


@pytest.mark.parametrize(
    "drawn", [onto_one_cell(), *(onto_one_point(seed) for seed in (1, 3, 15, 16))]
)
def test_coarse_levels_with_equal_values_are_left_after_few_bids(drawn):
    """A published run is not settled beforehand: the auction goes through all its levels."""
    X, Y, metric, a, b = drawn
    C = PointCloud(X, Y, metric).block(0, a.size)
    with tuned(auction, max_coarsest_cells=2):
        result = epsilot.solve(C, a, b, eps=1e-9 * C.max(), stop="paper", method="auction")
        lazy = epsilot.solve(
            PointCloud(X, Y, metric), a, b, eps=1e-9 * C.max(), stop="paper", method="auction"
        )
    for found in (result, lazy):
        assert found.converged
        assert found.n_iter < 100
