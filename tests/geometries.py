"""Clouds and grids with their cost matrices, for tests of what geometries answer."""

import numpy as np
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from epsilot.geometry import Grid, PointCloud
from epsilot.geometry.extended import Extended
from epsilot.metrics import GRID_METRICS, METRICS


def by_hand(x, Y):
    return ((x - Y) ** 2).sum(axis=1)


SEEDS = st.integers(0, 2**32 - 1)


def cloud(seed, n, m, d, metric):
    """Return a cloud, its cost matrix and the generator that drew it."""
    rng = np.random.default_rng(seed)
    X, Y = rng.normal(size=(n, d)) + 0.1, rng.normal(size=(m, d))
    name = "sqeuclidean" if metric is by_hand else metric
    return PointCloud(X, Y, metric), cdist(X, Y, name), rng


def clouds():
    return st.builds(
        cloud,
        seed=SEEDS,
        n=st.integers(1, 12),
        m=st.sampled_from([1, 5, 1023, 1025]),
        d=st.integers(1, 4),
        metric=st.sampled_from([*METRICS, "canberra", by_hand]),
    )


def grid(seed, shape_a, shape_b, metric):
    """Return a grid (None: the same cells twice), its cost matrix and the generator."""
    rng = np.random.default_rng(seed)
    shapes = (shape_a, shape_b or shape_a)
    spacing = rng.uniform(0.3, 2.0, len(shape_a))
    cells = [np.indices(s).reshape(len(s), -1).T * spacing for s in shapes]
    return Grid(*shapes, metric, spacing), cdist(*cells, metric), rng


def grids():
    return st.one_of(
        st.builds(
            grid,
            seed=SEEDS,
            shape_a=(shapes := st.tuples(*[st.integers(1, longest)] * d)),
            shape_b=st.one_of(st.none(), shapes),
            metric=st.sampled_from(GRID_METRICS),
        )
        for d, longest in ((1, 30), (2, 7), (3, 4))
    )


def with_dummy(case):
    """Return a geometry with a dummy source and a dummy target."""
    inner, M, rng = case
    n, m = M.shape
    to_rows, to_cols, corner = rng.random(n), rng.random(m), float(rng.random())
    return (
        Extended(inner, to_rows, to_cols, corner),
        np.block([[M, to_rows[:, None]], [to_cols, np.array([corner])]]),
        rng,
    )


def with_dummies():
    return st.builds(with_dummy, case=st.one_of(clouds(), grids()))
