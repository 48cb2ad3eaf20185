"""Audits of anybody's barycentres."""

import numpy as np
import pytest
from barycenter_problems import make, optimum

import epsilot

CASE = make("squared")
A, M, W = CASE.A, CASE.M[0], CASE.weights


@pytest.fixture(scope="module")
def best():
    return optimum(CASE)


@pytest.fixture(scope="module")
def result():
    return epsilot.barycenter(A, M, W, rtol=1e-6)


def test_what_is_right_is_confirmed(result, best):
    plans = [plan.toarray() for plan in result.plans]
    audit = epsilot.certify(
        M, A, barycenter=result.barycenter, weights=W, plan=plans, potentials=result.potentials
    )
    assert audit.is_feasible
    assert audit.upper == pytest.approx(result.value, abs=1e-12)
    assert audit.lower == pytest.approx(result.lower_bound, abs=1e-9)
    assert audit.lower - 1e-9 <= best <= audit.upper + 1e-9


@pytest.mark.parametrize("given", ["plans", "potentials", "neither"])
def test_what_is_missing_is_derived(given, result, best):
    parts = {
        "plans": {"plan": list(result.plans)},
        "potentials": {"potentials": result.potentials},
        "neither": {},
    }
    audit = epsilot.certify(M, A, barycenter=result.barycenter, weights=W, **parts[given])
    assert audit.lower - 1e-9 <= best <= audit.upper + 1e-9
    assert audit.gap <= 2e-3 * best


def test_a_worse_histogram_is_seen(best):
    b = np.full(M.shape[1], 1 / M.shape[1])
    audit = epsilot.certify(M, A, barycenter=b, weights=W)
    parts = [epsilot.exact(M, a, b).value for a in A]
    assert audit.upper == pytest.approx(np.dot(W, parts), rel=1e-3)
    assert audit.upper > best


def test_wrong_plans_are_rounded_and_totals_counted(result, best):
    plans = [plan.toarray() + 0.01 for plan in result.plans]
    audit = epsilot.certify(
        M,
        A,
        barycenter=1.1 * result.barycenter,
        weights=W,
        plan=plans,
        potentials=result.potentials,
    )
    assert not audit.is_feasible
    assert audit.marginal_error > 0.1
    assert audit.upper >= best - 1e-9


def test_entropic_barycentres_too(result):
    entropic = epsilot.barycenter(A, M, W, reg=0.05, tol=1e-8)
    audit = epsilot.certify(
        M, A, barycenter=entropic.barycenter, weights=W, reg=0.05, potentials=entropic.potentials
    )
    assert audit.upper == pytest.approx(entropic.value, abs=1e-5)
    assert audit.lower == pytest.approx(entropic.lower_bound, abs=1e-8)


REFUSED = [
    ({"barycenter": [1.0]}, "barycenter has 1 entries; it must have 15"),
    ({"barycenter": np.full(15, -1.0)}, "barycenter has negative entries"),
    ({"plan": [M]}, "plan has 1 entries; with barycenter it must have 4"),
    ({"potentials": [(M[0], M[0])]}, "potentials has 1 entries"),
    ({"barycenter": None}, "weights was given without barycenter"),
]


@pytest.mark.parametrize(("changed", "sentence"), REFUSED)
def test_refusals_are_one_sentence(changed, sentence):
    asked = {"barycenter": np.full(15, 1 / 15), "weights": W} | changed
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        epsilot.certify(M, A, **asked)
