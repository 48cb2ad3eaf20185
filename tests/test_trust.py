"""Certificates that were false once, and plans that were not the certified ones: never again."""

from dataclasses import replace

import numpy as np
import ot
import pytest

import epsilot
from epsilot import InvalidProblem
from epsilot.errors import CertificateError
from epsilot.problems.balanced import EntropicObjective, Transport
from epsilot.problems.plan import Gibbs
from epsilot.problems.problem import make_problem
from epsilot.problems.rounding import round_onto
from epsilot.solvers.sinkhorn import Sinkhorn
from sample_problems import images

COST, A, B = images(8)
RANDOM = np.random.default_rng(15).random((20, 24))
EXACT = ["exact", "restricted_simplex", "auto"]


def optimum(M):
    return float(ot.emd2([], [], M))


def optimum_of(M, a, b):
    return float(ot.emd2(a, b, M))


# -- the plan that is returned is the plan that was certified --------------------------------------

SMALL_ETA = ["sinkhorn", "pdasmd", "aam", "accelerated_sinkhorn", "box_newton"]


def assert_one_plan(result, cost, a, b):
    """All forms of a plan, its marginals and its value are one set of numbers."""
    plan, operator, scale = result.plan, result.plan_operator, np.abs(cost).max() * a.sum()
    v, u = np.linspace(0.5, 1, cost.shape[1]), np.linspace(1, 0.5, cost.shape[0])
    rows, cols = operator.marginals()
    for found, expected in (
        (plan.sum(axis=1), a),
        (plan.sum(axis=0), b),
        (rows, a),
        (cols, b),
        (operator @ v, plan @ v),
        (operator.T @ u, u @ plan),
        (operator.row(3), plan[3]),
        (operator.tosparse().toarray(), plan),
    ):
        assert np.abs(found - expected).sum() <= 1e-12 * a.sum()
    assert abs((cost * plan).sum() - result.value_linear) <= 1e-12 * scale


@pytest.mark.parametrize("method", SMALL_ETA)
def test_marginals_and_value_at_a_small_eta(method):
    result = epsilot.solve(
        COST, A, B, eps=1e-8, method=method, max_iter=300, on_limit="ignore", seed=1
    )
    assert_one_plan(result, COST, A, B)


@pytest.mark.parametrize("reg", [1e-5, 1e-7, 1e-14])
def test_marginals_and_value_with_a_small_reg(reg):
    result = epsilot.solve(COST, A, B, reg=reg, max_iter=200, on_limit="ignore")
    assert_one_plan(result, COST, A, B)


@pytest.mark.parametrize("mass", [1e-200, 1.0, 1e184])
@pytest.mark.parametrize("metric", ["cityblock", "sqeuclidean"])
def test_a_grid_keeps_its_plan_whatever_the_mass(metric, mass):
    a, b = mass * A, mass * B
    result = epsilot.solve_grid(a.reshape(8, 8), b.reshape(8, 8), metric=metric, rtol=0.05)
    cost = epsilot.Grid((8, 8), metric=metric).block(0, 64)
    assert_one_plan(result, cost, a, b)


# -- exact plans are vertices ----------------------------------------------------------------------


@pytest.mark.parametrize("is_uniform", [True, False])
@pytest.mark.parametrize("shape", [(7, 10), (60, 60), (250, 230)])
@pytest.mark.parametrize("method", EXACT)
def test_exact_plans_are_vertices(method, shape, is_uniform, rng):
    (n, m), M = shape, rng.random(shape)
    a, b = (np.full(k, 1 / k) if is_uniform else rng.dirichlet(np.ones(k)) for k in shape)
    result = epsilot.solve(M, a, b, rtol=1e-10, method=method)
    plan, (f, g) = result.plan, result.potentials
    assert np.count_nonzero(plan) == result.plan_operator.tosparse().nnz <= n + m - 1
    imbalance = abs(a.sum() - b.sum())
    error = np.abs(plan.sum(axis=1) - a).sum() + np.abs(plan.sum(axis=0) - b).sum()
    assert error <= 1e-15 + imbalance
    assert (M - f[:, None] - g)[plan > 0].max() <= 1e-11


# -- potentials are feasible as they are stored ----------------------------------------------------

