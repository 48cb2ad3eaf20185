"""Both stops reach ε: every variant, on hard instances, whatever the scale."""

import numpy as np
import pytest
from by_hand import synthetic

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.problems.work import Status
from epsilot.solvers import appendix_c
from sample_problems import (
    equal_masses,
    exact_value,
    images,
    points,
    random,
    row,
    solve_exactly,
    zero_masses,
)

DIRECT = ["dual_extrapolation", "dijkstra_dfs", "packing_lp"]
ACCELERATED = ["apdagd", "apdamd", "apdrcd", "apdgcd", "hybrid_primal_dual"]


# n = 36, ε = 0.2: iterations and operations of a NumPy prototype, mean of three instances.
PUBLISHED = [
    ("apdagd", {"rule": "violation"}, 136, 6.5e6),
    ("apdamd", {}, 145, 6.9e6),
    ("apdrcd", {}, 6.1e4, 3.4e7),
    ("hybrid_primal_dual", {"form": "accelerated"}, 416, 6.2e6),
    ("hybrid_primal_dual", {}, 95, 3.3e6),
]


@pytest.mark.parametrize(("name", "options", "iterations", "operations"), PUBLISHED)
def test_published_runs_cost_as_much_as_a_prototype(name, options, iterations, operations):
    runs = []
    for seed in range(3):
        M, a, b = synthetic(6, seed)
        result = epsilot.solve(M, a, b, eps=0.2, method=name, stop="paper", **options)
        assert result.status is Status.PUBLISHED_STOP
        assert result.value - solve_exactly(M, a, b) <= result.gap <= 0.2
        runs.append((result.n_iter, result.work.operations))
    steps = 72 if name == "apdrcd" else 1
    found = np.mean(runs, axis=0) * [steps, 1]
    np.testing.assert_allclose(found, [iterations, operations], rtol=0.15)


@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize("eps", [0.2, 0.05])
@pytest.mark.parametrize("name", ACCELERATED)
def test_gap_is_within_eps_on_images(name, eps, stop):
    side = 4 if name == "apdgcd" else 6
    M, a, b = synthetic(side, 0)
    result = epsilot.solve(M, a, b, eps=eps, method=name, stop=stop)
    assert result.gap <= eps
    assert result.lower_bound - 1e-12 <= solve_exactly(M, a, b) <= result.value + 1e-12


@pytest.mark.parametrize("name", ACCELERATED)
@pytest.mark.parametrize("stop", ["paper", "certificate"])
def test_zero_masses_in_both_modes(name, stop):
    M, a, b = random(8, 9, seed=5)
    a[::3], b[1::3] = 0.0, 0.0
    result = epsilot.solve(M, a / a.sum(), b / b.sum(), eps=0.1, method=name, stop=stop)
    assert result.gap <= 0.1


@pytest.mark.parametrize("name", ACCELERATED)
def test_scale_of_the_cost_leaves_the_count(name):
    M, a, b = synthetic(4, 1)
    counts = [
        epsilot.solve(t * M, a, b, eps=0.1 * t, method=name, stop="paper").n_iter for t in (1, 1e6)
    ]
    assert counts[1] == pytest.approx(counts[0], rel=0.02)


#: Every method under Appendix C's criterion, those of Figure 1 first.
ONE_CRITERION = [
    *("pdasmd", "pdasgd", "apdagd", "aam", "sinkhorn", "apdrcd", "stochastic_sinkhorn"),
    *("greenkhorn", "accelerated_sinkhorn", "apdamd", "hybrid_primal_dual", "box_newton"),
    "katyusha_sinkhorn",
]


@pytest.mark.parametrize("name", ONE_CRITERION)
def test_one_criterion_ends_every_entropic_method(name):
    M, a, b = synthetic(4, 0)
    eps, seen = 0.2, []
    result = epsilot.solve(
        M, a, b, eps=eps, method=name, stop="paper", callback=seen.append, **appendix_c(name)
    )
    assert result.status is Status.PUBLISHED_STOP
    assert result.reg == pytest.approx(eps / (4 * np.log(16)))
    slack = eps / (8 * M.max())  # ε', of which half is the violation and half the smoothing
    assert result.marginal_error <= slack
    # Not earlier: what was seen on the way missed p' and q' by more than ε'/2.
    assert all(record.marginal_error > slack / 4 for record in seen[:-1])


@pytest.mark.parametrize("name", DIRECT)
def test_a_direct_method_has_no_such_criterion(name):
    with pytest.raises(epsilot.InvalidProblem, match=f"{name} solves no entropic problem"):
        appendix_c(name)


@pytest.mark.parametrize(("name", "rule"), [("apdagd", "duality"), ("apdamd", "violation")])
def test_the_published_stop_is_the_rule_of_the_methods_own_paper(name, rule):
    M, a, b = synthetic(4, 0)
    result = epsilot.solve(M, a, b, eps=0.2, method=name, stop="paper")
    assert result.options["rule"] == rule
    share = {"duality": 3, "violation": 4}[rule]
    assert result.reg == pytest.approx(0.2 / (share * np.log(16)))


WITH_CONSTANTS = [*DIRECT, "box_newton"]


SETTINGS = [
    ("dual_extrapolation", {"constants": "sharp"}),
    ("dual_extrapolation", {"constants": "published"}),
    ("dual_extrapolation", {"average": False}),
    ("dijkstra_dfs", {"variant": "push_relabel"}),
    ("dijkstra_dfs", {"constants": "published"}),
    ("dijkstra_dfs", {"variant": "push_relabel", "constants": "published"}),
    ("packing_lp", {"constants": "safe"}),
    ("packing_lp", {"constants": "published"}),
    ("box_newton", {"constants": "published"}),
]


