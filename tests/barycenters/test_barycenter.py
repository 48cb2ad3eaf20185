"""Barycentres against their linear programs: every method, feasible, certified, proved."""

import barycenter_problems
import numpy as np
import pytest
from barycenter_problems import NAMES, make, optimum

import epsilot
from epsilot.barycenters.bregman import projected
from epsilot.barycenters.family import FamilyPlan, make_family
from epsilot.errors import CertificateError

OPTIMA = {}


@pytest.fixture
def reference():
    """Return the optimum of a problem by its name, computed once."""
    return lambda name: OPTIMA.setdefault(name, optimum(make(name)))


def check_feasible(result, case, mass=1.0):
    """Plans lead from the histograms to the barycentre, potentials are feasible together."""
    b, w = result.barycenter, result.weights
    assert b.min() >= 0
    for plan, a in zip(result.plans, case.A, strict=True):
        r, c = plan.marginals()
        assert abs(r - mass * a).sum() <= 1e-12 * mass
        assert abs(c - b).sum() <= 1e-12 * mass
        assert plan.toarray().min() >= 0
    unit = max(abs(M).max() for M in case.M)
    total = sum(x * g for x, (_, g) in zip(w, result.potentials, strict=True))
    assert abs(total).max() <= 1e-12 * unit
    for (f, g), M in zip(result.potentials, case.M, strict=True):
        assert (f[:, None] + g <= M + 1e-15 * unit).all()


#: method, relative gap to reach
METHODS = [
    *(("anderson", 0.01), ("ibp", 0.05), ("lbfgs", 0.01), ("pdasmd", 0.01)),
    *(("exact", 1e-9), ("auto", 0.01)),
]


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize(("method", "rtol"), METHODS)
def test_every_method_brackets_the_optimum(name, method, rtol, reference):
    case, best = make(name), reference(name)
    result = epsilot.barycenter(*case.args, method=method, rtol=rtol)
    assert result.converged
    assert result.status is epsilot.Status.CERTIFIED
    assert result.gap <= result.target
    slack = 1e-9 * max(abs(M).max() for M in case.M)  # HiGHS's own accuracy
    assert result.lower_bound - slack <= best <= result.value + slack
    assert result.value == pytest.approx(
        sum(w * v for w, v in zip(result.weights, result.values, strict=True)), rel=1e-12
    )
    check_feasible(result, case)


SCALES = [(1e-250, 1.0), (1e200, 1.0), (1.0, 1e-200), (7.3, 40.0)]


@pytest.mark.parametrize(("of_cost", "of_mass"), SCALES)
@pytest.mark.parametrize("method", ["anderson", "lbfgs", "pdasmd", "exact"])
def test_any_scale(method, of_cost, of_mass, reference):
    case = make("images")
    A, M = [of_mass * a for a in case.A], [of_cost * M for M in case.M]
    result = epsilot.barycenter(A, M, method=method)
    best = reference("images")
    scale = of_cost * of_mass
    assert result.converged
    assert result.lower_bound / scale - 1e-9 <= best <= result.value / scale + 1e-9
    check_feasible(result, barycenter_problems.Case(case.A, M, case.weights), of_mass)


@pytest.mark.parametrize("method", ["anderson", "ibp", "lbfgs", "pdasmd"])
@pytest.mark.parametrize("name", ["squared", "ragged", "zeros", "without weight"])
def test_the_entropic_barycentre_is_a_fixed_point(name, method):
    case, reg = make(name), 0.05
    result = epsilot.barycenter(*case.args, reg=reg, tol=1e-9, method=method, max_iter=20_000)
    assert result.converged
    assert result.is_entropic
    entropies = [-(X[X > 0] * np.log(X[X > 0])).sum() for X in (p.toarray() for p in result.plans)]
    costs = [(p.toarray() * M).sum() for p, M in zip(result.plans, case.M, strict=True)]
    parts = [c - reg * h for c, h in zip(costs, entropies, strict=True)]
    assert result.value == pytest.approx(np.dot(case.weights, parts), abs=1e-12)
    # Iterating longer, by the plain projections, ends with the same histogram.
    family = make_family(*case.args, reg=reg)
    G = np.zeros(family.shape)
    for _ in range(600):
        G = projected(family, G, reg).columns
    brought = np.array(list(columns(family, G, reg)))
    b = np.exp(case.weights @ np.log(brought))
    assert abs(result.barycenter - b / b.sum()).sum() < 1e-3


