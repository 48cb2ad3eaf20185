"""APDAGD and APDAMD: the listings, the line search, both published rules."""

import accelerated_listings as listings
import numpy as np
import pytest
from accelerated_listings import SHAPES, small, states
from by_hand import synthetic

import epsilot
from epsilot.problems.work import Status


@pytest.mark.parametrize("shape", SHAPES)
@pytest.mark.parametrize(
    ("name", "norm", "first", "largest"),
    [("apdagd", listings.l2, 1, 2), ("apdamd", listings.linf, 2, 4)],
)
def test_gradient_methods_follow_their_listing(name, norm, first, largest, shape):
    problem = small(*shape)
    ours = states(problem, name, 40, average=True)
    theirs = listings.gradient_descent(problem, norm, first, largest, 40)
    for (_, _, state), (e, X) in zip(ours, theirs, strict=True):
        np.testing.assert_allclose(state.e, e, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-9)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(("name", "norm"), [("apdagd", listings.l2), ("apdamd", listings.linf)])
def test_line_search_and_estimate_sequence(name, norm, seed):
    problem = small(12, 9, eta=0.02, seed=seed)
    C, eta, b, _ = listings.parts(problem)
    for solver, old, new in states(problem, name, 150, average=True):
        t = 1 - old.beta / new.beta
        w = t * old.zeta + (1 - t) * old.e
        F, g, _ = listings.lse_dual(problem, w)
        d = new.e - w
        value = listings.lse_dual(problem, new.e)[0]
        assert value <= F + g @ d + new.smooth / 2 * norm(d) + 1e-12
        assert new.smooth <= solver.smoothness[1] / eta
        np.testing.assert_allclose(t**2 * new.beta, 1 / new.smooth, rtol=1e-10)
        # φ(e) + f(X̂) ≤ min_w <w, A X̂ - b> + ‖w‖²/(2β)
        residual = listings.marginals(new.X) - b
        f = (C * new.X).sum() + eta * (new.X * np.log(new.X)).sum()
        assert value + f <= -new.beta / 2 * residual @ residual + 1e-12
        assert new.value == pytest.approx(value, abs=1e-12)


def test_duality_rule_stops_earlier_and_keeps_eps():
    M, a, b = synthetic(6, 0)
    run = {"M": M, "a": a, "b": b, "eps": 0.05, "method": "apdagd", "stop": "paper"}
    early, late = epsilot.solve(**run), epsilot.solve(**run, rule="violation")
    assert early.status is Status.PUBLISHED_STOP
    assert early.gap <= 0.05
    assert early.n_iter < late.n_iter / 2


def test_apdamd_is_the_textbook_form_with_delta_n():
    problem = small()
    ours = states(problem, "apdamd", 40, average=True)
    for (_, _, state), (e, X) in zip(ours, listings.mirror_descent(problem, 40), strict=True):
        np.testing.assert_allclose(state.e, e, rtol=0, atol=1e-9)
        np.testing.assert_allclose(state.X, X, rtol=0, atol=1e-9)
