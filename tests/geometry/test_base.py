"""Geometries answer every question as the dense one does, and say what they can."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import epsilot
from epsilot import memory
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.problems.problem import Penalised
from epsilot.solvers import solver_class
from geometries import by_hand, clouds, grids, with_dummies


@given(st.one_of(clouds(), grids(), with_dummies()))
def test_single_pairs_cost_what_their_rows_say(case):
    geometry, M, rng = case
    n, m = M.shape
    rows, cols = rng.integers(n, size=50), rng.integers(m, size=50)
    C = geometry.block(0, n)
    np.testing.assert_array_equal(geometry.entries(rows, cols), C[rows, cols])


@given(
    st.one_of(clouds(), grids(), with_dummies()), st.sampled_from([3.0, 0.1, 2e-3]), st.booleans()
)
def test_every_question_has_the_dense_answer(case, eta, some_are_empty):
    geometry, M, rng = case
    dense = Dense(M)
    n, m = M.shape
    f, g, u, v = rng.normal(size=n), rng.normal(size=m), rng.normal(size=n), rng.normal(size=m)
    if some_are_empty:
        f[1::2] = -np.inf
        g[1::2] = -np.inf
    h = f - eta * dense.log_marginals(f, g, eta)[2]
    slack = 2e-13 * (10 + M.max() / eta)
    np.testing.assert_allclose(geometry.bounds, dense.bounds, rtol=1e-9, atol=1e-12)
    for question in (
        ("lse_rows", g, eta),
        ("lse_cols", f, eta),
        ("log_marginals", f, g, eta),
        ("apply_rows", h, g, eta, v),
        ("apply_cols", h, g, eta, u),
        ("price_rows", h, g, eta, v**2, v),
        ("matvec", v),
        ("ctransform_rows", g),
        ("ctransform_cols", f),
        ("block", 0, n),
        ("gathered", np.arange(n)[::-1]),
        ("gibbs", h, g, eta, 0, n),
        ("marginals", h, g, eta),
    ):
        name, *args = question
        for shift in (0.0, 1.25):
            ours = getattr(geometry.shifted(shift), name)(*args)
            theirs = getattr(dense.shifted(shift), name)(*args)
            both = (ours, theirs) if isinstance(ours, tuple) else ((ours,), (theirs,))
            for x, y in zip(*both, strict=True):
                np.testing.assert_allclose(x, y, rtol=slack, atol=slack, err_msg=name)


POINTS = np.random.default_rng(1).random((4, 2))
MEGAPIXEL = Grid((1024, 1024))
CAN = ("is_dense", "has_rows", "is_separable", "is_blockwise", "dimension", "can_coarsen")
#: What each geometry says of itself.
ABILITIES = {
    "dense": (Dense(np.ones((3, 4))), (True, True, False, True, None, False)),
    "cloud": (PointCloud(POINTS, POINTS), (False, True, False, False, 2, True)),
    "part of a cloud": (
        PointCloud(POINTS, POINTS).restricted(np.arange(2), np.arange(3)).shifted(1.0),
        (False, True, False, False, 2, True),
    ),
    "callable": (PointCloud(POINTS, POINTS, by_hand), (False, True, False, True, 2, False)),
    "grid": (Grid((3, 4, 5)), (False, True, True, False, 3, False)),
    "megapixel grid": (MEGAPIXEL, (False, False, True, False, 2, False)),
}


@pytest.mark.parametrize("name", ABILITIES)
def test_a_geometry_says_what_it_can(name):
    geometry, abilities = ABILITIES[name]
    assert {x: getattr(geometry, x) for x in CAN} == dict(zip(CAN, abilities, strict=True))


ABOUT = {m.name: solver_class(m.name).about for m in epsilot.methods()}
#: The methods that read rows, with the kind of problem that they are for.
READERS = {
    name: {"unbalanced": 1.0} if x.form == Penalised.form else {}
    for name, x in ABOUT.items()
    if x.needs_rows
}


@pytest.mark.parametrize(("method", "kind"), READERS.items())
@pytest.mark.parametrize(("room", "words"), [(1 << 50, "rows of the cost"), (1 << 30, "GiB|rows")])
def test_no_method_reads_the_rows_of_a_megapixel_grid(method, kind, room, words, monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: room)
    with pytest.raises(epsilot.InvalidProblem, match=rf"{method}.*({words})"):
        epsilot.solve(MEGAPIXEL, rtol=0.1, method=method, **kind)


#: geometry, cells asked for, shape of what is returned
COARSE = {
    "cloud": (PointCloud(np.linspace(0, 1, 60).reshape(-1, 2), np.eye(40, 2)), 8, (8, 8)),
    "few points": (PointCloud(POINTS, POINTS), 8, (4, 4)),
    "many coordinates": (PointCloud(np.eye(64, 20), np.eye(64, 20), "euclidean"), 16, (16, 16)),
}


@pytest.mark.parametrize("name", COARSE)
def test_cells_have_the_masses_and_about_the_costs_of_their_points(name, rng):
    geometry, n_cells, shape = COARSE[name]
    geometry = geometry.shifted(0.5)
    n, m = geometry.shape
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    coarse, p, q, from_rows, from_cols, shift = geometry.coarsen(n_cells, a, b)
    assert type(coarse) is type(geometry)
    assert coarse.shape == shape == (p.size, q.size)
    np.testing.assert_allclose([p.sum(), q.sum()], 1.0)
    fine, rough = a @ geometry.matrix() @ b, p @ coarse.matrix() @ q + shift
    assert rough == pytest.approx(fine, rel=0.2)
    assert a @ from_rows.matrix() @ q + shift == pytest.approx(fine, rel=0.2)
    assert b @ from_cols.matrix() @ p + shift == pytest.approx(fine, rel=0.2)
    assert Dense(np.eye(3)).coarsen(2, np.ones(3), np.ones(3)) is None
