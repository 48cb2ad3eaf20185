"""Stopped anywhere, the exact methods keep a true bracket; resumed, they have the same bits."""

import signal

import numpy as np
import ot
import pytest

import epsilot
from epsilot.geometry import Grid, PointCloud
from epsilot.solvers import arc_simplex, auction, grid_flow
from epsilot.solvers.auction import Auction
from epsilot.solvers.grid_flow import GridFlow
from tuning import tune

RNG = np.random.default_rng(7)
X, Y = RNG.random((300, 2)), RNG.normal(size=(260, 2))
A, B = RNG.dirichlet(np.ones(300)), RNG.dirichlet(np.ones(260))
P, Q = RNG.dirichlet(np.ones(24 * 17), 2)

#: name -> solver, geometry, masses
RUNS = {
    "auction, squared": (Auction, PointCloud(X, Y), A, B),
    "auction, Euclidean": (Auction, PointCloud(X, Y, "euclidean"), A, B),
    "auction, a grid": (Auction, Grid((24, 17), metric="sqeuclidean"), P, Q),
    "grid_flow": (GridFlow, Grid((24, 17)), P, Q),
}
NAMES = {Auction: "auction", GridFlow: "grid_flow"}


@pytest.fixture(autouse=True)
def short_steps(monkeypatch):
    tune(monkeypatch, auction, max_coarsest_cells=16)
    tune(monkeypatch, auction, max_bids_per_step=200)
    tune(monkeypatch, arc_simplex, pivots_per_step=30)
    tune(monkeypatch, grid_flow, max_coarsest_side=4)
    tune(monkeypatch, grid_flow, max_cells_per_step=2000)


def solve(name, **keywords):
    solver, geometry, a, b = RUNS[name]
    return epsilot.solve(
        geometry, a, b, rtol=1e-9, method=NAMES[solver], on_limit="ignore", **keywords
    )


def bits(result):
    plan = result.plan_operator.tosparse()
    parts = (*result.potentials, plan.data, plan.indices, plan.indptr)
    counts = result.value, result.lower_bound, result.n_iter, result.work.operations
    return counts, [x.tobytes() for x in parts]


def check_bracket(name, result):
    """Recompute plan and potentials from the matrix."""
    _, geometry, a, b = RUNS[name]
    C = geometry.block(0, a.size)
    exact = ot.emd2(a, b, C, numItermax=10**7)
    room = 1e-12 * C.max()
    assert result.lower_bound - room <= exact <= result.value + room
    f, g = result.potentials
    assert (f[:, None] + g <= C + 1e-15 * C.max()).all()
    assert f @ a + g @ b == pytest.approx(result.lower_bound, abs=room)
    plan = result.plan_operator.tosparse()
    assert plan.multiply(C).sum() == pytest.approx(result.value, abs=room)
    assert np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum() <= 1e-12


@pytest.fixture(scope="module")
def wholes():
    return {}


def whole(name, wholes):
    if name not in wholes:
        wholes[name] = solve(name)
    return wholes[name]


@pytest.mark.parametrize("share", [0.0, 0.3, 0.6, 0.9])
@pytest.mark.parametrize("name", RUNS)
def test_ctrl_c_inside_a_step_leaves_a_proof_and_a_checkpoint(
    name, share, wholes, tmp_path, monkeypatch
):
    uninterrupted, path = whole(name, wholes), tmp_path / "run.npz"
    at = 1 + int(share * (uninterrupted.n_iter - 1))
    solver = RUNS[name][0]
    step, taken = solver.step, []

    def interrupted(self, problem, state, rng):
        taken.append(1)
        if len(taken) == at:
            signal.raise_signal(signal.SIGINT)
        return step(self, problem, state, rng)

    monkeypatch.setattr(solver, "step", interrupted)
    part = solve(name, checkpoint=path)
    assert part.status is epsilot.Status.INTERRUPTED
    assert part.n_iter == at
    check_bracket(name, part)
    monkeypatch.setattr(solver, "step", step)
    assert bits(solve(name, resume=path)) == bits(uninterrupted)


@pytest.mark.parametrize("limit", [{"max_seconds": 0.01}, {"max_seconds": 0.0}, {"max_iter": 5}])
@pytest.mark.parametrize("name", RUNS)
def test_limits_inside_leave_a_proof_and_a_checkpoint(name, limit, wholes, tmp_path):
    path = tmp_path / "run.npz"
    part = solve(name, checkpoint=path, **limit)
    check_bracket(name, part)
    if not part.converged:
        assert bits(solve(name, resume=path)) == bits(whole(name, wholes))


@pytest.mark.parametrize("name", RUNS)
def test_stopped_at_every_step_it_ends_alike(name, wholes, tmp_path):
    path, steps = tmp_path / "run.npz", whole(name, wholes).n_iter
    for limit in range(1, steps, max(1, steps // 8)):
        resume = {"resume": path} if path.exists() else {}
        part = solve(name, max_iter=limit, checkpoint=path, **resume)
        assert part.lower_bound <= part.value
    assert bits(solve(name, resume=path)) == bits(whole(name, wholes))
