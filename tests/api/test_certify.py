"""What `certify`, `exact` and `round_plan` say of any output."""

import numpy as np
import ot
import pytest

import epsilot
from epsilot import InvalidProblem
from sample_problems import A3, B4, M34, PROBLEMS, exact_value, put

ROWS = {row.name: row for row in PROBLEMS}
IMAGES = ROWS["images 6x6"]


def emd(row):
    plan, log = ot.emd(row.a, row.b, row.M, log=True)
    return {"plan": plan, "potentials": (log["u"], log["v"])}


def sinkhorn(row, n_iter):
    reg = 0.05 * np.ptp(row.M)
    plan, log = ot.sinkhorn(
        row.a, row.b, row.M, reg, numItermax=n_iter, stopThr=1e-12, warn=False, log=True
    )
    return {"plan": plan, "potentials": (reg * np.log(log["u"]), reg * np.log(log["v"]))}


def ours(row):
    result = epsilot.solve(row.M, row.a, row.b, eps=row.eps)
    return {"plan": result.plan, "potentials": result.potentials}


# name: (output, is its plan feasible as it stands, certified gap as a share of the cost's range)
OUTPUTS = {
    "ot.emd": (emd, True, 1e-9),
    "ot.sinkhorn, 2 iterations": (lambda row: sinkhorn(row, 2), False, 1.0),
    "ot.sinkhorn, converged": (lambda row: sinkhorn(row, 10_000), True, 0.2),
    "epsilot": (ours, True, 0.05),
}
CERTIFIED = ["images 6x6", "rectangular", "negative costs", "no zero cost"]


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("source", OUTPUTS)
@pytest.mark.parametrize("given", [["plan", "potentials"], ["plan"], ["potentials"]], ids=" ".join)
def test_certify_brackets_the_exact_value(given, source, name):
    row = ROWS[name]
    output = OUTPUTS[source][0](row)
    certificate = epsilot.certify(row.M, row.a, row.b, **{key: output[key] for key in given})
    assert certificate.lower <= exact_value(row) + row.round_off
    assert certificate.upper >= exact_value(row) - row.round_off
    assert certificate.gap == certificate.upper - certificate.lower


@pytest.mark.parametrize("name", CERTIFIED)
@pytest.mark.parametrize("source", OUTPUTS)
def test_certify_judges_an_output(source, name):
    row = ROWS[name]
    output, is_feasible, share = OUTPUTS[source]
    certificate = epsilot.certify(row.M, row.a, row.b, **output(row))
    assert certificate.is_feasible is is_feasible
    assert certificate.gap <= share * np.ptp(row.M)


def test_certify_needs_something_to_certify():
    with pytest.raises(InvalidProblem, match=r"plan.*potentials"):
        epsilot.certify(M34, A3, B4)


@pytest.mark.parametrize(
    ("parts", "pattern"),
    [
        ({"plan": np.full((4, 3), 1 / 12)}, r"plan.*\(4, 3\).*\(3, 4\)"),
        ({"plan": put(np.outer(A3, B4), np.nan)}, r"plan.*(nan|finite)"),
        ({"plan": put(np.outer(A3, B4), -0.1)}, r"plan.*negative"),
        ({"potentials": (np.zeros(4), np.zeros(3))}, r"potentials.*"),
        ({"potentials": (np.full(3, np.nan), np.zeros(4))}, r"potentials.*(nan|finite)"),
    ],
)
def test_certify_refuses_nonsense(parts, pattern):
    with pytest.raises(InvalidProblem, match=f"(?i){pattern}"):
        epsilot.certify(M34, A3, B4, **parts)


def test_exact_agrees_with_pot():
    result = epsilot.exact(IMAGES.M, IMAGES.a, IMAGES.b)
    assert result.value == pytest.approx(exact_value(IMAGES), abs=IMAGES.round_off)
    assert result.gap <= IMAGES.round_off


def test_round_plan_meets_the_marginals(rng):
    X = rng.uniform(0, 1, M34.shape)
    rounded = epsilot.round_plan(X / X.sum(), A3, B4)
    assert rounded.min() >= 0
    np.testing.assert_allclose(rounded.sum(axis=1), A3, rtol=0, atol=1e-15)
    np.testing.assert_allclose(rounded.sum(axis=0), B4, rtol=0, atol=1e-15)


def test_a_keyword_that_is_none_is_refused():
    with pytest.raises(TypeError, match="has no argument 'eps_'"):
        epsilot.certify(np.eye(2), plan=np.eye(2) / 2, eps_=1.0)


@pytest.mark.parametrize("reg", [None, 0.1])
@pytest.mark.parametrize("mass", [1.0, 30.0])
def test_what_is_missing_is_derived_where_masses_are_zero(reg, mass, rng):
    M, a, b = 5 + rng.random((4, 5)), mass * np.array([0, 0.5, 0.5, 0]), mass * np.full(5, 0.2)
    solved = epsilot.solve(M, a, b, **({"reg": reg} if reg else {"rtol": 1e-9, "method": "exact"}))
    found = epsilot.certify(M, a, b, plan=solved.plan, reg=reg)
    assert found.lower * (1 - 1e-12) <= solved.value <= found.upper * (1 + 1e-12)
    assert found.gap <= 1e-3 * abs(solved.value)


def test_potentials_that_prove_nothing_are_refused():
    # Found by the campaign: the dual value of these potentials is below the range of float64.
    kind = {"reg": 6.6e8, "unbalanced": 15100.0, "unbalanced_type": "kl"}
    M, a, b = np.full((1, 3), -1.4e7), np.array([2.8e119]), np.array([2.8e118, 6.7e118, 1.85e119])
    far = np.array([6.7e116]), np.array([1.8e116, -2.4e116, -4.4e116])
    with pytest.raises(epsilot.InvalidProblem, match="no finite lower bound"):
        epsilot.certify(M, a, b, plan=b[None], potentials=far, **kind)
