"""reg_type="kl": values, plans and potentials by definition and by POT; certificates; refusals."""

import math

import numpy as np
import ot
import pytest

import epsilot
from epsilot import InvalidProblem
from epsilot.geometry.derived import Tilted

N, M, REG = 6, 7, 0.1
RNG = np.random.default_rng(0)
COST, A, B = RNG.random((N, M)), RNG.random(N) + 0.1, RNG.random(M) + 0.1
A, B = A / A.sum(), B / B.sum()
EMPTY = np.where(np.arange(N) == 2, 0.0, A)
LAM = RNG.random(N) + 0.1


def log_ratio(x, y):
    """Return the terms x log(x / y), 0 where x is."""
    return np.where(x > 0, x * np.log(np.where(x > 0, x, 1) / np.where(y > 0, y, 1)), 0.0)


def penalty(x, y, price, divergence):
    price = np.broadcast_to(price, x.shape)
    each = np.abs(x - y) if divergence == "tv" else log_ratio(x, y) - x + y
    return price[np.isfinite(price)] @ each[np.isfinite(price)]


KINDS = {
    "balanced": {},
    "partial": {"mass": 0.5},
    "KL": {"unbalanced": 0.5},
    "KL, one side exact": {"unbalanced": (0.5, math.inf)},
    "KL, prices per point": {"unbalanced": (LAM, 0.7)},
    "TV": {"unbalanced": 0.5, "unbalanced_type": "tv"},
    "TV, one side exact": {"unbalanced": (0.5, math.inf), "unbalanced_type": "tv"},
    "TV, prices per point": {"unbalanced": (LAM, 0.7), "unbalanced_type": "tv"},
}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("weights", ["as they are", "a point without mass", "larger masses"])
def test_the_value_and_the_plan_are_those_of_the_definition(kind, weights):
    keywords = KINDS[kind]
    a = {"as they are": A, "a point without mass": EMPTY / EMPTY.sum(), "larger masses": 3 * A}
    a, b = a[weights], B * (3 if weights == "larger masses" else 1)
    res = epsilot.solve(COST, a, b, reg=REG, reg_type="kl", **keywords)
    X, R = res.plan, a[:, None] * b
    r, c = X.sum(axis=1), X.sum(axis=0)
    value = (X * COST).sum() + REG * log_ratio(X, R).sum()
    if "unbalanced" in keywords:
        prices = keywords["unbalanced"]
        prices = prices if isinstance(prices, tuple) else (prices, prices)
        value += REG * (R.sum() - X.sum())
        for x, y, price in zip((r, c), (a, b), prices, strict=True):
            value += penalty(x, y, price, keywords.get("unbalanced_type", "kl"))
    assert res.value == pytest.approx(value, rel=1e-12)
    assert res.value_linear == pytest.approx((X * COST).sum(), rel=1e-12)
    assert res.converged
    assert res.gap >= 0
    assert X[a == 0].sum() == 0
    start = tuple(np.where(np.isfinite(z), z, 0.0) for z in res.potentials)
    found = epsilot.certify(
        COST, a, b, plan=X, potentials=start, reg=REG, reg_type="kl", **keywords
    )
    assert found.gap <= 10 * res.gap + 1e-5
    if kind != "partial":
        f, g = res.potentials
        f = np.where(a > 0, f, 0.0)
        assert R * np.exp((f[:, None] + g - COST) / REG) == pytest.approx(X, abs=2e-3 * a.sum())


@pytest.mark.parametrize("a", [A, EMPTY / EMPTY.sum()], ids=["full", "one empty"])
@pytest.mark.filterwarnings("ignore")
def test_balanced_values_are_those_of_pot(a):
    mine = epsilot.solve(COST, a, B, reg=REG, reg_type="kl", tol=1e-11)
    theirs = ot.solve(COST, a, B, reg=REG, reg_type="KL", tol=1e-13, max_iter=10000)
    assert mine.value == pytest.approx(theirs.value, abs=1e-9)
    assert mine.value_linear == pytest.approx(theirs.value_linear, abs=1e-7)
    assert mine.value_linear == pytest.approx(
        float(ot.sinkhorn2(a, B, COST, REG, stopThr=1e-13)), abs=1e-7
    )
    assert np.isfinite(mine.potentials[0]).all()


@pytest.mark.parametrize(("divergence", "excess"), [("kl", 1e-9), ("tv", 0.02)])
@pytest.mark.filterwarnings("ignore")
def test_unbalanced_values_are_those_of_pot(divergence, excess):  # its steps need smooth penalties
    keywords = {"unbalanced": 0.5, "unbalanced_type": divergence}
    mine = epsilot.solve(COST, 2 * A, B, reg=REG, reg_type="kl", tol=1e-10, **keywords)
    kind = {"reg_div": "kl", "regm_div": divergence, "stopThr": 1e-14, "log": True}
    log = ot.unbalanced.lbfgsb_unbalanced(2 * A, B, COST, REG, 0.5, **kind)[1]
    assert mine.lower_bound <= log["total_cost"] <= mine.value + excess


