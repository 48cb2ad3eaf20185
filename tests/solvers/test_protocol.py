"""What candidates, violations and counts of work mean, for methods of every kind."""

import copy

import accelerated_listings as listings
import numpy as np
import pytest
from accelerated_listings import states
from by_hand import small, start

from epsilot.problems.problem import make_problem
from epsilot.solvers import make_solver
from epsilot.solvers.base import with_least_sup_norm

ACCELERATED = ["apdagd", "apdamd", "apdrcd", "apdgcd", "hybrid_primal_dual"]


@pytest.mark.parametrize("name", ACCELERATED)
def test_violation_is_that_of_the_current_plan(name, monkeypatch):
    monkeypatch.setattr("epsilot.solvers.apdrcd._EPOCH_ENTRIES", 1)
    problem = listings.small(9, 7)
    b = np.concatenate([problem.p, problem.q])
    for solver, _, state in states(problem, name, 25):
        core, _ = solver.candidates(problem, state)[-1]
        current = np.abs(np.concatenate(core.marginals()) - b).sum()
        # The coordinate methods know it for a point of the same epoch.
        near = 0.5 if name in ("apdrcd", "apdgcd") else 1e-9
        assert solver.signal(problem, state).violation == pytest.approx(current, rel=near)


def test_candidates_are_not_changed_by_later_steps():
    for name in ACCELERATED:
        problem = listings.small(9, 7)
        solver = make_solver(name, {}).resolved("certificate", make_problem(np.eye(3)))
        rng = np.random.default_rng(0)
        state, _ = solver.init(problem, rng)
        solver.step(problem, state, rng)
        found = solver.candidates(problem, state)
        assert len(found) == 2
        kept = copy.deepcopy([(core.block(0, 9), row) for core, row in found])
        solver.step(problem, state, rng)
        for (core, row), (X, old) in zip(found, kept, strict=True):
            np.testing.assert_array_equal(core.block(0, 9), X)
            np.testing.assert_array_equal(row, old)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("sinkhorn", {}),
        ("aam", {}),
        ("greenkhorn", {"start": "rows", "tested": "epoch"}),
        ("stochastic_sinkhorn", {"start": "rows", "tested": "epoch"}),
    ],
)
def test_constant_added_to_the_cost_leaves_plans_unchanged(method, options):
    plans = []
    for shift in (0.0, 3.0):
        problem = small(shift=shift)
        solver, state, rng = start(make_solver(method, options), problem)
        for _ in range(12):
            solver.step(problem, state, rng)
        plans.append(solver.candidates(problem, state)[0][0].block(0, problem.shape[0]))
    np.testing.assert_allclose(plans[0], plans[1], rtol=1e-9)


N, M = 7, 5


WORK = {  # units of the first step, and of four steps
    "sinkhorn": ({"lse": N * M, "vector": 8 * M}, {"lse": 4 * N * M, "vector": 16 * (N + M)}),
    "greenkhorn": (
        {"vector": (N + M) ** 2},
        {"vector": 4 * (N + M) ** 2, "both_marginals": 2 * N * M},
    ),
    "stochastic_sinkhorn": (
        {"vector": 2 * (N + M) ** 2},
        {"vector": 8 * (N + M) ** 2, "both_marginals": 2 * N * M},
    ),
    "accelerated_sinkhorn": (
        {"both_marginals": N * M, "lse": 2 * N * M, "vector": 20 * (N + M)},
        {"both_marginals": 4 * N * M, "lse": 8 * N * M, "vector": 80 * (N + M)},
    ),
    "katyusha_sinkhorn": (  # one batch of all rows, and two passes
        {"softmax": 16 * M + 2 * N * M, "inner": 2 * N * M, "vector": 32 * M + 2 * N + 7 * M},
        {"softmax": 64 * M + 8 * N * M, "inner": 8 * N * M, "vector": 128 * M + 8 * N + 28 * M},
    ),
    "aam": (
        {"both_marginals": N * M, "vector": 9 * N * M, "rounding": N * M, "inner": N * M},
        {"vector": 18 * N * M, "rounding": N * M, "inner": N * M},
    ),
}


SINKHORN = list(WORK)


@pytest.mark.parametrize("method", SINKHORN)
def test_work_follows_its_formula(method):
    problem = small(N, M)
    options = {"tested": "epoch"} if "greenkhorn" in method or "stochastic" in method else {}
    solver, state, rng = start(make_solver(method, options), problem)
    first = total = solver.step(problem, state, rng)
    for _ in range(3):
        total += solver.step(problem, state, rng)
    for work, expected in zip((first, total), WORK[method], strict=True):
        found = dict(work.units)
        touched = found.pop("coordinate", 0)  # n a column, m a row
        if method == "aam" and work is total:
            assert found.pop("both_marginals") % (N * M) == 0
        assert found == expected
        n_updates = (N + M) * (1 if work is first else 4)
        assert touched == 0 or M * n_updates <= touched <= N * n_updates


def test_centred_has_least_sup_norm():
    f, g = with_least_sup_norm(np.array([5.0, 9.0]), np.array([-3.0, 1.0]))
    assert max(np.abs(f).max(), np.abs(g).max()) == 5.0
    np.testing.assert_allclose(f[:, None] + g, [[2, 6], [6, 10]])