def columns(family, G, eta):
    """Return the column sums of the plans whose rows are right."""
    for member, g in zip(family.members, G, strict=True):
        X = np.exp((g - member.problem.geometry.block(0, member.problem.p.size)) / eta)
        yield (member.problem.p[:, None] * X / X.sum(axis=1, keepdims=True)).sum(axis=0)


@pytest.mark.parametrize("k", [1, 2, 3])
@pytest.mark.parametrize("rtol", [None, 1e-6, 1e-9])
@pytest.mark.parametrize("scale", [0.0, 1e-5, 1.0, 1e7])
def test_an_optimum_of_zero_is_certified(k, rtol, scale, rng):
    x, h = rng.random((6, 2)), rng.dirichlet(np.ones(6))
    M = scale * np.square(x[:, None] - x).sum(axis=2)
    for weights in (None, rng.dirichlet(np.ones(k))):
        result = epsilot.barycenter(np.stack([h] * k), M, weights, rtol=rtol)
        assert result.converged
        assert result.gap >= 0


@pytest.mark.parametrize("weights", [[97.0, 2.2e-308], [1e-320, 1.0], [1.7e308, 1.0]])
def test_weights_that_vanish_beside_others_are_refused(weights, rng):
    A = rng.dirichlet(np.ones(4), 2)
    with pytest.raises(epsilot.InvalidProblem, match=r"weights\[[01]\] is .* of a total of"):
        epsilot.barycenter(A, rng.random((4, 4)), weights)


def test_constants_of_column_potentials_cost_no_digits(rng):
    M = rng.random((5, 5))
    family = make_family(rng.dirichlet(np.ones(5), 2), M, [0.52, 0.56])
    G = rng.random((2, 5))
    (_, plain), (potentials, shifted) = (
        family.dual(x.ravel()) for x in (G, G + np.array([[1e9], [-1e9]]))
    )
    assert shifted == pytest.approx(plain, abs=1e-6)
    assert max(np.abs(x).max() for pair in potentials for x in pair) <= 10


def test_the_image_of_potentials_is_written_out(rng):
    case, eta = make("ragged"), 0.1
    family = make_family(*case.args)
    G = family.centred(rng.normal(size=family.shape) / 10)
    log_q = []
    for member, g in zip(family.members, G, strict=True):
        p, C = member.problem.p, member.problem.geometry.block(0, member.problem.p.size)
        f = np.where(p > 0, p, 1) / np.exp((g - C) / eta).sum(axis=1) * (p > 0)
        log_q.append(np.log((f[:, None] * np.exp(-C / eta)).sum(axis=0)))
    log_b = case.weights @ np.array(log_q)
    expected = eta * (log_b - np.array(log_q))
    np.testing.assert_allclose(projected(family, G, eta).columns, expected, atol=1e-12)


def test_any_potentials_prove_a_bound(rng, reference):
    for name in ("l1", "ragged", "negative", "without weight"):
        family = make_family(*make(name).args)
        for size in (0.0, 0.1, 1.0, 100.0):
            G = size * rng.normal(size=family.shape)
            assert family.to_user(family.dual(G.ravel())[1]) <= reference(name) + 1e-9


def proved(family, b, plans, potentials):
    return family.prove(FamilyPlan(b, plans), potentials)


def spoilt(found, what):
    """Return barycentre, plans and potentials of which one thing is wrong."""
    b, plans, potentials = found
    f, g = potentials[0]
    match what:
        case "b":
            return np.roll(b, 1), plans, potentials
        case "total":
            return 1.01 * b, plans, potentials
        case "plan":
            return b, (plans[0].scaled(1.001), *plans[1:]), potentials
        case "row":
            return b, plans, ((f + 1e-9, g), *potentials[1:])
    return b, plans, potentials


