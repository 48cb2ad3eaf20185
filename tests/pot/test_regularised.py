"""Entropic, unbalanced, partial and barycentre functions of POT, solved and certified by us."""

import numpy as np
import ot
import pytest
from scipy.special import xlogy

import epsilot.pot

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")

BACKENDS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jax.numpy.asarray}
METHODS = [
    "sinkhorn",
    "sinkhorn_log",
    "greenkhorn",
    "sinkhorn_stabilized",
    "sinkhorn_epsilon_scaling",
]


def problem(n=8, m=9, seed=0, mask=0.0):
    """Return weights and costs of a small problem; a share of the pairs is forbidden."""
    rng = np.random.default_rng(seed)
    a, b = rng.random(n) + 0.1, rng.random(m) + 0.1
    M = rng.random((n, m))
    return a / a.sum(), b / b.sum(), np.where(rng.random((n, m)) < mask, np.inf, M)


@pytest.fixture(params=BACKENDS)
def array(request):
    return BACKENDS[request.param]


@pytest.mark.parametrize("method", METHODS)
def test_entropic_plans_are_those_of_pot(array, method):
    a, b, M = map(array, problem())
    expected = ot.sinkhorn(a, b, M, 0.1, stopThr=1e-13, numItermax=10_000)
    plan, log = epsilot.pot.sinkhorn(a, b, M, 0.1, method=method, log=True)
    assert type(plan) is type(M)
    np.testing.assert_allclose(np.asarray(plan), np.asarray(expected), atol=1e-12)
    gibbs = np.asarray(log["u"])[:, None] * np.exp(-np.asarray(M) / 0.1) * np.asarray(log["v"])
    np.testing.assert_allclose(gibbs, np.asarray(plan), atol=1e-11)
    assert 0 <= log["gap"] <= 1e-11
    assert log["err"][-1] <= 1e-6


@pytest.mark.parametrize(
    "call",
    [
        lambda o, a, b, M: o.sinkhorn2(a, b, M, 1.0),
        lambda o, a, b, M: o.solve(M, a, b, reg=1.0).value,
        lambda o, a, b, M: o.solve(M, a, b, reg=1.0).value_linear,
        lambda o, a, b, M: o.unbalanced.sinkhorn_unbalanced2(a, b, M, 1.0, 1.0),
        lambda o, a, b, M: o.unbalanced.mm_unbalanced2(a, b, M, 1.0),
        lambda o, a, b, M: o.partial.partial_wasserstein2(a, b, M, m=0.5),
    ],
    ids=["sinkhorn2", "value", "value_linear", "unbalanced2", "mm2", "partial2"],
)
def test_numbers_have_the_precision_of_the_arguments(call):
    given = [x.astype(np.float32) for x in problem()]
    assert call(epsilot.pot, *given).dtype == np.float32


@pytest.mark.parametrize("method", METHODS[:2])
def test_entropic_costs(array, method):
    a, b, M = map(array, problem())
    options = {"method": method, "log": True}
    cost, log = epsilot.pot.sinkhorn2(a, b, M, 0.1, **options)
    plan = epsilot.pot.sinkhorn(a, b, M, 0.1)
    assert float(cost) == pytest.approx(float((plan * M).sum()))
    stacked = array(np.column_stack([np.asarray(b)] * 2))
    costs, logs = epsilot.pot.sinkhorn2(a, stacked, M, 0.1, **options)
    np.testing.assert_allclose(np.asarray(costs), [float(cost)] * 2)
    assert logs["gap"].shape == (2,)
    np.testing.assert_allclose(np.asarray(logs["u"])[:, 0], np.asarray(log["u"]))


def test_small_regularisations_converge_where_pot_does_not():
    a, b, M = problem()
    with pytest.warns(UserWarning, match="not converge"):
        ot.sinkhorn(a, b, M, 1e-3)
    log = epsilot.pot.sinkhorn(a, b, M, 1e-3, log=True)[1]
    assert log["gap"] <= 1e-11
    again = epsilot.pot.sinkhorn(a, b, M, 1e-3, log=True, warmstart=log["warmstart"])[1]
    assert again["gap"] <= 1e-11


