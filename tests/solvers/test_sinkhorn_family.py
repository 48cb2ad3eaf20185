"""The Sinkhorn family and AAM: both stops, hard instances, checkpoints, seeds, options."""

import numpy as np
import pytest
from by_hand import small, start

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.solvers import make_solver
from epsilot.transport.plan import Explicit
from epsilot.transport.rounding import round_onto
from problems import exact_value, random, row, trace

FAMILY = ["sinkhorn", "greenkhorn", "stochastic_sinkhorn", "accelerated_sinkhorn", "aam"]
VARIANTS = {
    "sinkhorn": ("sinkhorn", {}),
    "greenkhorn": ("greenkhorn", {}),
    "stochastic": ("stochastic_sinkhorn", {}),
    "stochastic, power 2": ("stochastic_sinkhorn", {"power": 2.0}),
    "stochastic, uniform": ("stochastic_sinkhorn", {"power": 0.0}),
    "accelerated, published": ("accelerated_sinkhorn", {"variant": "published"}),
    "accelerated, corrected": ("accelerated_sinkhorn", {}),
    "accelerated, n/4": ("accelerated_sinkhorn", {"momentum_step": 9.0}),
    "aam dual line": ("aam", {"variant": "dual", "search": "line_search"}),
    "aam dual back": ("aam", {"variant": "dual", "search": "backtracking"}),
    "aam primal line": ("aam", {"variant": "primal_dual", "search": "line_search"}),
    "aam primal back": ("aam", {"variant": "primal_dual", "search": "backtracking"}),
}


# -- rounding ------------------------------------------------------------------------------


def test_rounding_is_feasible_and_moves_at_most_the_violation(rng):
    for _ in range(200):
        n, m = rng.integers(1, 9, 2)
        X = rng.random((n, m)) ** 4
        X[rng.random(n) < 0.2] = 0
        X = X / X.sum() if X.any() else X
        p, q = rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
        rounded, _, error = round_onto(Explicit(X), p, q)
        plan = rounded.toarray()
        assert plan.min() >= 0
        np.testing.assert_allclose(plan.sum(axis=1), p, atol=1e-12)
        np.testing.assert_allclose(plan.sum(axis=0), q, atol=1e-12)
        if X.any():
            assert np.abs(plan - X).sum() <= error * (1 + 1e-9) + 1e-13
        again = round_onto(Explicit(plan), p, q).plan.toarray()
        np.testing.assert_allclose(again, plan, atol=1e-14)


# -- both stops on every variant ---------------------------------------------------------------


def half_zero():
    M, a, b = grid_cost((6, 6)), *(x.ravel().copy() for x in synthetic_pair(6, 1))
    a[::2], b[1::2] = 0, 0
    return M, a / a.sum(), b / b.sum()


STRESS = {
    "half the masses zero": (row("zeros", half_zero()), 0.05),
    "small ε": (
        row("small", (grid_cost((4, 4)), *(x.ravel() for x in synthetic_pair(4, 0)))),
        5e-3,
    ),
    "dirichlet 0.3": (row("dirichlet", random(30, 30, 0.3, seed=3)), 0.05),
    "no zero cost": (row("shifted", (random(20, 20)[0] + 10.0, *random(20, 20)[1:])), 0.05),
    "n ≠ m": (row("rectangular", random(15, 40, 1.0, seed=4)), 0.05),
}


@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("case", STRESS)
@pytest.mark.parametrize("variant", VARIANTS)
def test_hard_instances(variant, case, stop):
    method, options = VARIANTS[variant]
    instance, eps = STRESS[case]
    M, a, b = instance.M, instance.a, instance.b
    result = epsilot.solve(M, a, b, eps=eps, method=method, stop=stop, on_limit="ignore", **options)
    assert result.converged
    assert result.value - exact_value(instance) <= eps
    assert result.plan.min() >= 0


@pytest.mark.parametrize("variant", VARIANTS)
def test_scaling_leaves_the_iterations_unchanged(variant):
    method, options = VARIANTS[variant]
    M, a, b = (np.array(x) for x in random(12, 12, 1.0, seed=5))
    runs = [
        epsilot.solve(t * M, a, b, eps=0.1 * t, method=method, stop="paper", on_limit="ignore",
                      **options)
        for t in (1.0, 2.0**20, 2.0**-30)
    ]  # fmt: skip
    assert len({run.n_iter for run in runs}) == 1
    assert len({run.work.operations for run in runs}) == 1
    np.testing.assert_allclose(runs[0].plan, runs[1].plan, atol=1e-13)


