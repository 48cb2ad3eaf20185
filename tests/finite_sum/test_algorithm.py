"""The general algorithm on problems whose answer is known."""

import itertools

import numpy as np
import pytest

from epsilot import finite_sum, theory
from epsilot.errors import InvalidProblem
from epsilot.finite_sum import (
    EUCLIDEAN,
    EntropicTransport,
    Mirror,
    QuadraticTransport,
    SeparableQuadratic,
    algorithm,
    euclidean,
    minimize,
    p_norm,
)
from sample_problems import random


def separable(seed=0):
    rng = np.random.default_rng(seed)
    A, b, c = rng.normal(size=(3, 8)), rng.normal(size=3), rng.normal(size=8)
    return SeparableQuadratic(A, b, rng.uniform(0.5, 2, 8), c)


def quadratic(gamma=0.5, seed=1):
    return QuadraticTransport(*random(6, 5, seed=seed), gamma)


def entropic(eta=0.2, seed=2):
    return EntropicTransport(*random(5, 4, seed=seed), eta)


DUALS = {"separable": separable, "quadratic transport": quadratic, "entropic transport": entropic}


def scaled(d):
    """Return w = Σ d x² / 2, which is 1-strongly convex in both norms for d >= 1."""
    return Mirror(lambda x: d * x, lambda x: x / d)


# w = Σ cosh x, whose second derivative is at least 1
COSH = Mirror(np.sinh, np.arcsinh)


@pytest.mark.parametrize("name", DUALS)
def test_gradients_match_finite_differences(name, rng):
    dual = DUALS[name]()
    lam, h = 0.3 * rng.normal(size=dual.size), 1e-6
    numeric = [
        (dual.value(lam + h * e) - dual.value(lam - h * e)) / (2 * h) for e in np.eye(dual.size)
    ]
    np.testing.assert_allclose(dual.gradient(lam), numeric, atol=1e-7)
    components = [dual.component_gradient(i, lam) for i in range(dual.n_components)]
    shift = np.mean(components, axis=0) - dual.gradient(lam)
    other = [dual.component_gradient(i, 2 * lam) for i in range(dual.n_components)]
    # Constants shared by all λ cancel in the method's differences.
    np.testing.assert_allclose(np.mean(other, axis=0) - dual.gradient(2 * lam), shift, atol=1e-12)


@pytest.mark.parametrize("norm", ["l2", "linf", "l1", "l1.5", "l4"])
@pytest.mark.parametrize("name", DUALS)
def test_components_are_as_smooth_as_they_say(name, norm, rng):
    dual = DUALS[name]()
    L = dual.smoothness(norm)
    pairs = list(rng.normal(size=(100, 2, dual.size)))
    if hasattr(dual, "C"):  # where a row's plan is spread evenly, and opposite changes add up
        signs = 1e-3 * (-1.0) ** np.arange(dual.size)
        pairs += [(row, row + signs) for row in dual.C]
    for u, v in pairs:
        length = algorithm.lp(u - v, algorithm.exponent(norm))
        for i in range(dual.n_components):
            change = dual.component_gradient(i, u) - dual.component_gradient(i, v)
            assert algorithm.dual_norm(change, norm) <= L[i] * length * (1 + 1e-9)


@pytest.mark.parametrize("norm", ["l1", "l1.5", "l2", "l4", "linf"])
def test_the_constant_of_entropic_transport_is_attained(norm):
    """Two equal weights, moved in opposite directions: the variance is 2^(-2/p) ‖u‖²."""
    dual = EntropicTransport(np.zeros((3, 2)), np.full(3, 1 / 3), np.full(2, 0.5), 0.1)
    u = 1e-6 * np.array([1.0, -1.0])
    change = dual.component_gradient(0, u) - dual.component_gradient(0, 0 * u)
    size = algorithm.lp(u, algorithm.exponent(norm))
    measured = algorithm.dual_norm(change, norm) / size
    assert measured == pytest.approx(dual.smoothness(norm)[0], rel=1e-9)
    assert dual.smoothness("l2")[0] == pytest.approx(1 / (2 * 0.1))


@pytest.mark.parametrize("name", DUALS)
def test_weak_duality_is_tight_at_the_end(name):
    dual = DUALS[name]()
    found = minimize(dual, n_outer=400, step_constant=3.0)
    assert np.abs(dual.gradient(found.lam)).sum() <= 1e-2
    assert dual.objective(found.x) + found.value == pytest.approx(0, abs=1e-3)


