"""Exact l1 transport on grids: equal to POT's simplex, proved by brute force, resumable."""

import signal

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from ot.lp import emd2
from scipy.spatial.distance import cdist

import epsilot
from epsilot import memory
from epsilot.geometry import Grid, PointCloud
from epsilot.problems.problem import Additive
from epsilot.solvers import grid_flow
from sample_problems import trace
from tuning import tune, tuned


def noise(shape, seed=0, power=1.0, empty=0.0):
    rng = np.random.default_rng(seed)
    return rng.random(shape) ** power * (rng.random(shape) >= empty)


def pair(shape, shape_b=None, **options):
    return noise(shape, 1, **options), noise(shape_b or shape, 2, **options)


def blocks(shape):
    A, B = np.zeros(shape), np.zeros(shape)
    A[: shape[0] // 2] = 1.0
    B[shape[0] // 3 :, shape[1] // 2 :] = 1.0
    return A, B


def one_cell(shape):
    A = np.zeros(shape)
    A[0, -1] = 1.0
    return A, noise(shape)


def corners(shape):
    A = np.zeros(shape)
    A[0, 0] = 1.0
    return A, A[::-1, ::-1].copy()


def ratios(shape, span):
    rng = np.random.default_rng(3)
    return 10.0 ** rng.uniform(-span, 0, shape), 10.0 ** rng.uniform(-span, 0, shape)


def nearly_equal(shape):
    A = noise(shape) + 0.1
    B = A.copy()
    B[0, 0] += 1e-9
    return A, B


#: A, B, spacing
CASES = {
    "1-d": (*pair((400,)), 1.0),
    "1-d, other lengths": (*pair((300,), (411,)), 2.5),
    "2-d": (*pair((37, 41)), 1.0),
    "2-d, heavy tails": (*pair((40, 40), power=8.0), 1.0),
    "2-d, mostly empty": (*pair((44, 44), empty=0.9), 1.0),
    "2-d, uneven": (*pair((23, 31)), (1.0, 0.3)),
    "2-d, very uneven": (*pair((21, 33)), (1000.0, np.pi / 7)),
    "2-d, multiples": (*pair((24, 18)), (0.5, 1.5)),
    "2-d, other shapes": (*pair((20, 33), (31, 17)), 1.0),
    "2-d, other shapes, uneven": (*pair((9, 33), (31, 5)), (0.7, 1.1)),
    "3-d": (*pair((11, 9, 10)), 1.0),
    "3-d, uneven": (*pair((7, 5, 9), empty=0.3), (1.0, 0.3, 2.5)),
    "3-d, other shapes": (*pair((7, 12, 3), (10, 4, 5)), 2.0),
    "one row": (*pair((1, 300)), (5.0, 1.0)),
    "one column": (*pair((300, 1)), 1.0),
    "two columns": (*pair((150, 2)), 1.0),
    "three columns, uneven": (*pair((90, 3)), (1.0, 0.3)),
    "thin in the middle": (*pair((20, 2, 21), empty=0.3), 1.0),
    "thin at the end": (*pair((20, 21, 3), empty=0.5), 1.0),
    "long one way, wide the other": (*pair((70, 2), (2, 60)), 1.0),
    "a side of one": (*pair((1, 21, 19), empty=0.3), 1.0),
    "one cell": (np.ones((1, 1)), np.ones((1, 1)), 1.0),
    "one cell to many": (np.ones((1, 1)), noise((12, 13)), 1.0),
    "all in one cell": (*one_cell((30, 32)), 1.0),
    "corner to corner": (*corners((30, 30)), 1.0),
    "blocks": (*blocks((34, 26)), 1.0),
    "checkerboards": (np.indices((24, 24)).sum(0) % 2, 1 - np.indices((24, 24)).sum(0) % 2, 1.0),
    "equal": (noise((20, 20)), noise((20, 20)), 1.0),
    "constant": (np.ones((20, 22)), np.ones((20, 22)), 1.0),
    "constant, other shapes": (np.ones((20, 22)), np.ones((15, 26)), 1.0),
    "nearly equal": (*nearly_equal((20, 20)), 1.0),
    "masses over twelve decades": (*ratios((33, 35), 12), 1.0),
    "masses over 250 decades": (*ratios((20, 20), 250), 1.0),
    "whole numbers": (*(np.rint(9 * x) for x in pair((25, 25))), 1.0),
    "short steps": (*pair((20, 20)), 1e-9),
    "long steps": (*pair((20, 20)), 1e9),
}


def costs(A, B, spacing):
    """Return the l1 distances of all cells."""
    steps = np.broadcast_to(spacing, A.ndim)
    points = [np.indices(x.shape).reshape(x.ndim, -1).T * steps for x in (A, B)]
    return cdist(*points, "cityblock")


def solve(A, B, spacing=1.0, **options):
    options = {"rtol": 1e-9, "method": "grid_flow", "normalize": True, **options}
    return epsilot.solve_grid(A, B, spacing=spacing, **options)


def check(A, B, spacing, result, tolerance=1e-9):
    """Compare with POT, and prove the bracket from the whole cost matrix."""
    C = costs(A, B, spacing)
    a, b = (np.ravel(x) / np.sum(x) for x in (A, B))
    scale = C.max() or 1.0
    if min(C.shape) == 1:
        exact = float((C * np.outer(a, b)).sum())
    else:
        exact = scale * emd2(a, b, C / scale, numItermax=10**7)
    slack = 1e-14 * scale
    assert result.value == pytest.approx(exact, rel=tolerance, abs=slack)
    f, g = result.potentials
    assert (f[:, None] + g <= C).all()
    assert f @ a + g @ b == pytest.approx(result.lower_bound, rel=tolerance, abs=slack)
    plan = result.plan_operator.tosparse()
    assert plan.nnz <= sum(C.shape) - 1
    assert plan.data.min() > 0
    assert np.abs(plan.sum(axis=1) - a).sum() <= 1e-13
    assert np.abs(plan.sum(axis=0) - b).sum() <= 1e-13
    assert plan.multiply(C).sum() == pytest.approx(result.value, rel=tolerance, abs=slack)


@pytest.mark.parametrize("name", CASES)
def test_every_shape_is_solved_exactly(name):
    result = solve(*CASES[name])
    assert result.converged
    assert result.status is epsilot.Status.CERTIFIED
    check(*CASES[name], result)


@st.composite
def grids(draw):
    """Draw two fields of whole masses, and the spacing of their axes."""
    n_axes = draw(st.integers(1, 3))
    sides = st.tuples(*[st.integers(1, {1: 30, 2: 12, 3: 6}[n_axes])] * n_axes)
    fields = [draw(arrays(float, draw(sides), elements=st.integers(0, 9))) for _ in range(2)]
    for field in fields:
        field.flat[0] += 1
    steps = st.sampled_from([0.3, 1.0, 2.0])
    return *fields, draw(st.lists(steps, min_size=n_axes, max_size=n_axes))


@given(grids(), st.sampled_from([1, 2, 3, 16]))
def test_small_grids_of_any_kind_are_solved_exactly(drawn, coarsest):
    A, B, spacing = drawn
    with tuned(grid_flow, max_coarsest_side=coarsest):
        check(A, B, spacing, solve(A, B, spacing))


def test_prices_are_lipschitz_where_cells_are_empty():
    A, B = np.zeros((40, 40)), np.zeros((40, 40))
    A[3, 4], B[30, 35] = 1.0, 1.0
    f, g = solve(A, B).potentials
    np.testing.assert_allclose(f, -g, atol=1e-12)
    field = f.reshape(A.shape)
    assert max(np.abs(np.diff(field, axis=k)).max() for k in (0, 1)) <= 1 + 1e-13


def test_equal_spacing_is_proved_without_a_gap():
    result = solve(*pair((64, 64)))
    assert abs(result.gap) <= 1e-14


def test_masses_keep_their_unit():
    A, B = pair((15, 15))
    B *= A.sum() / B.sum()
    whole_mass, one = solve(A, B, normalize=False), solve(A, B)
    assert whole_mass.value == pytest.approx(A.sum() * one.value, rel=1e-12)


def test_auto_chooses_it_for_l1_grids_and_gives_the_reason():
    A, B = pair((20, 20))
    result = epsilot.solve_grid(A, B, normalize=True)
    assert result.method == "grid_flow"
    assert "neighbouring cells" in result.choice
    assert epsilot.solve_grid(A, B, reg=1.0, normalize=True).method == "sinkhorn"
    assert epsilot.solve_grid(A, B, metric="sqeuclidean", normalize=True).method != "grid_flow"


X = np.random.default_rng(0).random((9, 2))
UNFIT = {
    "a matrix": (np.ones((9, 9)), {}),
    "points": (PointCloud(X, X, "cityblock"), {}),
    "squares": (Grid((3, 3), None, "sqeuclidean"), {}),
}


@pytest.mark.parametrize("name", UNFIT)
def test_other_costs_are_refused_in_a_sentence(name):
    with pytest.raises(epsilot.InvalidProblem, match=r"grid_flow .*'cityblock' \(use solve_grid"):
        epsilot.solve(UNFIT[name][0], method="grid_flow")


def test_the_entropic_problem_is_refused():
    with pytest.raises(epsilot.InvalidProblem, match="grid_flow"):
        solve(*pair((5, 5)), rtol=None, reg=1.0)


def test_memory_is_checked_before_the_run(monkeypatch):
    monkeypatch.setattr(memory, "available", lambda: 200 << 20)
    grid = Grid((1024, 1024))
    with pytest.raises(epsilot.InvalidProblem, match=r"grid_flow on 1,048,576 .* MiB"):
        epsilot.solve(grid, method="grid_flow", rtol=1e-9)


# -- runs --------------------------------------------------------------------------------------


@pytest.fixture
def small_steps(monkeypatch):
    tune(monkeypatch, grid_flow, max_cells_per_step=20_000)


FIELDS = pair((48, 50))
LIMITS = {
    "no step": {"max_iter": 0},
    "one step": {"max_iter": 1},
    "ten steps": {"max_iter": 10},
    "no time": {"max_seconds": 0},
    "a callback": {"callback": lambda record: True},
}


@pytest.mark.parametrize("name", LIMITS)
def test_limits_leave_a_feasible_plan_and_a_true_gap(name, small_steps):
    result = solve(*FIELDS, **LIMITS[name], on_limit="ignore")
    assert not result.converged
    exact = solve(*FIELDS)
    assert result.lower_bound - 1e-12 <= exact.value <= result.value + 1e-12
    a, b = (np.ravel(x) / x.sum() for x in FIELDS)
    r, c = result.plan_operator.marginals()
    assert np.abs(r - a).sum() + np.abs(c - b).sum() <= 1e-12


def test_ctrl_c_ends_the_run_between_steps(small_steps):
    def interrupt(record):
        signal.raise_signal(signal.SIGINT)

    result = solve(*FIELDS, callback=interrupt, on_limit="ignore")
    assert result.status is epsilot.Status.INTERRUPTED
    assert result.gap >= 0


@pytest.mark.parametrize("n_steps", [1, 7, 30])
def test_a_resumed_run_has_the_same_trace(n_steps, small_steps, tmp_path):
    path = tmp_path / "run.npz"
    whole_run = solve(*FIELDS)
    solve(*FIELDS, max_iter=n_steps, checkpoint=path, on_limit="ignore")
    resumed = solve(*FIELDS, resume=path)
    assert trace(resumed)[-1] == trace(whole_run)[-1]
    assert resumed.n_iter == whole_run.n_iter > 30
    np.testing.assert_array_equal(
        resumed.plan_operator.toarray(), whole_run.plan_operator.toarray()
    )


ASTRAY = {
    "another level": lambda state: setattr(state, "level", 9),
    "a cell outside": lambda state: setattr(state, "at", 10**6),
    "more left than there is": lambda state: setattr(state, "left", 10**6),
    "a shorter array": lambda state: setattr(state, "flow", state.flow[:-1]),
    "a link": lambda state: state.links.__setitem__((0, 3), 10**6),
    "a flow": lambda state: state.flow.__setitem__(3, 1),
}


@pytest.mark.parametrize("name", ASTRAY)
def test_an_inconsistent_saved_state_is_rejected(name):
    A, B = (x.ravel() / x.sum() for x in FIELDS)
    target = Additive(Grid(FIELDS[0].shape), 1e-9, A, B)
    state, _ = grid_flow.GridFlow().init(target, np.random.default_rng(0))
    assert state.fits(target)
    ASTRAY[name](state)
    assert not state.fits(target)


def test_a_loose_target_ends_on_a_coarse_grid():
    x, y = np.indices((256, 256)) / 256
    A, B = 1 + np.sin(5 * x) * y, np.exp(-3 * (x - y) ** 2)
    loose, exact = solve(A, B, rtol=0.02), solve(A, B)
    assert loose.converged
    assert loose.work.operations < exact.work.operations / 2
    assert loose.value <= 1.02 * exact.value


def test_potentials_to_start_from_do_no_harm():
    A, B = pair((30, 30))
    cold = solve(A, B)
    warm = solve(A, B, potentials_init=cold.potentials)
    assert trace(warm) == trace(cold)


def test_the_gap_is_seen_while_the_finest_grid_is_solved(small_steps):
    gaps = [record.gap for record in solve(*FIELDS).history]
    assert len(gaps) > 1
    assert gaps == sorted(gaps, reverse=True)