def test_limits_that_are_reached_leave_a_true_gap_and_a_warning():
    a, b, M = problem(40, 40)
    with pytest.warns(UserWarning, match="entropic gap"):
        log = epsilot.pot.sinkhorn(a, b, 1e5 * M, 1e-5, numItermax=20, log=True)[1]
    assert log["gap"] > 0
    epsilot.pot.sinkhorn(a, b, 1e5 * M, 1e-5, numItermax=20, warn=False)


@pytest.mark.parametrize(
    "keywords",
    [{"numItermax": 3}, {"stopThr": 0, "numItermax": 20}],
)
def test_numbers_of_iterations_are_left_to_pot(keywords):
    a, b, M = problem()
    ours, theirs = (m.sinkhorn(a, b, M, 0.1, warn=False, **keywords) for m in (epsilot.pot, ot))
    assert (ours == theirs).all()


def test_gradients_of_plans_are_left_to_pot():
    found = []
    for module in (ot, epsilot.pot):
        a, b, M = (torch.tensor(x, requires_grad=True) for x in problem())
        module.sinkhorn2(a, b, M, 0.1).backward()
        found.append(M.grad.numpy())
    np.testing.assert_array_equal(*found)


@pytest.mark.parametrize("reg_type", ["KL", "entropy"])
@pytest.mark.parametrize("empty", [False, True])
def test_solve_with_an_entropy(array, reg_type, empty):
    a, b, M = problem()
    if empty and array is np.asarray:
        a, b = a * (np.arange(8) > 0), b * (np.arange(9) > 1)
        a, b = a / a.sum(), b / b.sum()
    positive = np.ix_(a > 0, b > 0)
    parts = [array(np.ascontiguousarray(x)) for x in (M[positive], a[a > 0], b[b > 0])]
    expected = ot.solve(*parts, reg=0.1, reg_type=reg_type, tol=1e-13)
    result = epsilot.pot.solve(*map(array, (M, a, b)), reg=0.1, reg_type=reg_type)
    assert float(result.value) == pytest.approx(float(expected.value), abs=1e-9)
    assert float(result.value_linear) == pytest.approx(float(expected.value_linear), abs=1e-9)
    gap = result.log["gap"]
    assert 0 <= gap <= 1e-11
    assert result.log["lower_bound"] == pytest.approx(float(result.value) - gap)


def test_gradients_of_minima():
    found = []
    for module in (ot, epsilot.pot):
        a, b, M = (torch.tensor(x, requires_grad=True) for x in problem())
        module.solve(M, a, b, reg=0.1, grad="envelope", tol=1e-13).value.backward()
        found.append([x.grad.numpy() for x in (a, b, M)])
    for theirs, ours in zip(*found, strict=True):
        np.testing.assert_allclose(ours, theirs, atol=1e-8)


def test_solve_without_regularisation(array):
    a, b, M = map(array, problem())
    result = epsilot.pot.solve(M, a, b)
    expected = ot.solve(M, a, b)
    assert float(result.value) == pytest.approx(float(expected.value))
    assert result.status == expected.status == "Converged"
    assert result.log["gap"] <= 1e-11
    np.testing.assert_allclose(np.asarray(result.plan), np.asarray(expected.plan), atol=1e-15)
    sampled = epsilot.pot.solve_sample(M, M[:5])
    assert sampled.log["gap"] <= 1e-11


@pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")
@pytest.mark.parametrize("reg_type", ["KL", "entropy", "L2"])
@pytest.mark.parametrize("unbalanced", [1.0, (0.5, 2.0)])
def test_solve_with_penalties(reg_type, unbalanced):
    a, b, M = problem()
    b *= 1.5
    result = epsilot.pot.solve(M, a, b, reg=0.1, reg_type=reg_type, unbalanced=unbalanced)
    expected = ot.solve(
        M, a, b, reg=0.1, reg_type=reg_type, unbalanced=unbalanced, tol=1e-12, max_iter=5000
    )
    np.testing.assert_allclose(result.plan, expected.plan, atol=1e-4)


def objective(plan, a, b, M, reg, price):
    """Return the unbalanced objective with a KL regulariser."""

    def divergence(x, y):
        return (x * np.log(x / y) - x + y).sum()

    r, c = plan.sum(axis=1), plan.sum(axis=0)
    ends = price * (divergence(r, a) + divergence(c, b))
    return (plan * M).sum() + reg * divergence(plan, np.outer(a, b)) + ends


