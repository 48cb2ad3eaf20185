"""Norms, mirror maps, the separable example, and Sinkhorn as stochastic mirror descent."""

import doctest
import pickle

import numpy as np
import pytest

from epsilot.errors import InvalidProblem
from epsilot.finite_sum import (
    EUCLIDEAN,
    Mirror,
    Separable,
    SeparableQuadratic,
    algorithm,
    euclidean,
    instances,
    minimize,
    p_norm,
)
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic
from epsilot.solvers.sinkhorn import Sinkhorn
from sample_problems import random

NORMS = {"linf": np.inf, "l2": 2.0, "l1": 1.0, "l1.5": 1.5, "l4": 4.0}


@pytest.mark.parametrize("norm", NORMS)
def test_the_dual_norm_and_the_proximal_step_belong_together(norm, rng):
    p = NORMS[norm]
    for g in (*rng.normal(size=(20, 7)), np.zeros(7), np.eye(7)[2]):
        step, size = algorithm.proximal_step(g, norm), algorithm.dual_norm(g, norm)
        # u = -step minimises ‖u‖²/2 + <g, u>, where that is -‖g‖²_* / 2
        value = np.linalg.norm(step, p) ** 2 / 2 - g @ step
        assert value == pytest.approx(-(size**2) / 2, rel=1e-12, abs=1e-300)
        for other in rng.normal(size=(20, 7)):
            assert g @ other <= size * np.linalg.norm(other, p) * (1 + 1e-12)


@pytest.mark.parametrize("norm", ["l0.5", "l", "lx", "l-1", "lnan", "max", 2, None])
def test_other_norms_are_refused(norm):
    with pytest.raises(InvalidProblem, match=r"norm is .* as 'l1\.5'"):
        algorithm.exponent(norm)


@pytest.mark.parametrize("make", [euclidean, p_norm])
@pytest.mark.parametrize("norm", NORMS)
def test_mirrors_are_strongly_convex_with_the_gamma_they_say(norm, make, rng):
    mirror, p = make(6, norm), NORMS[norm]
    gamma = mirror.gamma(6, norm)
    for x, y in rng.normal(size=(200, 2, 6)):
        np.testing.assert_allclose(mirror.inverse(mirror.gradient(x)), x, atol=1e-12)
        # <∇w(x) - ∇w(y), x - y> >= ‖x - y‖²
        slope = (mirror.gradient(x) - mirror.gradient(y)) @ (x - y)
        assert slope >= np.linalg.norm(x - y, p) ** 2 * (1 - 1e-12)
        # both maps are squares of norms: V_0(u) = <∇w(u), u> / 2
        assert mirror.gradient(x) @ x <= gamma * np.linalg.norm(x, p) ** 2 * (1 + 1e-12)
    assert pickle.loads(pickle.dumps(mirror)).name == mirror.name


def test_the_p_norm_map_is_the_better_one_in_l1():
    assert p_norm(1000, "l1").gamma(1000, "l1") < 0.06 * euclidean(1000, "l1").gamma(1000, "l1")
    assert p_norm(1000, "linf") is EUCLIDEAN


# -- Section 2.2: any convex f_i ---------------------------------------------------------------


def quadratics(seed=0):
    """Return the same problem twice: by closed forms, and by conjugates."""
    rng = np.random.default_rng(seed)
    A, b, d, c = (
        rng.normal(size=(3, 8)),
        rng.normal(size=3),
        rng.uniform(0.5, 2, 8),
        rng.normal(size=8),
    )
    return SeparableQuadratic(A, b, d, c), Separable(
        A=A,
        b=b,
        conjugate=lambda t, i: t**2 / (2 * d[i]) + c[i] * t,
        conjugate_gradient=lambda t, i: t / d[i] + c[i],
        convexity=d,
    )


def test_conjugates_of_quadratics_give_the_closed_forms(rng):
    one, other = quadratics()
    lam = rng.normal(size=3)
    assert other.value(lam) == pytest.approx(one.value(lam))
    np.testing.assert_allclose(other.primal(lam), one.primal(lam))
    np.testing.assert_allclose(other.gradient(lam), one.gradient(lam))
    np.testing.assert_allclose(other.component_gradient(5, lam), one.component_gradient(5, lam))
    for norm in NORMS:
        np.testing.assert_allclose(other.smoothness(norm), one.smoothness(norm))
    runs = [minimize(dual, n_outer=3, norm="l1.5").x for dual in (one, other)]
    np.testing.assert_allclose(*runs, atol=1e-13)


@pytest.mark.parametrize("convexity", [0.0, np.array([1.0, -1.0])])
def test_a_component_must_be_strongly_convex(convexity):
    with pytest.raises(InvalidProblem, match="strongly convex"):
        Separable(
            A=np.ones((1, 2)), b=np.ones(1), conjugate=None, conjugate_gradient=None,
            convexity=convexity,
        )  # fmt: skip


@pytest.mark.parametrize("module", [algorithm, instances])
def test_examples(module):
    assert doctest.testmod(module).failed == 0


# -- Appendix A ---------------------------------------------------------------------------------


def test_sinkhorn_is_stochastic_mirror_descent():
    C, p, q = random(6, 5, 1.0, seed=3)
    problem, eta = Entropic(Dense(C), 0.1, p, q), 0.1
    entropy = Mirror(np.log, np.exp)  # w = Σ X (log X - 1)
    rng = np.random.default_rng(0)
    solver = Sinkhorn(domain="log", relaxation=1.0)
    state, _ = solver.init(problem, rng)
    X = np.exp(-C / eta)
    for k in range(12):
        solver.step(problem, state, rng)
        # ∇ KL(X 1 | p), or of the columns, at every entry of X; a step of length 1
        axis, masses = (1, p[:, None]) if k % 2 == 0 else (0, q)
        gradient = np.broadcast_to(np.log(X.sum(axis=axis, keepdims=True) / masses), X.shape)
        twice = entropy.step(X, 2 * gradient)
        X = entropy.step(X, gradient)
        ours = np.exp((state.row[:, None] + state.lam - C) / eta)
        np.testing.assert_allclose(X, ours, rtol=1e-12)
        assert k > 8 or np.abs(twice - ours).max() > 1e-6  # the printed V / 2b is not Sinkhorn