COSTS = {
    "plain": RANDOM,
    "negative": RANDOM - 0.7,
    "far from zero": RANDOM + 1e6,
    "tiny": 1e-300 * RANDOM,
    "huge": 1e300 * RANDOM,
    "zero": 0 * RANDOM,
    "tied": np.floor(3 * RANDOM),
}


@pytest.mark.parametrize("method", ["auto", "sinkhorn", "pdasmd"])
@pytest.mark.parametrize("name", COSTS)
def test_potentials_do_not_exceed_the_costs(name, method):
    M = COSTS[name]
    result = epsilot.solve(M, method=method, rtol=0.1, max_iter=200, on_limit="ignore")
    f, g = result.potentials
    assert (f[:, None] + g <= M).all()
    assert f.mean() + g.mean() == pytest.approx(result.lower_bound, rel=1e-9, abs=1e-320)


def test_potentials_of_a_grid_do_not_exceed_the_costs():
    for metric in ("cityblock", "sqeuclidean"):
        result = epsilot.solve_grid(A.reshape(8, 8), B.reshape(8, 8), metric=metric, spacing=0.3)
        f, g = result.potentials
        cost = epsilot.Grid((8, 8), metric=metric, spacing=0.3).block(0, 64)
        assert (f[:, None] + g <= cost).all()


# -- wrong certificates ----------------------------------------------------------------------------


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock"])
@pytest.mark.parametrize("far", [0.0, 1e6])
def test_lazy_entropic_bounds_hold_far_from_the_origin(metric, far, rng):
    X, Y = rng.normal(size=(2, 50, 2)) + far
    cost = epsilot.PointCloud(X, Y, metric).block(0, 50)
    reg = 0.03 * cost.max()
    lazy = epsilot.solve_sample(X, Y, metric=metric, lazy=True, reg=reg)
    true = epsilot.solve(cost, reg=reg, tol=1e-10 * cost.max())
    assert lazy.converged
    assert lazy.lower_bound <= true.value + 1e-12 * cost.max()
    assert lazy.value >= true.lower_bound - 1e-12 * cost.max()


@pytest.mark.parametrize(("reg", "method"), [(1e-25, "auto"), (1e-31, "auto"), (1e-200, "pdasmd")])
def test_a_tiny_reg_is_refused(reg, method):
    with pytest.raises(InvalidProblem, match=r"reg is 1e-.*at least"):
        epsilot.solve(RANDOM, reg=reg, method=method)


def test_a_reg_beyond_the_split_of_exponents_is_refused_on_a_grid():
    a, b = np.array([1.0, 0, 0, 0, 0]), np.array([0.5, 0.5, 1e-9, 0, 0, 1e-12])
    with pytest.raises(InvalidProblem, match="reg is"):
        epsilot.solve_grid(a, b, spacing=10.0, reg=8.89e-16, normalize=True)
    result = epsilot.solve_grid(
        a, b, spacing=10.0, reg=2e-13, normalize=True, max_iter=50, on_limit="ignore"
    )
    rows, cols = result.plan_operator.marginals()
    assert np.abs(rows - a).sum() + np.abs(cols - b / b.sum()).sum() <= 1e-12


def test_inputs_are_not_read_again():
    M = RANDOM.copy()

    def spoil(record):
        M[:] = 0.0

    result = epsilot.solve(M, eps=1e-3, method="sinkhorn", callback=spoil)
    assert result.lower_bound <= optimum(RANDOM) <= result.value
    assert result.gap >= 0


@pytest.mark.parametrize("mass", [1e-5, 1.0, 3.0, 1e200])
def test_an_entropic_value_is_that_of_the_plan_whatever_the_mass(mass):
    a, b = np.full(20, mass / 20), np.full(24, mass / 24)
    result = epsilot.solve(RANDOM, a, b, reg=0.1)
    X, (f, g) = result.plan, result.potentials
    value = (RANDOM * X).sum() + 0.1 * (X * np.log(X)).sum()
    size = mass * (1 + abs(np.log(mass)))
    assert result.value == pytest.approx(value, abs=1e-13 * size)
    assert result.value_linear == pytest.approx((RANDOM * X).sum(), abs=1e-13 * mass)
    assert result.lower_bound == pytest.approx(f @ a + g @ b, abs=1e-12 * size)
    assert np.exp((f[:, None] + g - RANDOM) / 0.1).sum() == pytest.approx(mass, rel=1e-9)
    last = result.history[-1]
    assert (last.upper, last.lower) == (result.value, result.lower_bound)
    audited = epsilot.certify(RANDOM, a, b, plan=X, potentials=(f, g), reg=0.1)
    assert audited.upper == pytest.approx(result.value, abs=1e-12 * size)
    assert audited.lower >= result.lower_bound - 1e-12 * size