@pytest.mark.parametrize(
    ("method", "options"),
    [("sinkhorn", {}), ("aam", {}), ("greenkhorn", {"start": "rows"}),
     ("stochastic_sinkhorn", {"start": "rows"})],
)  # fmt: skip
def test_constant_added_to_the_cost_leaves_plans_unchanged(method, options):
    plans = []
    for shift in (0.0, 3.0):
        problem = small(shift=shift)
        solver, state, rng = start(make_solver(method, options), problem)
        for _ in range(12):
            solver.step(problem, state, rng)
        plans.append(solver.candidates(problem, state)[0][0].block(0, problem.shape[0]))
    np.testing.assert_allclose(plans[0], plans[1], rtol=1e-9)


@pytest.mark.parametrize("target", [{"eps": 0.01}, {"eps": 0.1, "stop": "paper"}])
@pytest.mark.parametrize("variant", VARIANTS)
def test_resumed_run_repeats_the_uninterrupted_one(variant, target, tmp_path):
    method, options = VARIANTS[variant]
    M, a, b = random(14, 11, 0.5, seed=6)
    arguments = dict(M=M, a=a, b=b, method=method, **target, **options)
    whole = epsilot.solve(**arguments)
    path = tmp_path / "state.npz"
    epsilot.solve(**arguments, max_iter=whole.n_iter // 2, on_limit="ignore", checkpoint=path)
    resumed = epsilot.solve(**arguments, resume=path)
    assert trace(resumed) == trace(whole)
    assert resumed.work.operations == whole.work.operations


@pytest.mark.parametrize("method", FAMILY)
def test_warm_start_saves_work(method):
    M, a, b = random(20, 20, 1.0, seed=7)
    arguments = {"M": M, "a": a, "b": b, "reg": 0.05, "tol": 1e-5, "method": method}
    cold = epsilot.solve(**arguments)
    warm = epsilot.solve(**arguments, potentials_init=cold.potentials)
    assert cold.converged
    assert warm.converged
    assert warm.work.operations <= cold.work.operations
    assert warm.n_iter <= 2


LAZY = {
    "points": lambda rng: PointCloud(rng.random((12, 2)), rng.random((12, 2))),
    "grid": lambda rng: Grid((3, 4), spacing=0.2),  # keeps its empty cells
}


@pytest.mark.parametrize("kind", LAZY)
@pytest.mark.parametrize("wish", [{"eps": 0.02}, {"reg": 0.05, "tol": 1e-5}])
@pytest.mark.parametrize("method", ["sinkhorn", "accelerated_sinkhorn", "aam"])
def test_lazy_costs_need_no_matrix(method, wish, kind, rng):
    geometry = LAZY[kind](rng)
    a, b = rng.dirichlet(np.ones(12)), rng.dirichlet(np.ones(12))
    a[::3] = 0
    lazy, dense = (
        epsilot.solve(cost, a / a.sum(), b, method=method, on_limit="raise", **wish)
        for cost in (geometry, Dense(geometry.block(0, 12)))
    )
    assert abs(lazy.value - dense.value) <= wish.get("eps", wish.get("tol"))


@pytest.mark.parametrize("method", ["greenkhorn", "stochastic_sinkhorn"])
def test_coordinate_methods_ask_for_a_matrix(method, rng):
    with pytest.raises(epsilot.InvalidProblem, match="explicit cost"):
        epsilot.solve(PointCloud(rng.random((5, 2)), rng.random((5, 2))), eps=0.1, method=method)


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
    "aam": (
        {"both_marginals": N * M, "vector": 9 * N * M, "rounding": N * M, "inner": N * M},
        {"vector": 18 * N * M, "rounding": N * M, "inner": N * M},
    ),
}


@pytest.mark.parametrize("method", FAMILY)
def test_work_follows_its_formula(method):
    problem = small(N, M)
    solver, state, rng = start(make_solver(method, {}), problem)
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


def test_seed_matters_only_to_the_stochastic_method():
    M, a, b = random(20, 20, 1.0, seed=8)
    for method in FAMILY:
        runs = [
            epsilot.solve(M, a, b, eps=0.1, method=method, stop="paper", seed=seed)
            for seed in (0, 1)
        ]
        is_same = trace(runs[0]) == trace(runs[1])
        assert is_same == (method != "stochastic_sinkhorn")


@pytest.mark.parametrize(
    ("method", "options", "word"),
    [("stochastic_sinkhorn", {"power": -1}, "power"), ("greenkhorn", {"start": "x"}, "start"),
     ("accelerated_sinkhorn", {"variant": "x"}, "variant"),
     ("accelerated_sinkhorn", {"momentum_step": 0}, "momentum_step"),
     ("aam", {"variant": "x"}, "variant"), ("aam", {"search": "x"}, "search"),
     ("aam", {"test_every": -1}, "test_every")],
)  # fmt: skip
def test_options_are_checked(method, options, word):
    with pytest.raises(epsilot.InvalidProblem, match=word):
        epsilot.solve(np.eye(2), eps=0.1, method=method, **options)