def test_entropic_unbalanced_costs_are_minima(array):
    a, b, M = problem()
    plan, log = epsilot.pot.unbalanced.sinkhorn_unbalanced(
        *map(array, (a, b, M)), 0.1, 1.0, log=True
    )
    expected = objective(np.asarray(plan), a, b, M, 0.1, 1.0)
    assert float(log["total_cost"]) == pytest.approx(expected)
    assert log["lower_bound"] <= expected + 1e-12
    assert log["gap"] <= 1e-10
    theirs = ot.unbalanced.sinkhorn_unbalanced(*map(array, (a, b, M)), 0.1, 1.0, stopThr=1e-14)
    np.testing.assert_allclose(np.asarray(plan), np.asarray(theirs), atol=1e-6)
    u, v = (np.exp(np.asarray(log[name])) for name in ("logu", "logv"))
    gibbs = u[:, None] * np.outer(a, b) * np.exp(-M / 0.1) * v
    np.testing.assert_allclose(gibbs, np.asarray(plan), atol=1e-6)
    cost, entries = epsilot.pot.sinkhorn_unbalanced2(
        *map(array, (a, b, M)), 0.1, 1.0, returnCost="total", log=True
    )
    assert float(cost) == pytest.approx(expected)
    assert float(entries["cost"]) == pytest.approx((np.asarray(plan) * M).sum())


@pytest.mark.parametrize("reg", [0, 0.1])
def test_minorisation_is_solved_to_the_optimum(reg):
    a, b, M = problem()
    plan, log = epsilot.pot.unbalanced.mm_unbalanced(a, b, M, 1.0, reg=reg, log=True)
    theirs = ot.unbalanced.mm_unbalanced(a, b, M, 1.0, reg=reg, log=True)[1]["total_cost"]
    assert log["total_cost"] <= theirs + 1e-12
    assert log["gap"] <= 1e-9
    assert plan.shape == M.shape


@pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")
def test_total_variation():
    a, b, M = problem()
    keywords = {"reg": 0, "reg_m": 0.3, "regm_div": "tv", "log": True}
    log = epsilot.pot.unbalanced.lbfgsb_unbalanced(a, b * 2, M, **keywords)[1]
    theirs = ot.unbalanced.lbfgsb_unbalanced(a, b * 2, M, **keywords)[1]
    assert log["total_cost"] <= theirs["total_cost"] + 1e-9
    assert log["res"].success


@pytest.mark.parametrize(
    "keywords",
    [{"reg_m": 1.0, "div": "l2"}, {"reg_m": 1.0, "numItermax": 2}],
)
def test_other_unbalanced_problems_are_left_to_pot(keywords):
    a, b, M = problem()
    ours, theirs = (m.unbalanced.mm_unbalanced(a, b, M, **keywords) for m in (epsilot.pot, ot))
    assert (ours == theirs).all()


def test_partial_transport(array):
    a, b, M = map(array, problem())
    plan, log = epsilot.pot.partial.partial_wasserstein(a, b, M, m=0.4, log=True)
    cost, entries = epsilot.pot.partial.partial_wasserstein2(a, b, M, m=0.4, log=True)
    theirs = ot.partial.partial_wasserstein2(a, b, M, m=0.4)
    assert float(cost) == pytest.approx(float(theirs), rel=1e-12)
    assert float(np.asarray(plan).sum()) == pytest.approx(0.4)
    assert log["gap"] <= 1e-11
    assert (np.asarray(entries["T"]) == np.asarray(plan)).all()
    with pytest.raises(ValueError, match="infeasible"):
        epsilot.pot.partial.partial_wasserstein(a, b, M, m=2)


@pytest.mark.parametrize("name", ["", "_logscale"])
@pytest.mark.parametrize("mass", [0.4, None])
def test_entropic_partial_transport(array, name, mass):
    a, b, M = map(array, problem())
    ours = getattr(epsilot.pot.partial, f"entropic_partial_wasserstein{name}")
    plan, log = ours(a, b, M, 0.1, mass, log=True)
    assert type(plan) is type(M)
    theirs = ot.partial.entropic_partial_wasserstein(*problem(), 0.1, mass)
    np.testing.assert_allclose(np.asarray(plan), theirs, atol=1e-7)
    assert 0 <= log["gap"] <= 1e-12
    assert float(log["partial_w_dist"]) == pytest.approx(float((plan * M).sum()))
    with pytest.raises(ValueError, match="infeasible"):
        ours(a, b, M, 0.1, 2)