@pytest.mark.parametrize("average", ["predrawn", "reservoir"])
@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize(
    ("norm", "mirror"),
    [
        ("l2", EUCLIDEAN),
        ("linf", EUCLIDEAN),
        ("l2", COSH),
        ("linf", scaled(np.array([1.0, 2, 1.5]))),
    ],
    ids=["l2", "linf", "l2 cosh", "linf scaled"],
)
def test_separable_problem_has_the_closed_form(norm, mirror, batch_size, average):
    dual = separable()
    x, lam = dual.solution()
    np.testing.assert_allclose(dual.A @ x, dual.b, atol=1e-12)
    found = minimize(
        dual,
        norm=norm,
        mirror=mirror,
        batch_size=batch_size,
        average=average,
        n_outer=600,
        tolerance=3e-4,
    )
    assert found.converged
    assert algorithm.dual_norm(dual.A @ found.x - dual.b, norm) <= 3.1e-4
    np.testing.assert_allclose(found.x, x, atol=3e-3)
    np.testing.assert_allclose(found.lam, lam, atol=3e-3)


@pytest.mark.filterwarnings("ignore:.*disp.*:DeprecationWarning")  # POT's use of SciPy
@pytest.mark.parametrize("gamma", [0.2, 1.0])
def test_quadratic_transport_agrees_with_pot(gamma):
    ot = pytest.importorskip("ot")
    dual = quadratic(gamma)
    plan = ot.smooth.smooth_ot_dual(
        dual.p, dual.q, dual.C, gamma, reg_type="l2", numItermax=10_000, stopThr=1e-14
    )
    found = minimize(dual, step_constant=3.0, n_outer=500, seed=1)
    np.testing.assert_allclose(found.x.sum(axis=1), dual.p, atol=1e-12)
    np.testing.assert_allclose(found.x, plan, atol=2e-3)
    assert dual.objective(found.x) == pytest.approx(dual.objective(plan), abs=2e-3)
    assert (found.x < 1e-6).sum() >= (plan < 1e-9).sum() - 3  # sparse, as the regulariser wants


@pytest.mark.parametrize("mirror", [EUCLIDEAN, COSH], ids=["euclidean", "cosh"])
def test_gradient_estimate_is_unbiased_under_importance_sampling(monkeypatch, mirror):
    dual, start = separable(3), np.array([0.4, -1.0, 0.7])
    L = dual.smoothness("l2")
    L_bar, law = L.mean(), L / L.sum()
    assert law.max() > 1.5 * law.min()
    # The first inner step is deterministic, so that both outcomes of the second can be listed.
    mu = dual.gradient(start)
    y, z = start - mu / (9 * L_bar), start - mu / (9 * 0.5 * L_bar)
    if mirror is COSH:
        z = np.arcsinh(np.sinh(start) - mu / (9 * 0.5 * L_bar))
    v = 0.5 * z + 0.25 * start + 0.25 * y
    mean = np.zeros(3)
    for i, k in itertools.product(range(8), range(8)):
        sample = np.array([[0, 0], [i, k]])
        monkeypatch.setattr(algorithm, "draw", lambda *args, sample=sample: (0, sample))
        found = minimize(dual, batch_size=2, inner_loops=2, n_outer=1, start=start, mirror=mirror)
        mean += law[i] * law[k] * (2 * found.lam - y)
    np.testing.assert_allclose(mean, v - dual.gradient(v) / (9 * L_bar), atol=1e-13)


def test_components_are_drawn_by_their_smoothness(rng):
    law = np.array([0.1, 0.0, 0.6, 0.3])
    selected = []
    counts = np.zeros(4)
    for _ in range(400):
        chosen, sample = algorithm.draw(rng, np.cumsum(law), 10, 5)
        assert sample.shape == (10, 5)
        selected.append(chosen)
        counts += np.bincount(sample.ravel(), minlength=4)
    np.testing.assert_allclose(counts / counts.sum(), law, atol=0.015)
    assert counts[1] == 0
    assert set(selected) == set(range(10))