@pytest.mark.parametrize("what", ["b", "total", "plan", "row"])
def test_what_is_not_feasible_proves_nothing(what):
    case = make("l1")
    family, result = make_family(*case.args), epsilot.barycenter(*case.args)
    found = result.barycenter, result.plans, result.potentials
    upper, lower, _ = proved(family, *found)
    assert (upper, lower) == (result.value, result.lower_bound)
    with pytest.raises(CertificateError):
        proved(family, *spoilt(found, what))


def test_a_mean_of_potentials_above_zero_is_no_better(reference):
    case = make("l1")
    family, result = make_family(*case.args), epsilot.barycenter(*case.args)
    raised = [(f - 1.0001, g + 1) for f, g in result.potentials]
    _, lower, _ = proved(family, result.barycenter, result.plans, raised)
    assert lower == pytest.approx(result.lower_bound - 0.0001, abs=1e-12)
    lowered = [(f, g - 1) for f, g in result.potentials]
    _, lower, _ = proved(family, result.barycenter, result.plans, lowered)
    assert lower == pytest.approx(result.lower_bound - 1, abs=1e-12)


@pytest.mark.parametrize("method", ["anderson", "ibp", "lbfgs", "pdasmd", "exact"])
def test_bits_do_not_depend_on_threads(method, rng):
    A = rng.random((3, 120))
    A /= A.sum(axis=1, keepdims=True)
    M = rng.random((120, 120))
    first, second = (
        epsilot.barycenter(
            A, M, method=method, rtol=0.05, n_threads=n, max_iter=60, on_limit="ignore"
        )
        for n in (1, 2)
    )
    assert first.value == second.value
    assert first.lower_bound == second.lower_bound
    np.testing.assert_array_equal(first.barycenter, second.barycenter)


@pytest.mark.parametrize(
    ("limits", "status"),
    [
        ({"max_iter": 1}, epsilot.Status.MAX_ITER),
        ({"max_seconds": 0.0}, epsilot.Status.MAX_SECONDS),
        ({"callback": lambda record: True}, epsilot.Status.CALLBACK),
        ({"max_iter": 3, "memory": 0}, epsilot.Status.MAX_ITER),
    ],
)
def test_limits_leave_a_certified_answer(limits, status, reference):
    case = make("images")
    asked = {"method": "anderson", "rtol": 1e-7, "on_limit": "ignore"} | limits
    result = epsilot.barycenter(*case.args, **asked)
    assert result.status is status
    assert not result.converged
    assert result.lower_bound - 1e-9 <= reference("images") <= result.value + 1e-9
    check_feasible(result, case)


def test_what_a_limit_does():
    case = make("images")
    with pytest.warns(epsilot.ConvergenceWarning, match="max_iter"):
        epsilot.barycenter(*case.args, method="ibp", max_iter=2)
    with pytest.raises(epsilot.NotConverged) as error:
        epsilot.barycenter(*case.args, method="ibp", max_iter=2, on_limit="raise")
    assert error.value.result.value > error.value.result.lower_bound


def test_records_bracket_and_shrink():
    seen = []
    result = epsilot.barycenter(*make("images").args, method="anderson", callback=seen.append)
    assert seen == result.history
    gaps = [record.gap for record in seen]
    assert gaps == sorted(gaps, reverse=True)
    assert "certified" in repr(result)


