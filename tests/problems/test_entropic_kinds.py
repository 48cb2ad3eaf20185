"""Partial and TV-unbalanced problems with an entropy: brackets by definition, plans, refusals."""

import math

import numpy as np
import ot
import pytest
from scipy.special import xlogy

import epsilot
from epsilot import InvalidProblem
from epsilot.errors import CertificateError
from epsilot.problems.kinds import UserProblem
from epsilot.problems.partial import Partial, best_clipped
from epsilot.problems.unbalanced import Unbalanced

RNG = np.random.default_rng(0)
X, Y = RNG.random((14, 2)), RNG.random((11, 2)) + 0.4
GEOMETRIES = {
    "dense": epsilot.Dense(RNG.random((9, 7)) - 0.2),
    "cloud": epsilot.PointCloud(X, Y, "euclidean"),
    "grid": epsilot.Grid((4, 3), (3, 5), "sqeuclidean"),
}
REG = 0.05


def drawn(name, scale):
    geometry = GEOMETRIES[name]
    rng = np.random.default_rng(1)
    a, b = scale * rng.random(geometry.shape[0]), 2 * scale * rng.random(geometry.shape[1])
    a[0] = 0.0
    return geometry, geometry.block(0, geometry.shape[0]), a, b


def spent(result, M):
    """Return <M, X> - reg H(X)."""
    X = result.plan
    assert X.min() >= 0
    return (X * M).sum() + REG * xlogy(X, X).sum()


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("share", [0.3, 0.9, 1.0])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_partial_brackets_are_what_they_say(name, share, scale):
    geometry, M, a, b = drawn(name, scale)
    mass = share * min(a.sum(), b.sum())
    result = epsilot.solve(geometry, a, b, mass=mass, reg=REG, tol=1e-8 * scale)
    assert (result.converged, result.method, result.is_entropic) == (True, "clipped_sinkhorn", True)
    X, (f, g), µ = result.plan, result.potentials, result.mass_price
    assert X.sum() == pytest.approx(mass, rel=1e-12)
    assert max((X.sum(axis=1) - a).max(), (X.sum(axis=0) - b).max()) <= 1e-12 * b.sum()
    assert spent(result, M) == pytest.approx(result.value, rel=1e-11, abs=1e-11 * scale)
    assert (X * M).sum() == pytest.approx(result.value_linear, rel=1e-11)
    assert max(f.max(), g.max()) <= 0
    dual = f[1:] @ a[1:] + g @ b + mass * µ
    dual -= REG * np.exp((f[:, None] + g + µ - M) / REG - 1).sum()
    assert dual == pytest.approx(result.lower_bound, rel=1e-10, abs=1e-10 * scale)


@pytest.mark.parametrize("name", GEOMETRIES)
@pytest.mark.parametrize("prices", [(0.2, 0.2), (0.1, 2.0), (math.inf, 0.5)])
@pytest.mark.parametrize("scale", [1.0, 1e4])
def test_brackets_in_total_variation_are_what_they_say(name, prices, scale):
    geometry, M, a, b = drawn(name, scale)
    kind = {"unbalanced": prices, "unbalanced_type": "tv"}
    result = epsilot.solve(geometry, a, b, **kind, reg=REG, tol=1e-8 * scale)
    assert (result.converged, result.method) == (True, "clipped_sinkhorn")
    X, (f, g) = result.plan, result.potentials
    upper = spent(result, M)
    for price, missed in zip(prices, (X.sum(axis=1) - a, X.sum(axis=0) - b), strict=True):
        is_kept = price == math.inf
        assert not is_kept or np.abs(missed).sum() <= 1e-12 * b.sum()
        upper += 0.0 if is_kept else price * np.abs(missed).sum()
    assert upper == pytest.approx(result.value, rel=1e-11)
    assert (f >= -prices[0]).all()
    assert (g >= -prices[1]).all()
    used = a > 0
    lower = np.minimum(f[used], prices[0]) @ a[used] + np.minimum(g, prices[1]) @ b
    lower -= REG * np.exp((f[:, None] + g - M) / REG - 1).sum()
    assert lower == pytest.approx(result.lower_bound, rel=1e-10)
    assert result.mass_price is None


def test_small_regularisation_is_nearly_none():
    _, M, a, b = drawn("dense", 1.0)
    for kind in ({"mass": 2.0}, {"unbalanced": (0.3, 0.5), "unbalanced_type": "tv"}):
        exact = epsilot.solve(M, a, b, rtol=1e-9, **kind)
        smooth = epsilot.solve(M, a, b, reg=1e-3, tol=1e-6, **kind)
        linear = smooth.value + 1e-3 * -xlogy(smooth.plan, smooth.plan).sum()
        assert exact.value - 1e-6 <= linear <= exact.value + 0.01