def test_entropic_partial_transport_ends_at_the_limit_with_a_true_gap():
    a, b, M = problem(40, 40)
    with pytest.warns(UserWarning, match="entropic gap"):
        plan, log = epsilot.pot.partial.entropic_partial_wasserstein(a, b, M, 1e-4, 0.5, log=True)
    value = (plan * M).sum() + 1e-4 * xlogy(plan, plan).sum()
    assert log["lower_bound"] == pytest.approx(value - log["gap"], abs=1e-12)
    assert 1e-12 < log["gap"] < 1e-3


def test_gradients_of_entropic_partial_transport_are_left_to_pot():
    a, b, M = (torch.tensor(x, requires_grad=True) for x in problem())
    _, log = epsilot.pot.partial.entropic_partial_wasserstein(a, b, M, 0.1, 0.4, log=True)
    assert "gradients" in log["uncertified"]
    log["partial_w_dist"].backward()
    assert M.grad.abs().sum() > 0


@pytest.mark.parametrize("reg", [1.0, 0.01])
def test_forbidden_pairs_are_certified(array, reg):
    a, b, M = problem(mask=0.3)
    expected = ot.sinkhorn(a, b, M, reg, method="sinkhorn_log", stopThr=1e-12, numItermax=10_000)
    given = [array(x) for x in (a, b, M)]
    plan, log = epsilot.pot.sinkhorn(*given, reg, log=True)
    np.testing.assert_allclose(np.asarray(plan), expected, atol=1e-6)
    assert 0 <= log["gap"] <= 1e-11
    cost = np.vdot(expected, np.where(np.isfinite(M), M, 0.0))  # POT's is NaN
    assert float(epsilot.pot.sinkhorn2(*given, reg)) == pytest.approx(cost, rel=1e-6)
    result = epsilot.pot.solve(given[2], *given[:2], reg=reg)
    assert float(result.value_linear) == pytest.approx(cost, rel=1e-6)
    assert result.log["gap"] <= 1e-11
    batch = epsilot.pot.batch.solve_batch(given[2][None], reg, given[0][None], given[1][None])
    assert float(batch.value_linear[0]) == pytest.approx(cost, rel=1e-6)


def test_barycentres():
    x = np.arange(12.0)
    M = (x[:, None] - x) ** 2
    A = np.column_stack([np.exp(-((x - c) ** 2) / 4) for c in (3, 8)])
    A /= A.sum(axis=0)
    weights = np.array([0.3, 0.7])
    b, log = epsilot.pot.lp.barycenter(A, M, weights, log=True)
    _, theirs = ot.lp.barycenter(A, M, weights, log=True)
    assert log.fun == pytest.approx(theirs.fun, rel=1e-7)
    assert log["gap"] <= 1e-7 * log.fun
    assert b.sum() == pytest.approx(1)
    entropic, log = epsilot.pot.bregman.barycenter(A, M / 144, 0.01, log=True)
    theirs = ot.bregman.barycenter(A, M / 144, 0.01, stopThr=1e-12)
    np.testing.assert_allclose(entropic, theirs, atol=1e-6)
    assert log["gap"] <= 1e-8
    # Unequal weights: POT's default algorithm has another limit than its own in logarithms.
    entropic = epsilot.pot.bregman.barycenter(A, M / 144, 0.01, weights)
    options = {"method": "sinkhorn_log", "stopThr": 1e-12}
    np.testing.assert_allclose(
        entropic, ot.bregman.barycenter(A, M / 144, 0.01, weights, **options), atol=1e-6
    )
    assert epsilot.pot.barycenter is epsilot.pot.bregman.barycenter


def test_estimators_use_certified_sinkhorn():
    X = np.random.default_rng(0).normal(size=(6, 2))
    fitted = epsilot.pot.da.SinkhornTransport(reg_e=0.5, log=True).fit(Xs=X, Xt=X + 1)
    assert fitted.log_["gap"] <= 1e-10


