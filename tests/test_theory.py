"""Bounds against sums, against each other, and against runs."""

import doctest

import numpy as np
import pytest

import epsilot
from epsilot import theory
from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.problems.problem import make_problem
from epsilot.solvers import solver_class
from epsilot.solvers.base import published_parameters
from sample_problems import random

TERMS = {"smoothness": 30.0, "radius": 0.7, "inner_loops": 20, "gamma": 20.0}


def published(side=6, seed=0, eps=0.1):
    A, B = synthetic_pair(side, seed)
    problem = make_problem(grid_cost((side, side)), A.ravel(), B.ravel())
    return published_parameters(problem, eps)


@pytest.mark.parametrize("n_outer", [1, 2, 17, 300])
def test_weights_add_up(n_outer):
    assert theory.weight_total(n_outer) == sum((s + 4) / 2 for s in range(n_outer))


@pytest.mark.parametrize("batch_size", [1, 4])
def test_theorem_1_by_hand(batch_size):
    # 4 L R (1 + (l-1)/B + 2 c γ) / (l S (S+7)), and as printed
    spread = 1 + 19 / batch_size
    bound = theory.violation_bound(50, batch_size=batch_size, **TERMS)
    assert bound == pytest.approx(4 * 30 * 0.7 * (spread + 18 * 20) / (20 * 50 * 57))
    printed = theory.violation_bound(50, batch_size=batch_size, printed=True, **TERMS)
    assert printed == pytest.approx(2 * 30 * 0.7 * (spread + 18 * 20) / (20 * 50**2))
    assert theory.objective_bound(50, batch_size=batch_size, **TERMS) == pytest.approx(0.7 * bound)


@pytest.mark.parametrize("printed", [False, True])
@pytest.mark.parametrize("violation", [1.0, 1e-2, 1e-5])
def test_outer_loops_invert_the_bound(violation, printed):
    n_outer = theory.outer_loops(violation, printed=printed, **TERMS)
    assert theory.violation_bound(n_outer, printed=printed, **TERMS) <= violation
    if n_outer > 1:
        assert theory.violation_bound(n_outer - 1, printed=printed, **TERMS) > violation


@pytest.mark.parametrize(
    ("eps", "printed", "expected"),
    [
        (0.2, True, 1371),
        (0.05, True, 5070),
        (0.02, True, 12449),
        (0.2, False, 1261),
        (0.05, False, 4949),
        (0.02, False, 12324),
    ],
)
def test_outer_loops_for_transport(eps, printed, expected):
    # n = 144, the mean of two instances; the radius depends on the marginals a little
    target, _ = published(12, 0, eps)
    found = theory.pdasmd_outer_loops(eps, 1.0, target.p, target.q, printed=printed)
    assert found == pytest.approx(expected, rel=0.02)


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("pdasmd", {}),
        ("pdasmd", {"smoothness": "sharp"}),
        ("pdasmd", {"batch_size": 4}),
        ("pdasgd", {"step_constant": 3.0}),
    ],
)
def test_measured_loops_are_a_fraction_of_the_proved_ones(method, options):
    target, _ = published()
    A, B = synthetic_pair(6, 0)
    run = epsilot.solve(
        grid_cost((6, 6)), A.ravel(), B.ravel(), eps=0.1, method=method, stop="paper", **options
    )
    norm = "l2" if method == "pdasgd" else "linf"
    proved = theory.pdasmd_outer_loops(0.1, 1.0, target.p, target.q, norm=norm, **options)
    assert 0.1 * proved <= run.n_iter <= 0.45 * proved
    assert run.work.operations <= theory.pdasmd_operations(
        0.1, 1.0, target.p, target.q, norm=norm, **options
    )


def test_radius_bounds_the_optimum():
    target, _ = published()
    run = epsilot.solve(
        target.geometry, target.p, target.q, reg=target.eta, tol=1e-7, method="sinkhorn"
    )
    lam = run.potentials[1]
    size = (lam.max() - lam.min()) / 2
    sharp = theory.dual_radius(1.0, target.eta, target.p, target.q)
    printed = theory.dual_radius(1.0, target.eta, target.p, target.q, printed=True)
    assert size <= sharp <= printed / 2


@pytest.mark.parametrize("batch_size", [4, 16])
def test_corollary_1_grows_like_the_root_of_the_batch(batch_size):
    target, _ = published(20)
    one, many = (
        theory.pdasmd_outer_loops(0.1, 1.0, target.p, target.q, batch_size=B, smoothness="sharp")
        for B in (1, batch_size)
    )
    assert many / one == pytest.approx(np.sqrt(batch_size), rel=0.05)


def test_theorem_2_grows_like_n_squared_over_epsilon():
    uniform = [np.full(n, 1 / n) for n in (64, 4096)]
    small, large = (theory.pdasmd_operations(0.05, 1.0, u, u) for u in uniform)
    assert np.log(large / small) / np.log(64) == pytest.approx(2.05, abs=0.05)
    loose, tight = (theory.pdasmd_operations(e, 1.0, uniform[0], uniform[0]) for e in (0.1, 0.01))
    assert tight / loose == pytest.approx(10, rel=0.02)
    l2 = [theory.pdasmd_operations(0.05, 1.0, u, u, norm="l2") for u in uniform]
    assert np.log(l2[1] / l2[0]) / np.log(64) == pytest.approx(2.55, abs=0.05)