def test_the_partial_plan_is_that_of_pot():
    _, M, a, b = drawn("dense", 1.0)
    a = a[1:]
    ours = epsilot.solve(M[1:], a, b, mass=2.0, reg=0.1, tol=1e-10).plan
    keywords = {"m": 2.0, "numItermax": 100_000, "stopThr": 1e-14}
    theirs = ot.partial.entropic_partial_wasserstein(a, b, M[1:], 0.1, **keywords)
    np.testing.assert_allclose(ours, theirs, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("reg", [None, REG])
def test_the_price_of_mass_bounds_other_masses(reg):
    _, M, a, b = drawn("dense", 1.0)
    target = {"rtol": 1e-9} if reg is None else {"reg": reg, "tol": 1e-9}
    here = epsilot.solve(M, a, b, mass=2.0, **target)
    for mass in (0.5, 1.9, 2.1, 3.0):
        there = epsilot.solve(M, a, b, mass=mass, **target).value
        assert there >= here.lower_bound + here.mass_price * (mass - 2.0) - 1e-9
    step = 1e-3  # a slope as well, where the optimum has one
    ends = [epsilot.solve(M, a, b, mass=2.0 + t, **target).value for t in (-step, step)]
    slopes = [(here.value - ends[0]) / step, (ends[1] - here.value) / step]
    assert slopes[0] - 1e-5 <= here.mass_price <= slopes[1] + 1e-5


@pytest.mark.parametrize("share", [1e-3, 0.5, 0.999, 1.0])
@pytest.mark.parametrize("eta", [1e-4, 0.1, 10.0])
def test_a_level_moves_its_share(share, eta):
    rng = np.random.default_rng(3)
    h, p = np.round(rng.normal(size=20), 1), rng.dirichlet(np.ones(20))
    h[4], p[4] = -np.inf, 0.0
    p /= p.sum()
    f, level = best_clipped(h, p, share, eta)
    np.testing.assert_allclose(f, np.minimum(h - level, 0))
    used = p > 0
    moved = p[used] @ np.exp(np.minimum((level - h[used]) / eta, 0))
    assert moved == pytest.approx(share, rel=1e-11)


def test_false_potentials_prove_nothing():
    rng = np.random.default_rng(0)
    M, a, b = rng.random((6, 8)), rng.random(6), rng.random(8)
    for kind, change, words in (
        (Partial(0.5), 2.0, "a potential is positive"),
        (Unbalanced(0.3, 0.3, "tv"), -9.0, "below minus the marginal penalty"),
    ):
        objective = kind.objective(kind.problem(UserProblem(M, a, b)), 0.1)
        (f, g), bound = objective.dual(rng.normal(size=6))
        assert objective.dual_value((f, g)) == pytest.approx(bound, rel=1e-12)
        g[3] += change
        with pytest.raises(CertificateError, match=words):
            objective.dual_value((f, g))


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"mass": 0.5, "method": "sinkhorn"}, "sinkhorn solves other problems than mass with reg"),
        (
            {"unbalanced": 1.0, "unbalanced_type": "tv", "method": "unbalanced_sinkhorn"},
            "unbalanced_sinkhorn solves other problems than unbalanced_type='tv' with reg",
        ),
        ({"method": "clipped_sinkhorn"}, "clipped_sinkhorn does not solve"),
        ({"unbalanced": 1.0, "method": "clipped_sinkhorn"}, "use unbalanced_sinkhorn"),
        ({"mass": 0.5, "stop": "paper"}, "leave it out with mass"),
    ],
)
def test_methods_that_do_not_fit_are_refused(keywords, words):
    with pytest.raises(InvalidProblem, match=words):
        epsilot.solve(np.ones((2, 3)), reg=0.1, **keywords)


@pytest.mark.parametrize("prices", [(math.inf, 0.5), (0.5, math.inf)])
@pytest.mark.parametrize("divergence", ["kl", "tv"])
def test_large_masses_keep_their_side(prices, divergence):
    _, M, a, b = drawn("dense", 1e6)
    wish = {"unbalanced": prices, "unbalanced_type": divergence, "reg": REG}
    assert epsilot.solve(M, a, b, **wish).converged


def test_default_accuracy_of_zero_costs_is_a_share_of_the_regularisation():
    # The default was 1e-6 in units of the costs, far above a small regularisation.
    a, b = np.array([0.2, 0.3, 0.5]), np.array([0.6, 0.4])
    result = epsilot.solve(np.zeros((3, 2)), a, b, reg=1e-5, method="aam")
    assert result.converged
    assert result.gap <= 1e-6 * 1e-5 * 1.001


@pytest.mark.parametrize("masses", [(300.0, 1e-4), (1e-4, 300.0), (1e-9, 1e-9)])
def test_default_accuracy_of_zero_costs_is_a_share_of_penalties_times_masses(masses):
    a, b = np.array(masses[:1]), np.array(masses[1:])
    result = epsilot.solve([[0.0]], a, b, reg=1.0, unbalanced=(1e3, 0.01), unbalanced_type="tv")
    assert result.converged
    assert result.target == pytest.approx(1e-6 * 1e3 * (a + b).item(), rel=0.5)


def test_a_tolerance_may_be_as_large_as_the_masses():
    rng = np.random.default_rng(0)
    M, a, b = rng.random((8, 7)), 2e127 * rng.random(8), 2e127 * rng.random(7)
    result = epsilot.solve(M, a, b, reg=400.0, unbalanced=55.0, tol=4e126)
    assert result.converged
    assert result.target == pytest.approx(4e126)