def test_a_plan_is_priced_with_the_cost_it_is_audited_on():
    first = epsilot.solve(RANDOM, method="sinkhorn", eps=0.1)
    assert isinstance(first.plan_operator.core, Gibbs)
    other = RANDOM[::-1].copy()
    audited = epsilot.certify(other, plan=first.plan_operator)
    assert audited.upper == pytest.approx((other * first.plan).sum(), rel=1e-12)


LIES = {
    "a lower value": ({"upper": -0.0005}, False),
    "a higher bound": ({"lower": 0.001}, False),
    "a bound above the value": ({"lower": 1.0}, True),
    "NaN": ({"upper": np.nan}, True),
}


@pytest.mark.parametrize("lie", LIES)
def test_what_a_run_believed_is_proved_or_refuted(lie, monkeypatch):
    changes, is_refuted = LIES[lie]
    honest = Transport.evaluate

    def lying(self, core, f):
        found = honest(self, core, f)
        return found._replace(**{k: getattr(found, k) + v for k, v in changes.items()})

    monkeypatch.setattr(Transport, "evaluate", lying)
    keywords = {"method": "sinkhorn", "eps": 0.01, "on_limit": "ignore"}
    if is_refuted:
        with pytest.raises(CertificateError, match="contradicts"):
            epsilot.solve(RANDOM, **keywords)
        return
    result = epsilot.solve(RANDOM, **keywords)
    assert result.value == pytest.approx((RANDOM * result.plan).sum(), rel=1e-12)
    f, g = result.potentials
    assert result.lower_bound == pytest.approx(f.mean() + g.mean(), rel=1e-12)
    assert result.converged == (result.gap <= 0.01)


@pytest.mark.parametrize("part", ["row", "core"])
def test_candidates_that_overflowed_are_not_certified(part, monkeypatch):
    honest = Sinkhorn.candidates

    def overflowed(self, problem, state):
        [(core, row)] = honest(self, problem, state)
        nothing = np.full_like(row, np.nan)
        return [(replace(core, f=nothing), row) if part == "core" else (core, nothing)]

    monkeypatch.setattr(Sinkhorn, "candidates", overflowed)
    result = epsilot.solve(COST, A, B, method="sinkhorn", eps=0.01, max_iter=5, on_limit="ignore")
    assert_one_plan(result, COST, A, B)
    assert result.lower_bound <= optimum_of(COST, A, B) <= result.value


def test_a_plan_of_infinite_mass_is_rounded():
    geometry = epsilot.Dense(COST)
    core = Gibbs(geometry, np.full(64, 1e5), np.linspace(0, 1e3, 64), 0.01)
    plan = round_onto(core, A, B, geometry).plan
    rows, cols = plan.marginals()
    assert np.abs(rows - A).sum() + np.abs(cols - B).sum() <= 1e-14


# -- sizes -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("scale", [1e-300, 1e-100, 1e-46, 1e40, 1e100, 1e300])
def test_costs_of_any_scale(scale, rng):
    M = rng.random((400, 400))
    result = epsilot.solve(scale * M)
    assert result.converged
    assert result.value / scale == pytest.approx(optimum(M), rel=0.011)


@pytest.mark.parametrize("method", ["auto", "sinkhorn", "pdasmd", "greenkhorn", "apdagd"])
def test_masses_next_to_nothing(method):
    a = np.full(20, 1.0)
    a[:5] = 1e-310
    b = np.full(24, 15 / 24)
    result = epsilot.solve(RANDOM, a, b, method=method, rtol=0.05)
    assert result.converged


def test_a_callable_metric_is_scaled_and_known_by_its_costs(rng):
    X, Y = rng.normal(size=(2, 12, 2))

    def metric(scale):
        return lambda x, points: scale * np.abs(points - x).sum(axis=1)

    for scale in (1e-180, 1.0, 1e173):
        cloud = epsilot.PointCloud(X, Y, metric(scale))
        result = epsilot.solve(cloud, method="restricted_simplex")
        assert result.converged
        assert result.value / scale == pytest.approx(optimum(cloud.block(0, 12) / scale), rel=0.011)
        assert cloud.digest() == epsilot.PointCloud(X, Y, metric(scale)).digest()