def skewed():
    M, a, b = random(20, 15, seed=11)
    a, b = a.copy(), b.copy()
    a[:5], b[:3] = 1e-12, 1e-9
    return 37 * M + 2, a / a.sum(), b / b.sum()


INSTANCES = {
    "images": lambda: images(5),
    "points": points,
    "skewed": skewed,
    "zero masses": zero_masses,
}


@pytest.mark.parametrize(("method", "options"), SETTINGS, ids=str)
@pytest.mark.parametrize("name", INSTANCES)
def test_every_setting_is_certified(name, method, options):
    M, a, b = INSTANCES[name]()
    eps = 0.2 * float(np.ptp(M))
    result = epsilot.solve(M, a, b, eps=eps, method=method, on_limit="raise", **options)
    assert result.gap <= eps
    exact, round_off = solve_exactly(M, a, b), 1e-9 * np.abs(M).max()
    assert result.lower_bound - round_off <= exact <= result.value + round_off
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12
    assert np.abs(result.plan.sum(axis=0) - b).sum() <= 1e-12


@pytest.mark.parametrize(
    ("method", "options"),
    [*((method, {}) for method in WITH_CONSTANTS), ("dijkstra_dfs", {"variant": "push_relabel"})],
    ids=str,
)
@pytest.mark.parametrize("name", ["skewed", "zero masses"])
def test_the_published_rule_reaches_eps(name, method, options):
    M, a, b = INSTANCES[name]()
    eps = 0.9 * float(np.ptp(M))
    result = epsilot.solve(M, a, b, eps=eps, method=method, stop="paper", **options)
    assert result.status is epsilot.Status.PUBLISHED_STOP
    assert result.options["constants"] == "published"
    assert result.value - solve_exactly(M, a, b) <= eps


@pytest.mark.parametrize("method", WITH_CONSTANTS)
@pytest.mark.parametrize("name", INSTANCES)
def test_relative_tolerance(name, method):
    M, a, b = INSTANCES[name]()
    result = epsilot.solve(M, a, b, rtol=0.1, method=method, on_limit="raise")
    assert result.gap <= 0.1 * result.lower_bound
    assert result.gap > 0 or method != "packing_lp"


@pytest.mark.parametrize("method", ["dual_extrapolation", "dijkstra_dfs"])
def test_an_optimum_of_zero_is_no_trap(method):
    M, a, b = equal_masses()
    result = epsilot.solve(M, a, b, rtol=0.5, method=method, max_iter=600, on_limit="ignore")
    assert result.gap <= 1e-4 * M.max()


VARIANTS = {
    "sinkhorn": ("sinkhorn", {}),
    "greenkhorn": ("greenkhorn", {}),
    "stochastic": ("stochastic_sinkhorn", {}),
    "stochastic, power 2": ("stochastic_sinkhorn", {"power": 2.0}),
    "stochastic, uniform": ("stochastic_sinkhorn", {"power": 0.0}),
    "accelerated, printed": ("accelerated_sinkhorn", {"variant": "printed"}),
    "accelerated, corrected": ("accelerated_sinkhorn", {}),
    "accelerated, n/4": ("accelerated_sinkhorn", {"momentum_step": 9.0}),
    "aam dual line": ("aam", {"variant": "dual", "search": "line_search"}),
    "aam dual back": ("aam", {"variant": "dual", "search": "backtracking"}),
    "aam primal line": ("aam", {"variant": "primal_dual", "search": "line_search"}),
    "aam primal back": ("aam", {"variant": "primal_dual", "search": "backtracking"}),
}


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
        epsilot.solve(
            t * M, a, b, eps=0.1 * t, method=method, stop="paper", on_limit="ignore", **options
        )
        for t in (1.0, 2.0**20, 2.0**-30)
    ]
    assert len({run.n_iter for run in runs}) == 1
    assert len({run.work.operations for run in runs}) == 1
    np.testing.assert_allclose(runs[0].plan, runs[1].plan, atol=1e-13)


@pytest.mark.parametrize("method", ["sinkhorn", "pdasmd", "apdagd", "stochastic_sinkhorn"])
def test_published_constants_are_those_of_the_costs_as_given(method):
    """With costs from 1 to 2, ε' = ε/(8 ‖C‖∞) has ‖C‖∞ = 2; shifted to [0, 1] it has 1."""
    M, a, b = random(10, 10, seed=2)
    M = (M - M.min()) / np.ptp(M)
    options = appendix_c(method)
    low, high = (
        epsilot.solve(M + shift, a, b, eps=0.3, method=method, stop="paper", **options)
        for shift in (0.0, 1.0)
    )
    assert high.n_iter > low.n_iter
    assert high.reg == low.reg
    assert high.value == pytest.approx(low.value + 1, abs=0.05)
    assert high.value - high.gap <= low.value + 1 + 1e-12
    certified = [
        epsilot.solve(M + shift, a, b, eps=0.01, method=method).value for shift in (0.0, 1.0)
    ]
    assert certified[1] == pytest.approx(certified[0] + 1, abs=0.02)


def test_negative_costs_are_shifted_under_every_stop():
    M, a, b = random(8, 8, seed=2)
    runs = [
        epsilot.solve(M - shift, a, b, eps=0.3, method="sinkhorn", stop="paper")
        for shift in (M.min(), M.min() + 1)
    ]
    assert runs[0].n_iter == runs[1].n_iter
    assert runs[1].value == pytest.approx(runs[0].value - 1, abs=1e-9)