E3 = np.eye(3)
REFUSED = [
    (([], E3), {}, "A has no histogram"),
    ((np.zeros((0, 3)), E3), {}, "A has no histogram"),
    (([[0.5, 0.5, 0], [0.5, -0.5, 1]], E3), {}, r"A\[1\]\[1\] is -0.5; weights must not be"),
    (([[0.5, np.nan, 0.5]], E3), {}, r"A\[0\]\[1\] is nan; weights must be finite"),
    (([[0, 0, 0]], E3), {}, r"A\[0\] sums to 0"),
    (([[1, 0, 0], [0, 2, 0]], E3), {}, r"A\[0\] sums to 1 and A\[1\] to 2; the totals must"),
    (([[1, 0, 0], [0, 1]], E3), {}, r"A\[1\] has 2 entries and its cost 3 rows"),
    (([[[1, 0, 0]]], E3), {}, r"A\[0\] has shape \(1, 3\)"),
    (([[1, 0, 0]], [E3, E3]), {}, "M is a list of 2 costs for 1 histograms"),
    (([[1, 0, 0]] * 2, [E3, E3[:, :2]]), {}, "the costs have 2 and 3 columns"),
    (([[1, 0, 0]], E3, [0.5, 0.5]), {}, r"weights has shape \(2,\)"),
    (([[1, 0, 0]] * 2, E3, [1.5, -0.5]), {}, r"weights\[1\] is -0.5"),
    (([[1, 0, 0]] * 2, E3, [0, 0]), {}, "weights sums to 0"),
    (([[1, 0, 0]], np.full((3, 3), np.nan)), {}, "costs must be finite"),
    (([[1, 0, 0]], E3), {"reg": 0.1, "method": "exact"}, "exact does not solve the entropic"),
    (([[1, 0, 0]], E3), {"eps": 0.1, "rtol": 0.1}, "eps and rtol were given"),
    (([[1, 0, 0]], E3), {"eps": 1e-20}, "eps is 1e-20 for costs"),
    (([[1, 0, 0]], E3), {"method": "ibp", "relaxation": 2.0}, "relaxation is 2.0; it must be"),
    (([[1, 0, 0]], E3), {"method": "anderson", "memory": -1}, "memory is -1; it must be"),
    (([[1, 0, 0]], E3), {"normalize": 3}, "normalize is 3"),
]


@pytest.mark.parametrize(("args", "keywords", "sentence"), REFUSED)
def test_refusals_are_one_sentence(args, keywords, sentence):
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        epsilot.barycenter(*args, **keywords)


UNKNOWN = [
    (
        {"method": "exakt"},
        "auto, anderson, ibp, lbfgs, pdasmd, exact .did you mean 'exact'",
    ),
    ({"method": "sinkhorn"}, "does not find barycentres"),
    ({"method": "ibp", "omega": 1.0}, "has no argument 'omega'"),
    ({"verbose": True}, r"has no argument 'verbose'; did you mean progress\?"),
    ({"method": "ibp", "relaxtion": 1.0}, r"did you mean relaxation\?"),
]


@pytest.mark.parametrize(("keywords", "sentence"), UNKNOWN)
def test_unknown_methods_and_options(keywords, sentence):
    with pytest.raises(epsilot.UnknownMethod, match=sentence):
        epsilot.barycenter([[1, 0, 0]], E3, **keywords)


def test_too_large_for_linear_programs(rng):
    A = np.full((9, 1000), 1e-3)
    with pytest.raises(epsilot.InvalidProblem, match="'exact' serves up to"):
        epsilot.barycenter(A, rng.random((1000, 1000)), method="exact")


def test_normalize_and_inputs_stay_as_they_are(rng):
    A, M = rng.random((2, 6)), rng.random((6, 6))
    copies = A.copy(), M.copy()
    result = epsilot.barycenter(A, M, normalize=True)
    assert result.barycenter.sum() == pytest.approx(1.0)
    np.testing.assert_array_equal(A, copies[0])
    np.testing.assert_array_equal(M, copies[1])


def test_mixing_recovers_from_a_bad_history():
    """Anderson's steps end where the plain ones do, however large the memory is."""
    case = make("squared")
    plain, mixed = (
        epsilot.barycenter(
            *case.args, reg=0.05, tol=1e-10, method="anderson", memory=n, max_iter=50_000
        )
        for n in (0, 12)
    )
    assert mixed.n_iter < plain.n_iter
    assert abs(mixed.barycenter - plain.barycenter).sum() < 1e-4


#: histograms, places, keywords, what "auto" stands for
CHOICES = [
    (3, 20, {}, "exact"),
    (3, 20, {"reg": 0.1}, "anderson"),
    (3, 200, {"rtol": 0.2}, "lbfgs"),
    (3, 200, {"rtol": 1e-3, "max_seconds": 0.0}, "exact"),
]


@pytest.mark.parametrize(("k", "n", "keywords", "method"), CHOICES)
def test_what_auto_stands_for(k, n, keywords, method, rng):
    A = np.full((k, n), 1 / n)
    result = epsilot.barycenter(A, rng.random((n, n)), on_limit="ignore", **keywords)
    assert result.method == method
    assert result.choice.startswith(method)
