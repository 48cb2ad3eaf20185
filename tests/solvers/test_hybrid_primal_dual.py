"""Hybrid primal-dual: the listing, the energy inequalities, and the a-priori count."""

import accelerated_listings as listings
import numpy as np
import pytest
from accelerated_listings import SHAPES, small, states

import epsilot
from epsilot.problems.problem import Additive
from epsilot.problems.work import Status
from sample_problems import random


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize("form", ["line_search", "accelerated", "plain"])
def test_hybrid_follows_its_listing(form, shape):
    problem = small(*shape)
    eta = problem.eta
    if form == "plain":
        eta, problem = 0.0, Additive(problem.geometry, 0.1, problem.p, problem.q)
    ours = states(problem, "hybrid_primal_dual", 40, form=form, average=True)
    for (_, _, state), (w, X) in zip(ours, listings.hybrid(problem, form, 40, eta), strict=True):
        np.testing.assert_allclose(state.mean, w, rtol=0, atol=1e-10)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-10)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("form", ["line_search", "accelerated", "plain"])
def test_hybrid_energy_inequalities(form, seed):
    problem = small(12, 9, eta=0.02, seed=seed)
    if form == "plain":
        problem = Additive(problem.geometry, 0.1, problem.p, problem.q)
    C, eta, b, n = listings.parts(problem)
    rng = np.random.default_rng(seed)
    X_any = rng.dirichlet(np.ones(C.size)).reshape(C.shape)
    w_any = rng.normal(size=b.size)

    def lagrangian(X, w):
        return (C * X).sum() + eta * (X * np.log(X)).sum() - w @ (listings.marginals(X) - b)

    X_old = np.full_like(C, 1 / C.size)
    first = (X_any * np.log(X_any / X_old)).sum()
    bound, total = None, 0.0
    for _, old, new in states(problem, "hybrid_primal_dual", 150, form=form):
        X = np.exp(listings.log_softmax(C, n, new.inv, new.fg)[0])
        ratio = new.sigma / new.step
        if bound is None:
            bound = first / ratio + w_any @ w_any / 2
        move = listings.marginals(X) - listings.marginals(X_old)
        kl = (X * np.log(X / X_old)).sum()
        assert new.step**2 / 2 * move @ move <= kl / ratio + 1e-12 * (1 + new.step**2)
        w_bar = old.w + new.step / old.step * (old.w - old.w_old)
        total += new.step * (lagrangian(X, w_any) - lagrangian(X_any, w_bar))
        assert total <= bound + 1e-9
        X_old = X


@pytest.mark.parametrize("shape", [(9, 9), (6, 11)])
def test_plain_form_stops_at_its_a_priori_count(shape):
    n, m = shape
    M, a, b = random(n, m, seed=4)
    M = M - M.min()
    result = epsilot.solve(
        M, a, b, eps=0.05, method="hybrid_primal_dual", form="plain", stop="paper"
    )
    assert result.n_iter == np.ceil(M.max() * np.sqrt((n + m) * np.log(n * m)) / 0.05)
    assert result.status is Status.PUBLISHED_STOP
    assert result.gap <= 0.05
    assert result.reg == 0
