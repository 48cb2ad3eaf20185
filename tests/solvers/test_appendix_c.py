"""``stop="paper"`` returns what the papers' procedures return: NumPy transcriptions beside it."""

import accelerated_listings as listings
import numpy as np
import pytest
from by_hand import synthetic

import epsilot
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic
from epsilot.problems.work import Status


def parameters(C, p, q, eps):
    """Appendix C, input and step 1."""
    n = p.size
    eta, slack = eps / (4 * np.log(n)), eps / (8 * C.max())
    p, q = ((1 - slack / 8) * x + slack / (8 * n) for x in (p, q))
    return eta, slack, p, q


def rounded(X, p, q):
    """Step 3: Algorithm 2 of Altschuler, Weed, Rigollet 2017."""
    X = X * np.minimum(p / X.sum(axis=1), 1)[:, None]
    X = X * np.minimum(q / X.sum(axis=0), 1)
    rows, cols = p - X.sum(axis=1), q - X.sum(axis=0)
    return X + np.outer(rows, cols) / np.abs(rows).sum()


def primal(C, eta, X):
    return (C * X).sum() + eta * (X * np.log(X)).sum()


def softmax(t):
    e = np.exp(t - t.max(axis=-1, keepdims=True))
    return e / e.sum(axis=-1, keepdims=True)


def pdasmd(C, p, q, eps, rng):
    """Algorithm 1 on the semi-dual in l∞ with w = ‖·‖²/2, ended by step 2 of Appendix C."""
    n = p.size
    eta, slack, p, q = parameters(C, p, q, eps)
    L = 5 / eta
    y = z = snap = np.zeros(n)
    C_sum, D_sum, s = 0.0, np.zeros((n, n)), 0
    while True:
        tau1 = 2 / (s + 4)
        alpha = 1 / (9 * tau1 * L)
        S = softmax((snap - C) / eta)
        mu = p @ S - q
        selected, uniform = rng.integers(n), rng.random((n, 1))
        ys = []
        for j in range(n):
            v = tau1 * z + snap / 2 + (1 - tau1 - 1 / 2) * y
            i = np.searchsorted(np.cumsum(p), uniform[j, 0] * p.sum(), side="right")
            g = mu + softmax((v - C[i]) / eta) - S[i]
            z = z - alpha * g
            y = v - np.abs(g).sum() / (9 * L) * np.where(g > 0, 1, -1)
            ys.append(y)
        snap = np.mean(ys, axis=0)
        C_sum += 1 / tau1
        D_sum += p[:, None] * softmax((ys[selected] - C) / eta) / tau1
        X, s = D_sum / C_sum, s + 1
        t = (snap - C) / eta
        lse = t.max(axis=1) + np.log(np.exp(t - t.max(axis=1, keepdims=True)).sum(axis=1))
        dual = eta * p @ (lse - np.log(p)) - q @ snap
        violation = np.abs(X.sum(axis=1) - p).sum() + np.abs(X.sum(axis=0) - q).sum()
        if violation <= slack / 2 and primal(C, eta, X) + dual <= eps / 4:
            return X, s


def sinkhorn(C, p, q, eps, rng):
    """Dvurechensky, Gasnikov, Kroshnin 2018, Algorithms 1 and 2."""
    eta, slack, p, q = parameters(C, p, q, eps)
    u, v, k = np.zeros(p.size), np.zeros(q.size), 0

    def plan():
        return np.exp(u[:, None] + v - C / eta)

    while True:
        if k % 2 == 0:
            u = u + np.log(p) - np.log(plan().sum(axis=1))
        else:
            v = v + np.log(q) - np.log(plan().sum(axis=0))
        X, k = plan(), k + 1
        if np.abs(X.sum(axis=1) - p).sum() + np.abs(X.sum(axis=0) - q).sum() <= slack / 2:
            return X, k


def apdagd(C, p, q, eps, rng):
    """Algorithm 3 of Dvurechensky, Gasnikov, Kroshnin 2018 in step 2 of Appendix C."""
    eta, slack, p, q = parameters(C, p, q, eps)
    problem = Entropic(Dense(C), eta, p, q)
    for k, (e, X) in enumerate(listings.gradient_descent(problem, listings.l2, 1, 2, 10_000), 1):
        violation = np.abs(X.sum(axis=1) - p).sum() + np.abs(X.sum(axis=0) - q).sum()
        gap = primal(C, eta, X) + listings.lse_dual(problem, e)[0]
        if violation <= slack / 2 and gap <= eps / 4:
            return X, k


def apdagd_by_duality(C, p, q, eps, rng):
    """Their Algorithm 4: no smoothing, and a test of the rounded plan, at steps of our choice."""
    eta = eps / (3 * np.log(p.size))
    problem, check = Entropic(Dense(C), eta, p, q), 1
    for k, (e, X) in enumerate(listings.gradient_descent(problem, listings.l2, 1, 2, 10_000), 1):
        if k < check:
            continue
        check = max(k + 1, int(1.1 * k))
        rise = (C * (rounded(X, p, q) - X)).sum()
        gap = primal(C, eta, X) + listings.lse_dual(problem, e)[0]
        if rise <= eps / 6 and gap <= eps / 6:
            return X, k


PROCEDURES = [
    ("pdasmd", {}, pdasmd),
    ("sinkhorn", {}, sinkhorn),
    ("apdagd", {"rule": "violation"}, apdagd),
    ("apdagd", {}, apdagd_by_duality),
]


@pytest.mark.parametrize(("method", "options", "procedure"), PROCEDURES)
def test_the_published_stop_returns_the_plan_of_the_published_procedure(method, options, procedure):
    C, p, q = synthetic(4, 1)
    X, n_iter = procedure(C, p, q, 0.2, np.random.default_rng(3))
    result = epsilot.solve(C, p, q, eps=0.2, method=method, stop="paper", seed=3, **options)
    assert result.status is Status.PUBLISHED_STOP
    assert result.n_iter == n_iter
    np.testing.assert_allclose(result.plan, rounded(X, p, q), rtol=0, atol=1e-12)
    # The value is that of this very plan, though a better one may have been seen on the way.
    assert result.value == pytest.approx((C * result.plan).sum(), rel=1e-14)
    assert min(record.upper for record in result.history) <= result.value + 1e-15


def test_a_limit_before_the_rule_leaves_the_best_certified_answer():
    C, p, q = synthetic(4, 1)
    arguments = {"eps": 0.2, "method": "pdasmd", "stop": "paper", "seed": 3, "on_limit": "ignore"}
    result = epsilot.solve(C, p, q, **arguments, max_iter=100)
    assert result.status is not Status.PUBLISHED_STOP
    assert result.value == min(record.upper for record in result.history)


def test_a_finished_run_that_is_resumed_answers_alike(tmp_path):
    C, p, q = synthetic(4, 1)
    arguments = {"eps": 0.2, "method": "pdasmd", "stop": "paper", "seed": 3}
    path = tmp_path / "run.npz"
    whole = epsilot.solve(C, p, q, **arguments, checkpoint=path)
    again = epsilot.solve(C, p, q, **arguments, resume=path)
    assert (again.value, again.n_iter) == (whole.value, whole.n_iter)
    assert whole.value > min(record.upper for record in whole.history)
    np.testing.assert_array_equal(again.plan, whole.plan)
