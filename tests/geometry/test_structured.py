"""Lazy and structured geometries answer every question as the dense one does."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import cdist

import epsilot
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.geometry import grid as grid_module
from epsilot.geometry import points as points_module
from epsilot.geometry.axes import is_lossless
from epsilot.run import starts
from epsilot.solvers import box_qp, make_solver, solver_class
from epsilot.transport.objective import Transport
from epsilot.transport.problem import Entropic, make_problem


def by_hand(x, Y):
    return ((x - Y) ** 2).sum(axis=1)


@st.composite
def clouds(draw):
    rng = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    n, d = draw(st.integers(1, 12)), draw(st.integers(1, 4))
    m = draw(st.sampled_from([1, 5, 1023, 1025]))
    metric = draw(st.sampled_from(["sqeuclidean", "euclidean", "cityblock", "cosine", by_hand]))
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
    metric = draw(st.sampled_from(["cityblock", "sqeuclidean"]))
    cells = [np.indices(s).reshape(d, -1).T * spacing for s in (shape_a, shape_b)]
    return Grid(shape_a, shape_b, metric, spacing), cdist(*cells, metric), rng


@given(st.one_of(clouds(), grids()))
def test_single_pairs_cost_what_their_rows_say(case):
    geometry, M, rng = case
    n, m = M.shape
    rows, cols = rng.integers(n, size=50), rng.integers(m, size=50)
    C = geometry.block(0, n)
    np.testing.assert_array_equal(geometry.entries(rows, cols), C[rows, cols])


@given(st.one_of(clouds(), grids()), st.sampled_from([3.0, 0.1, 2e-3]), st.booleans())
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
        ("lse_rows", g, eta), ("lse_cols", f, eta), ("log_marginals", f, g, eta),
        ("apply_rows", h, g, eta, v), ("apply_cols", h, g, eta, u),
        ("price_rows", h, g, eta, v**2, v), ("matvec", v),
        ("ctransform_rows", g), ("ctransform_cols", f), ("block", 0, n),
    ):  # fmt: skip
        name, *args = question
        for shift in (0.0, 1.25):
            ours = getattr(geometry.shifted(shift), name)(*args)
            theirs = getattr(dense.shifted(shift), name)(*args)
            both = (ours, theirs) if isinstance(ours, tuple) else ((ours,), (theirs,))
            for x, y in zip(*both, strict=True):
                np.testing.assert_allclose(x, y, rtol=slack, atol=slack, err_msg=name)


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
@pytest.mark.parametrize("exponent", [690, 709, 735, 744.5, 760])
def test_a_kernel_below_the_range_of_floats_is_not_lost(metric, exponent):
    eta, grid = 1 / exponent, Grid((2,), metric=metric)
    for f in (np.array([1.5, 0.5]), np.array([1.0, 0.0]), np.array([0.0, 0.99])):
        dense = Dense(np.array([[0.0, 1.0], [1.0, 0.0]])).lse_cols(f, eta)
        np.testing.assert_allclose(grid.lse_cols(f, eta), dense, rtol=1e-10)


@pytest.mark.parametrize(("n_in", "n_out"), [(5, 5), (5, 9), (9, 5), (1, 6), (6, 1)])
@pytest.mark.parametrize("reach", [0, 2, 7])
def test_far_terms_are_added_up(rng, n_in, n_out, reach):
    field = rng.random((3, n_in))
    is_far = np.abs(np.subtract.outer(np.arange(n_out), np.arange(n_in))) > reach
    far = field @ is_far.T * np.exp(-700) * 1e14
    assert is_lossless(field, 1.01 * far, 1, reach)
    assert is_lossless(field, 0.99 * far, 1, reach) == (far.max() == 0)


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
def test_grid_agrees_on_both_sides_of_the_switch_to_the_log_domain(metric, rng, monkeypatch):
    geometry = Grid((9, 8), metric=metric)
    g = rng.normal(size=72)
    used = []
    log = Grid._log
    monkeypatch.setattr(Grid, "_log", lambda *args: used.append(1) or log(*args))
    top = geometry.bounds[1]
    for eta, domain in ((top / 500, 0), (top / 5000, 1)):
        expected = Dense(geometry.block(0, 72)).lse_rows(g + top * (np.arange(72) == 0), eta)
        found = geometry.lse_rows(g + top * (np.arange(72) == 0), eta)
        np.testing.assert_allclose(found, expected, rtol=1e-12)
        assert len(used) == domain
    monkeypatch.setattr(grid_module, "LONGEST_AXIS", 4)
    expected = Dense(geometry.block(0, 72)).lse_rows(g, top / 5000)
    np.testing.assert_allclose(geometry.lse_rows(g, top / 5000), expected, rtol=1e-12)


# What a method must be told to do the same on a stored and on a computed cost.
SAME = {"sinkhorn": {"domain": "log"}, "pdasmd": {"precision": "double"},
        "pdasgd": {"precision": "double"}}  # fmt: skip
N_EPOCHS = 5
ENTROPIC = [m.name for m in epsilot.methods() if m.solves_entropic]
LAZY = [name for name in ENTROPIC if not solver_class(name).about.needs_dense]


def epochs(method, geometry, a, b):
    """Yield violation, potentials and certified bounds after each of N_EPOCHS epochs."""
    problem = make_problem(geometry, a, b)
    solver = make_solver(method, SAME.get(method, {})).resolved("certificate", problem)
    eta = 0.1 * (problem.cost_max or 1.0)
    target = Entropic(problem.geometry, eta, problem.p, problem.q)
    rng = np.random.default_rng(0)
    state, _ = solver.init(target, rng)
    for _ in range(N_EPOCHS):
        solver.step(target, state, rng)
        core, row = solver.candidates(target, state)[-1]
        found = Transport(problem).bracket(core, row)
        bounds = solver.signal(target, state).violation, found.upper, found.lower
        yield np.concatenate([bounds, *solver.potentials(target, state)])


@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
@pytest.mark.parametrize("method", LAZY)
def test_every_lazy_method_does_the_same_on_dense_points_and_grid(method, metric, monkeypatch):
    # With the matrix at hand box_newton factors it where sweeps take long; without, it sweeps on.
    monkeypatch.setattr(box_qp, "LARGEST_SOLVE", 0)
    rng = np.random.default_rng(3)
    shape, spacing = (4, 3), (1.0, 0.7)
    cells = np.indices(shape).reshape(2, -1).T * spacing
    a, b = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    dense, *lazy = (
        np.array(list(epochs(method, geometry, a, b)))
        for geometry in (
            Dense(cdist(cells, cells, metric)),
            PointCloud(cells, cells, metric),
            Grid(shape, metric=metric, spacing=spacing),
        )
    )
    for trace in lazy:
        np.testing.assert_allclose(trace, dense, rtol=1e-8, atol=1e-9)


@given(st.one_of(clouds(), grids()), st.booleans())
def test_results_agree_with_dense_ones(case, some_are_empty):
    geometry, M, rng = case
    n, m = M.shape
    a, b = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    if M.max() == 0:
        return
    if some_are_empty and n > 1:
        a[::2] = 0
        a /= a.sum()
    ours, theirs = (np.array(list(epochs("sinkhorn", G, a, b))) for G in (geometry, Dense(M)))
    np.testing.assert_allclose(ours, theirs, rtol=1e-9, atol=1e-9 * M.max())
    eps = 0.05 * M.max()
    result = epsilot.solve(geometry, a, b, eps=eps, method="sinkhorn")
    exact = epsilot.exact(M, a, b).value
    assert result.gap <= eps
    assert result.lower_bound <= exact + 1e-12 * M.max()
    assert exact <= result.value + 1e-12 * M.max()


@pytest.mark.parametrize("method", sorted(set(ENTROPIC) - set(LAZY)))
def test_a_method_that_needs_the_matrix_says_so(method):
    with pytest.raises(epsilot.InvalidProblem, match=rf"{method} needs an explicit cost matrix"):
        epsilot.solve(Grid((3, 3)), eps=0.1, method=method)


def test_masses_with_zeros_on_a_grid(rng):
    A, B = rng.random((6, 5)), rng.random((6, 5))
    A[:3] = 0
    B[:, 2] = 0
    B *= A.sum() / B.sum()
    for metric in ("cityblock", "sqeuclidean"):
        result = epsilot.solve_grid(A, B, metric=metric, rtol=0.05)
        M = Grid((6, 5), metric=metric).block(0, 30)
        exact = epsilot.exact(M, A.ravel(), B.ravel())
        assert result.converged
        assert result.lower_bound <= exact.value * (1 + 1e-12)
        assert exact.value * (1 - 1e-12) <= result.value
        rows, cols = result.plan_operator.marginals()
        assert np.abs(rows - A.ravel()).sum() <= 1e-12 * A.sum()
        assert np.abs(cols - B.ravel()).sum() <= 1e-12 * A.sum()


def test_float32_sweeps_lead_to_a_float64_certificate(rng):
    X, Y = rng.random((60, 2)), rng.random((80, 2))
    exact = epsilot.exact(cdist(X, Y, "sqeuclidean")).value
    lazy = epsilot.solve_sample(X, Y, lazy=True, rtol=0.02, method="sinkhorn")
    assert lazy.converged
    assert lazy.lower_bound <= exact * (1 + 1e-12) <= lazy.value * (1 + 1e-12)
    rows, _ = lazy.plan_operator.marginals()
    np.testing.assert_allclose(rows, 1 / 60, atol=1e-14)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
def test_the_largest_cost_of_a_large_cloud_is_between_corners_of_hulls(metric, rng, monkeypatch):
    for d in (1, 2, 3):
        X, Y = rng.normal(size=(300, d)) + 0.1, rng.normal(size=(200, d))
        expected = cdist(X, Y, metric).max()
        monkeypatch.setattr(points_module, "EXACT_BOUNDS", 20_000)
        assert PointCloud(X, Y, metric).bounds[1] == pytest.approx(expected, rel=1e-12)
        flat = np.repeat(X[:, :1], 2, axis=1)
        assert PointCloud(flat, flat, metric).bounds[1] >= cdist(flat, flat, metric).max() - 1e-12


def test_a_middle_cloud_starts_a_large_one_near_its_fixed_point(rng, monkeypatch):
    X, Y = rng.random((900, 2)), 0.2 * rng.normal(size=(800, 2)) + 0.5
    a = np.where(np.arange(900) % 3 == 0, 0.0, 1 / 600)
    monkeypatch.setattr(starts, "N_CELLS", 32)
    runs = {}
    for large in (10**6, 100):
        monkeypatch.setattr(starts, "LARGE", large)
        monkeypatch.setattr(starts, "N_MIDDLE", 256)
        runs[large] = epsilot.solve_sample(
            X, Y, a, rtol=0.1, lazy=True, multiscale=True, method="sinkhorn"
        )
        assert runs[large].converged
    assert runs[100].history[0].gap < 0.5 * runs[10**6].history[0].gap


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: Grid((2, 2, 2, 2)), "one to three axes"),
        (lambda: Grid((3,), (3, 3)), "same number"),
        (lambda: Grid((3,), metric="cosine"), "PointCloud"),
        (lambda: Grid((3,), spacing=0), "positive"),
        (lambda: PointCloud([[1.0, 2]], [[1.0]]), "one space"),
        (lambda: PointCloud([[1.0]], [[1.0]], "manhattan"), "cityblock"),
        (lambda: PointCloud([[np.nan]], [[1.0]]), "not finite"),
        (lambda: PointCloud([[0.0, 0]], [[1.0, 1]], "cosine"), "zero vector"),
        (lambda: PointCloud(np.ones((0, 2)), [[1.0, 1]]), "n >= 1"),
        (lambda: epsilot.solve_grid(np.ones((2, 2, 2, 2)), np.ones(3)), "one to three axes"),
        (lambda: epsilot.solve(Grid((3, 3)), method="exact"), "explicit cost matrix"),
    ],
)
def test_bad_input_gets_a_sentence(call, words):
    with pytest.raises(epsilot.InvalidProblem, match=words):
        call()


def test_a_plan_too_large_to_store_says_what_to_use():
    mass = np.full(10**6, 1e-6)
    result = epsilot.solve(Grid((1000, 1000)), mass, mass, rtol=0.5, max_iter=1, on_limit="ignore")
    with pytest.raises(MemoryError, match=r"7450\.6 GiB.*plan_operator"):
        result.plan  # noqa: B018
    assert result.plan_operator.row(5).shape == (10**6,)
