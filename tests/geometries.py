"""Clouds and grids with their cost matrices, for tests of what geometries answer."""

import numpy as np
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

from epsilot.geometry import Grid, PointCloud
from epsilot.geometry.extended import Extended
from epsilot.metrics import GRID_METRICS, POINT_METRICS


def by_hand(x, Y):
    return ((x - Y) ** 2).sum(axis=1)


@st.composite
def clouds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    m = draw(st.sampled_from([1, 5, 1023, 1025]))
    metric = draw(st.sampled_from([*POINT_METRICS, by_hand]))
    X, Y = rng.normal(size=(n, d)) + 0.1, rng.normal(size=(m, d))
    name = "sqeuclidean" if metric is by_hand else metric
    return PointCloud(X, Y, metric), cdist(X, Y, name), rng


@st.composite
def grids(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    d = draw(st.integers(1, 3))
    longest = {1: 30, 2: 7, 3: 4}[d]
    sizes = st.tuples(*[st.integers(1, longest)] * d)
    shape_a = draw(sizes)
    shape_b = draw(st.one_of(st.just(shape_a), sizes))
    spacing = rng.uniform(0.3, 2.0, d)
    metric = draw(st.sampled_from(GRID_METRICS))
    cells = [np.indices(s).reshape(d, -1).T * spacing for s in (shape_a, shape_b)]
    return Grid(shape_a, shape_b, metric, spacing), cdist(*cells, metric), rng


@st.composite
def with_dummies(draw):
    """Draw a cloud or a grid with a dummy source and a dummy target."""
    inner, M, rng = draw(st.one_of(clouds(), grids()))
    n, m = M.shape
    to_rows, to_cols, corner = rng.random(n), rng.random(m), float(rng.random())
    return (
        Extended(inner, to_rows, to_cols, corner),
        np.block([[M, to_rows[:, None]], [to_cols, np.array([corner])]]),
        rng,
    )