def test_sinkhorn_stays_within_its_bound():
    target, tolerance = published()
    A, B = synthetic_pair(6, 0)
    run = epsilot.solve(
        grid_cost((6, 6)), A.ravel(), B.ravel(), eps=0.1, method="sinkhorn", stop="paper"
    )
    arguments = tolerance, 1.0, target.eta, target.p, target.q
    assert run.n_iter <= theory.sinkhorn_iterations(*arguments)
    stochastic = theory.stochastic_sinkhorn_iterations(*arguments)
    assert stochastic > theory.stochastic_sinkhorn_iterations(*arguments, printed=True)
    assert stochastic > 36 * theory.sinkhorn_iterations(*arguments)
    assert theory.accelerated_sinkhorn_iterations(*arguments) < stochastic
    assert theory.apdagd_iterations(*arguments) < theory.sinkhorn_iterations(*arguments)
    assert theory.hybrid_primal_dual_iterations(0.1, 1.0, 36, 36) == 228
    assert theory.hybrid_primal_dual_iterations(0.05, 1.0, 1000, 10) == 1929
    assert theory.dijkstra_phases(0.1, 1.0) == 41


@pytest.mark.parametrize("method", ["apdagd", "aam", "apdamd"])
def test_accelerated_gradients_stay_within_their_bounds(method):
    """Appendix C's rule: violation at most ε'/2 and f(X) + φ at most ε/4."""
    target, tolerance = published()
    A, B = synthetic_pair(6, 0)
    run = epsilot.solve(
        grid_cost((6, 6)), A.ravel(), B.ravel(), eps=0.1, method=method, stop="paper",
        rule="violation",
    )  # fmt: skip
    bound = theory.apdamd_iterations if method == "apdamd" else theory.apdagd_iterations
    arguments = tolerance, 1.0, target.eta, target.p, target.q
    assert 0.003 < run.n_iter / bound(*arguments, objective=0.025) < 0.2
    assert bound(*arguments) == bound(*arguments, objective=1.0)
    assert bound(*arguments, objective=1e-6) > 50 * bound(*arguments)


@pytest.mark.parametrize("shape", [(12, 12), (40, 3), (3, 40)], ids=str)
def test_the_plain_hybrid_method_takes_the_iterations_that_are_proved(shape):
    M, a, b = random(*shape, seed=1)
    run = epsilot.solve(M, a, b, eps=0.2, method="hybrid_primal_dual", form="plain", stop="paper")
    size = float(np.ptp(M))  # the least cost is taken off
    assert run.n_iter == theory.hybrid_primal_dual_iterations(0.2, size, *shape)
    assert run.gap <= 0.2


@pytest.mark.parametrize("start", ["zero", "rows"])
@pytest.mark.parametrize("seed", range(3))
def test_theorem_3_holds_for_runs(seed, start):
    # Both starts stay far below either form; only that of mass 1 is proved.
    target, tolerance = published(5, seed, 0.2)
    A, B = synthetic_pair(5, seed)
    M = grid_cost((5, 5))
    run = epsilot.solve(
        M, A.ravel(), B.ravel(), eps=0.2, method="stochastic_sinkhorn", stop="paper", start=start,
        seed=seed,
    )  # fmt: skip
    bounds = [
        theory.stochastic_sinkhorn_iterations(
            tolerance, 1.0, target.eta, target.p, target.q, printed=printed
        )
        for printed in (True, False)
    ]
    assert 50 * run.n_iter <= 0.01 * bounds[0] < 0.01 * bounds[1]
    assert run.gap <= 0.2


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("sinkhorn", 100**2 * np.log(100) / 0.1**2),
        ("pdasmd", 100**2 * np.sqrt(np.log(100)) / 0.1),
        ("pdasgd", 100**2.5 * np.sqrt(np.log(100)) / 0.1),
        ("dijkstra_dfs", 100**2 / 0.1 + 100 / 0.1**2),
    ],
)
def test_orders_are_the_published_ones(method, expected):
    assert theory.order(method, 100, 0.1) == pytest.approx(expected)
    assert theory.order(method, 100, 0.1) == theory.order(method, 100, 0.2, cost_max=2.0)


def test_every_order_has_one_source():
    records = {entry.name: entry.complexity for entry in epsilot.methods()}
    assert records["pdasgd"] == "n^2.5 ‖C‖ √log n / ε"
    for name in records:
        about = solver_class(name).about
        if about.orders:
            assert records[name] == " + ".join(order.text for order in about.orders)
            total = sum(order.at(100, 0.1) for order in about.orders)
            assert theory.order(name, 100, 0.1) == total


def test_a_method_without_proof_has_no_order():
    with pytest.raises(epsilot.InvalidProblem, match=r"apdgcd has no published order \(no proof\)"):
        theory.order("apdgcd", 100, 0.1)


@pytest.mark.parametrize("module", [theory, theory.bounds])
def test_examples(module):
    assert doctest.testmod(module).failed == 0