@pytest.mark.filterwarnings("ignore::epsilot.pot.UncertifiedWarning")
@pytest.mark.parametrize("name", ["sinkhorn", "sinkhorn2", "sinkhorn_unbalanced"])
def test_costs_beyond_our_range_are_left_to_pot(name):
    a, b, M = problem()
    M[0, 1] = 1e200
    found = []
    for module in (ot, epsilot.pot):
        function = getattr(module, name)
        prices = (1.0,) if name == "sinkhorn_unbalanced" else ()
        found.append(np.nan_to_num(function(a, b, M, 0.1, *prices)))
    np.testing.assert_array_equal(*found)


def test_refused_calls_are_visible():
    a, b, M = problem()
    M[0, 1] = 1e200
    with pytest.warns(epsilot.pot.UncertifiedWarning, match="sinkhorn: POT answers without bounds"):
        _, log = epsilot.pot.sinkhorn(a, b, M, 0.1, log=True)
    assert log["gap"] == np.inf
    assert log["lower_bound"] == -np.inf
    assert "reg is 0.1" in log["uncertified"]


@pytest.mark.parametrize(
    ("call", "reason"),
    [
        (
            lambda o, a, b, M: o.sinkhorn(a, b, M, 0.1, numItermax=3, warn=False, log=True),
            "few",
        ),
        (lambda o, a, b, M: o.sinkhorn(a, b, M, 0.1, "sinkhorn_kl", log=True), "method"),
        (lambda o, a, b, M: o.unbalanced.mm_unbalanced(a, b, M, 1, div="l2", log=True), "div"),
    ],
)
def test_logs_of_calls_that_are_left_to_pot_name_the_reason(call, reason):
    a, b, M = problem()
    if reason == "method":
        with pytest.raises(ValueError, match="Unknown method"):
            call(epsilot.pot, a, b, M)
        return
    _, log = call(epsilot.pot, a, b, M)
    assert reason in log["uncertified"]
    assert log["gap"] == np.inf
    assert "uncertified" not in call(ot, a, b, M)[1]


@pytest.mark.filterwarnings("ignore:scipy.optimize:DeprecationWarning")
def test_results_of_calls_that_are_left_to_pot_have_no_bounds():
    a, b, M = problem()
    result = epsilot.pot.solve(M, a, b, reg=0.1, reg_type="L2")
    assert result.log["gap"] == np.inf
    assert "L2" in result.log["uncertified"]


@pytest.mark.parametrize("weighted", [False, True])
def test_free_support_barycentres(array, weighted):
    rng = np.random.default_rng(0)
    clouds = [rng.normal(size=(n, 2)) + n for n in (6, 7)]
    masses = [np.full(6, 1 / 6), np.full(7, 1 / 7)]
    init, b = rng.normal(size=(5, 2)), np.array([0.1, 0.2, 0.3, 0.2, 0.2])
    weights = array(np.array([0.3, 0.7])) if weighted else None
    given = [list(map(array, clouds)), list(map(array, masses)), array(init), array(b), weights]
    theirs = ot.lp.free_support_barycenter(*given)
    points, log = epsilot.pot.lp.free_support_barycenter(*given, log=True)
    assert type(points) is type(given[2])
    np.testing.assert_allclose(np.asarray(points), np.asarray(theirs), atol=1e-8)
    shares = [0.3, 0.7] if weighted else [0.5, 0.5]
    cost = sum(
        w * ot.emd2(b, a, ot.dist(np.asarray(points), x))
        for w, a, x in zip(shares, masses, clouds, strict=True)
    )
    assert log["cost"] == pytest.approx(cost, rel=1e-9)
    assert 0 <= log["gap"] <= 1e-9 * log["cost"]


def test_estimators_keep_their_bounds():
    X = np.random.default_rng(0).normal(size=(6, 2))
    for name in ("EMDTransport", "SinkhornTransport", "UnbalancedSinkhornTransport"):
        fitted = getattr(epsilot.pot.da, name)().fit(Xs=X, Xt=X + 1)
        assert 0 <= fitted.gap_ <= 1e-8
        assert fitted.lower_bound_ < np.inf
        assert fitted.log is False