def test_reservoir_picks_uniformly():
    # With one outer loop of 4 steps x is x(y) of the step that was picked.
    dual = separable()
    every = []
    for j in range(4):
        with pytest.MonkeyPatch.context() as patch:
            sample = np.zeros((4, 1), dtype=int)
            patch.setattr(algorithm, "draw", lambda *args, j=j, sample=sample: (j, sample))
            every.append(minimize(dual, inner_loops=4, n_outer=1).x)
    counts = np.zeros(4)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(algorithm, "draw", lambda *args: (0, np.zeros((4, 1), dtype=int)))
        for seed in range(800):
            x = minimize(dual, inner_loops=4, n_outer=1, average="reservoir", seed=seed).x
            counts[[np.array_equal(x, y) for y in every].index(True)] += 1
    np.testing.assert_allclose(counts / 800, 0.25, atol=0.06)


CASES = [
    ("l2", 1, 3.0, euclidean),
    ("l2", 1, 9.0, euclidean),
    ("linf", 1, 9.0, euclidean),
    ("l2", 3, 3.0, euclidean),
    ("linf", 3, 9.0, euclidean),
    ("l1", 1, 9.0, euclidean),
    ("l1", 1, 9.0, p_norm),
    ("l1.5", 1, 9.0, p_norm),
    ("l4", 1, 9.0, euclidean),
]


@pytest.mark.parametrize(("norm", "batch_size", "c", "make"), CASES)
@pytest.mark.parametrize("name", ["separable", "entropic transport"])
def test_theorem_1_holds_for_the_mean_over_seeds(name, norm, batch_size, c, make):
    dual, n_outer, n_seeds = DUALS[name](), 8, 30
    if name == "separable":
        x, lam = dual.solution()
    else:
        lam = np.zeros(dual.size)
        for _ in range(1000):  # Sinkhorn
            lam = lam + dual.eta * np.log(dual.q / dual.primal(lam).sum(axis=0))
        lam = lam - (lam.max() + lam.min()) / 2 if norm == "linf" else lam - lam.mean()
        x = dual.primal(lam)
        assert np.abs(dual.gradient(lam)).sum() <= 1e-12
    sums = [np.zeros_like(x) for _ in range(n_outer)]
    mirror = make(dual.size, norm)

    def add(s, average, _):
        sums[s] += average / n_seeds

    for seed in range(n_seeds):
        minimize(
            dual,
            norm=norm,
            mirror=mirror,
            batch_size=batch_size,
            step_constant=c,
            n_outer=n_outer,
            seed=seed,
            callback=add,
        )
    terms = {
        "smoothness": dual.smoothness(norm).mean(),
        "radius": algorithm.lp(lam, algorithm.exponent(norm)),
        "inner_loops": -(-dual.n_components // batch_size),
        "batch_size": batch_size,
        "gamma": mirror.gamma(dual.size, norm),
        "step_constant": c,
        "initial_gap": dual.value(np.zeros(dual.size)) - dual.value(lam),
    }
    for s, mean in enumerate(sums):
        if name == "separable":
            residual = dual.A @ mean - dual.b
        else:
            residual = mean.sum(axis=0) - dual.q
        gap = dual.objective(mean) - dual.objective(x)
        assert algorithm.dual_norm(residual, norm) <= theory.violation_bound(s + 1, **terms)
        assert gap <= theory.objective_bound(s + 1, **terms)


def test_run_is_fixed_by_its_seed_and_stops_when_told():
    first, second, other = (minimize(separable(), n_outer=5, seed=s) for s in (0, 0, 1))
    np.testing.assert_array_equal(first.x, second.x)
    assert not np.array_equal(first.x, other.x)
    stopped = minimize(separable(), n_outer=5, callback=lambda s, x, lam: s == 1)
    assert (stopped.n_outer, first.n_outer) == (2, 5)
    assert first.n_component_gradients == 5 * (8 + 2 * 8)
    warm = minimize(separable(), n_outer=0, start=separable().solution()[1])
    np.testing.assert_allclose(warm.x, separable().solution()[0])


@pytest.mark.parametrize(
    ("options", "word"),
    [
        ({"norm": "max"}, "norm"),
        ({"average": "all"}, "average"),
        ({"inner_loops": 0}, "inner_loops"),
        ({"step_constant": 0.0}, "step_constant"),
        ({"batch_size": -1}, "batch_size"),
    ],
)
def test_options_are_checked(options, word):
    with pytest.raises(InvalidProblem, match=word):
        finite_sum.minimize(separable(), **options)