@pytest.mark.parametrize("reg", [1e-8, 0.05, 5.0])
def test_entropic_bounds_from_potentials_far_off(reg):
    start = np.full(20, 1e5), np.zeros(24)
    true = epsilot.solve(RANDOM, reg=reg, on_limit="ignore", max_iter=2000)
    result = epsilot.solve(RANDOM, reg=reg, potentials_init=start, max_iter=0, on_limit="ignore")
    assert result.lower_bound <= true.value + 1e-13
    assert result.value >= true.lower_bound - 1e-13


@pytest.mark.parametrize(("cost", "mass"), [(1e-310, 1.0), (1.0, 1e-310), (1e-200, 1e-200)])
def test_sizes_that_float64_cannot_hold_are_refused(cost, mass):
    with pytest.raises(InvalidProblem, match="rescale"):
        epsilot.solve(cost * RANDOM, np.full(20, mass / 20), np.full(24, mass / 24))


def test_costs_with_a_heavy_tail(rng):
    M = rng.lognormal(0, 9, (12, 28))
    start = 1e5 * M.max() * rng.normal(size=12), np.zeros(28)
    for potentials in (None, start):
        result = epsilot.solve(
            M, method="restricted_simplex", rtol=1e-9, potentials_init=potentials
        )
        assert result.converged


# -- digits ----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(20))
def test_no_rounding_of_a_shift_lifts_potentials_above_the_costs(seed):
    rng = np.random.default_rng(seed)
    M = 0.1 * rng.random((40, 50)) + rng.uniform(-1, 1)
    objective = Transport(make_problem(M))
    (f, g), _ = objective.dual(0.1 * rng.random(40))
    f, g = objective.to_user_potentials((f, g))
    assert (f[:, None] + g <= M).all()


def test_a_constant_costs_an_entropic_bound_no_digits(rng):
    objective = EntropicObjective(make_problem(RANDOM), 0.05)
    f = rng.integers(0, 2**20, 20) / 2**20  # so that adding 2**30 rounds nothing
    assert objective.dual(f + 2.0**30)[1] == pytest.approx(objective.dual(f)[1], abs=1e-13)


def test_lazy_clouds_reach_a_fine_entropic_gap(rng):
    X, Y = rng.normal(size=(2, 40, 2))
    cloud = epsilot.PointCloud(X, Y, "euclidean", single=True)
    reg, tol = 0.05 * cloud.bounds[1], 1e-12 * cloud.bounds[1]
    options = {"method": "sinkhorn", "domain": "log", "max_iter": 3000}
    assert epsilot.solve(cloud, reg=reg, tol=tol, **options).converged


def test_a_far_start_is_brought_near():
    f = 1e5 * np.random.default_rng(2).normal(size=20)
    start = f, np.zeros(24)
    result = epsilot.solve(RANDOM, method="apdgcd", potentials_init=start, eps=0.02, max_iter=300)
    assert result.converged


def test_float32_sweeps_far_from_the_origin(rng):
    X, Y = rng.normal(size=(2, 60, 2)) + 1e5
    result = epsilot.solve_sample(X, Y, lazy=True, method="sinkhorn", rtol=0.1, max_iter=3000)
    assert result.converged


@pytest.mark.parametrize("method", ["restricted_simplex", "stochastic_sinkhorn", "apdgcd"])
@pytest.mark.parametrize("cost", ["heavy tail", "nearly tied"])
def test_far_starts_and_uneven_costs_do_not_overflow(cost, method):
    M = {
        "heavy tail": np.random.default_rng(1).lognormal(0, 12, (12, 28)),
        "nearly tied": 1 + 1e-14 * np.random.default_rng(1).random((4, 4)),
    }[cost]
    f = 1e4 * M.max() * np.random.default_rng(2).normal(size=len(M))
    for start in (None, (f, np.zeros(M.shape[1]))):
        result = epsilot.solve(
            M, method=method, rtol=0.01, potentials_init=start, max_iter=50, on_limit="ignore"
        )
        assert result.status is not epsilot.Status.NOT_FINITE