def test_starts_are_in_the_units_of_the_potentials():
    first = epsilot.solve(COST, A, B, reg=REG, reg_type="kl", tol=1e-10)
    again = epsilot.solve(
        COST, A, B, reg=REG, reg_type="kl", tol=1e-10, potentials_init=first.potentials
    )
    assert again.n_iter <= 1
    plain = epsilot.solve(COST, A, B, reg=REG, tol=1e-10)
    constant = A @ np.log(A) + B @ np.log(B)
    assert first.value == pytest.approx(plain.value - REG * constant, abs=1e-12)
    assert np.array_equal(first.plan, plain.plan)


def test_slopes_are_those_of_the_value():
    keywords = {"reg": REG, "reg_type": "kl", "tol": 1e-11}
    da = epsilot.solve(COST, A, B, **keywords).gradients()[0]
    step = 1e-4 * (np.eye(N)[0] - np.eye(N)[3])
    ends = [epsilot.solve(COST, A + sign * step, B, **keywords).value for sign in (1, -1)]
    assert (ends[0] - ends[1]) / 2e-4 == pytest.approx(da[0] - da[3], abs=1e-5)
    with pytest.raises(InvalidProblem, match="slopes"):
        epsilot.solve(COST, A, B, unbalanced=1.0, **keywords).gradients()


def test_other_entry_points_take_it(tmp_path):
    keywords = {"reg": REG, "reg_type": "kl"}
    wanted = epsilot.solve(COST, A, B, **keywords).value
    assert epsilot.solve_batch(COST[None], A[None], B[None], **keywords).value[0] == wanted
    X, Y = np.random.default_rng(1).random((8, 2)), np.random.default_rng(2).random((9, 2))
    for more in ({}, {"unbalanced": 0.4}):
        cloud = epsilot.solve_sample(X, Y, lazy=True, **more, **keywords)
        stored = epsilot.solve(((X[:, None] - Y) ** 2).sum(axis=2), **more, **keywords)
        assert cloud.value == pytest.approx(stored.value, abs=1e-5)
    grids = np.random.default_rng(3).random((3, 4)), np.random.default_rng(4).random((3, 4))
    found = epsilot.solve_grid(*grids, metric="sqeuclidean", unbalanced=1.0, **keywords)
    assert found.converged


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"reg_type": "kl"}, "reg_type was given without reg"),
        ({"reg_type": "l2", "reg": 1.0}, "reg_type is 'l2'; it must be 'entropy' or 'kl'"),
        ({"reg_type": 3, "reg": 1.0}, "reg_type is 3"),
        ({"reg_type": "kl", "reg": 1.0, "stop": "paper"}, "stop='paper'"),
    ],
)
def test_what_makes_no_sense_is_refused(keywords, words):
    with pytest.raises(InvalidProblem, match=words):
        epsilot.solve(COST, **keywords)


def test_a_tilted_cost_is_the_sum():
    u, v = (
        0.1 * np.random.default_rng(5).normal(size=N),
        0.1 * np.random.default_rng(6).normal(size=M),
    )
    lazy, stored = Tilted(epsilot.Dense(COST), u, v), epsilot.Dense(COST + u[:, None] + v)
    f, g, w, d = (
        0.1 * np.random.default_rng(7).normal(size=N),
        0.1 * np.random.default_rng(8).normal(size=M),
        np.random.default_rng(9).random(M),
        np.random.default_rng(10).random(M),
    )
    passes = {
        "block": lambda x: x.block(1, 4),
        "gathered": lambda x: x.gathered(np.array([3, 0])),
        "entries": lambda x: x.entries(np.array([3, 0]), np.array([1, 6])),
        "lse_rows": lambda x: x.lse_rows(g, 0.3),
        "lse_cols": lambda x: x.lse_cols(f, 0.3),
        "rough": lambda x: x.rough.lse_cols(f, 0.3),
        "log_marginals": lambda x: np.concatenate(
            [np.ravel(z) for z in x.log_marginals(f, g, 0.3)]
        ),
        "marginals": lambda x: np.concatenate(x.marginals(f, g, 0.3)),
        "apply_rows": lambda x: x.apply_rows(f, g, 0.3, w),
        "apply_cols": lambda x: x.apply_cols(f, g, 0.3, f),
        "price_rows": lambda x: np.concatenate(x.price_rows(f, g, 0.3, w, d)),
        "gibbs": lambda x: x.gibbs(f, g, 0.3, 0, N),
        "matvec": lambda x: x.matvec(d),
        "ctransform_rows": lambda x: x.ctransform_rows(g),
        "ctransform_cols": lambda x: x.ctransform_cols(f),
        "restricted": lambda x: x.restricted(np.array([1]), np.array([2, 4])).matrix(),
        "shifted": lambda x: x.shifted(0.5).exact.detached().matrix(),
    }
    for name, do in passes.items():
        assert do(lazy) == pytest.approx(do(stored), abs=1e-12), name
    assert lazy.bounds[0] <= stored.bounds[0]
    assert lazy.bounds[1] >= stored.bounds[1]
    assert lazy.digest() != Tilted(epsilot.Dense(COST), u, 2 * v).digest()
