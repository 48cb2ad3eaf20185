"""Losses without a framework: slopes beside finite differences, shapes, partners."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

import epsilot
from epsilot.engine.batch import engine
from epsilot.frameworks import losses as values
from epsilot.frameworks.front import stack_clouds, stack_costs
from epsilot.frameworks.losses import point_slopes
from epsilot.problems.plan import Arcs

STEP = 1e-5
#: Takes the mean off rows of six.
FLAT = np.eye(6) - 1 / 6


def clouds(rng, k=2, n=6, m=5, d=3):
    return rng.normal(size=(k, n, d)), rng.normal(size=(k, m, d)) + 0.3


def weights(rng, k=2, n=6, m=5):
    return rng.dirichlet(np.ones(n), k), rng.dirichlet(np.ones(m), k)


def directions(rng, parts):
    """Return how each part moves; weights keep their total."""
    moves = [None if z is None else rng.normal(size=z.shape) for z in parts]
    for move in moves[-2:]:
        if move is not None:
            move -= move.mean(axis=-1, keepdims=True)
    return moves


def check_slopes(loss, parts, moves, rtol):
    """Compare slopes with the differences of values along a direction, part after part."""
    slopes = loss(parts, [z is not None for z in parts]).slopes
    for place, move in enumerate(moves):
        if move is None:
            continue
        ends = []
        for sign in (1, -1):
            moved = list(parts)
            moved[place] = parts[place] + sign * STEP * move
            ends.append(loss(moved, [False] * len(parts)).value)
        found = (slopes[place] * move).reshape(len(move), -1).sum(axis=1)
        np.testing.assert_allclose(found, (ends[0] - ends[1]) / (2 * STEP), rtol=rtol, atol=1e-7)


@pytest.mark.parametrize("keywords", [{}, {"reg": 0.3, "tol": 1e-11}], ids=["exact", "entropic"])
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine"])
def test_slopes_in_points_and_weights_are_those_of_the_value(metric, keywords, rng):
    parts = (*clouds(rng), *weights(rng))
    loss = values.CloudLoss(metric=metric, **keywords)
    check_slopes(loss, parts, directions(rng, parts), 1e-5)


@pytest.mark.parametrize("keywords", [{}, {"reg": 0.1, "tol": 1e-11}], ids=["exact", "entropic"])
def test_slopes_in_costs_are_plans(keywords, rng):
    parts = (rng.random((2, 6, 5)), *weights(rng))
    check_slopes(values.MatrixLoss(**keywords), parts, directions(rng, parts), 1e-5)


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine"])
def test_transport_of_a_cloud_to_itself_is_quick_and_sloped(metric, rng):
    (x, _), (a, _) = clouds(rng), weights(rng)
    loss = values.SelfLoss(metric=metric, reg=0.05, tol=1e-11)
    check_slopes(loss, (x, a), [rng.normal(size=x.shape), rng.normal(size=(2, 6)) @ FLAT], 1e-4)
    both = values.CloudLoss(metric=metric, reg=0.5, tol=1e-8)
    one = values.SelfLoss(metric=metric, reg=0.5, tol=1e-8)
    np.testing.assert_allclose(
        one([x, a], [False] * 2).value, both([x, x, a, a], [False] * 4).value, atol=1e-7
    )


def test_clouds_that_nearly_agree_take_no_longer(rng):
    x = rng.normal(size=(1, 20, 2))
    a = np.full((1, 20), 1 / 19)
    a[0, 0] = 0
    found = values.CloudLoss(reg=0.05)([x, x + 1e-3, a, a], [False] * 4)
    assert found.gap[0] <= values.TUNING.default_tol_share * 40


def test_a_cloud_with_empty_places_is_transported_to_itself(rng):
    x, a = rng.normal(size=(1, 4, 2)), np.array([[0.5, 0.0, 0.3, 0.2]])
    loss = values.SelfLoss(reg=0.1)
    kept = loss([x[:, [0, 2, 3]], a[:, [0, 2, 3]]], [True, True])
    found = loss([x, a], [True, True])
    assert found.value == pytest.approx(kept.value, rel=1e-9)
    assert np.isfinite(found.slopes[1]).all()
    np.testing.assert_allclose(found.slopes[0][:, [0, 2, 3]], kept.slopes[0], atol=1e-7)


#: Which weights are given, as multiples of a common total that grows.
TOTALS = {"both": (True, True), "a": (True, False), "b": (False, True)}


@pytest.mark.parametrize("keywords", [{}, {"reg": 0.1, "tol": 1e-10}], ids=["exact", "entropic"])
@pytest.mark.parametrize("are_given", TOTALS.values(), ids=TOTALS)
def test_slopes_know_the_price_of_more_mass(are_given, keywords, rng):
    loss, M, w = values.MatrixLoss(**keywords), rng.random((1, 6, 5)), weights(rng, 1)

    def parts(total):
        return M, *(total * z if given else None for z, given in zip(w, are_given, strict=True))

    at = parts(1.7)
    slopes = loss(at, [z is not None for z in at]).slopes[1:]
    found = sum((s * z).sum() for s, z in zip(slopes, w, strict=True) if s is not None)
    ends = [loss(parts(1.7 + sign * STEP), [False] * 3).value[0] for sign in (1, -1)]
    assert found == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-5)


@pytest.mark.parametrize("metric", ["euclidean", "cityblock", "sqeuclidean"])
@pytest.mark.parametrize("keywords", [{}, {"reg": 0.3}], ids=["exact", "entropic"])
def test_coincident_points_have_slope_zero(metric, keywords):
    x = np.zeros((1, 1, 2))
    slopes = values.CloudLoss(metric=metric, **keywords)(
        [x, x, None, None], [True] * 2 + [False] * 2
    )
    assert not np.any(slopes.slopes[:2])


def test_points_far_from_the_origin_lose_no_digits(rng):
    x, y = rng.random((2, 7, 2))
    plan = Arcs.of(epsilot.solve_sample(x, y).plan)
    near, far = (point_slopes(plan, x + 2.0**k, y + 2.0**k, "sqeuclidean")[0] for k in (0, 30))
    np.testing.assert_allclose(near, far, atol=1e-6)


#: keywords, what is refused
REFUSED = [
    ({"metric": "chebyshev"}, "metric is 'chebyshev'; it must be one of sqeuclidean"),
    ({"metric": len}, "for others pass the cost"),
    ({"rtol": -1.0}, "rtol is -1.0"),
    ({"rtol": 0.1, "reg": 0.1}, "pass exactly one of"),
    ({"tol": 0.1}, "tol"),
]


@pytest.mark.parametrize(("keywords", "sentence"), REFUSED)
def test_what_cannot_be_asked_is_refused(keywords, sentence, rng):
    with pytest.raises(epsilot.InvalidProblem) as caught:
        values.CloudLoss(**keywords)([*clouds(rng), None, None], [False] * 4)
    assert sentence in str(caught.value)


def test_a_bad_problem_of_many_is_named(rng):
    x, y = clouds(rng, 3)
    x[1, 0, 0] = np.nan
    with pytest.raises(epsilot.InvalidProblem, match=r"^problem 1: X_a\[0\] has a coordinate"):
        values.CloudLoss()([x, y, None, None], [False] * 4)


@pytest.mark.filterwarnings("ignore::epsilot.errors.ConvergenceWarning")
@pytest.mark.parametrize("keywords", [{}, {"reg": 0.1}], ids=["exact", "entropic"])
def test_an_interrupted_loss_interrupts_the_training(keywords, rng, monkeypatch):
    """A run keeps what it has at Ctrl-C; a loop over runs has to end."""
    interrupted = epsilot.Status.INTERRUPTED

    def solve(*problem, **asked):
        return replace(epsilot.solve(*problem, **asked), status=interrupted)

    monkeypatch.setattr(engine.Clock, "ending", lambda self: interrupted)
    monkeypatch.setattr(values, "solve", solve)
    with pytest.raises(KeyboardInterrupt):
        values.CloudLoss(**keywords)([*clouds(rng, 40), None, None], [False] * 4)


@pytest.mark.filterwarnings("ignore::epsilot.errors.ConvergenceWarning")
def test_an_interrupt_inside_the_only_problem_is_seen(rng, monkeypatch):
    """Such a batch is complete: every problem has an answer, the last one half of one."""
    whole = engine.solve_one

    def solve_one(*chunk):
        return replace(whole(*chunk), status=epsilot.Status.INTERRUPTED)

    monkeypatch.setattr(engine, "solve_one", solve_one)
    with pytest.raises(KeyboardInterrupt):
        values.CloudLoss()([*clouds(rng, 1, 300, 300), None, None], [False] * 4)


#: shapes of x, y, a, b; axes of many problems
STACKS = [
    ((4, 2), (5, 2), None, None, ()),
    ((3, 4, 2), (5, 2), None, (5,), (3,)),
    ((3, 1, 4, 2), (6, 5, 2), (4,), None, (3, 6)),
    ((4, 2), (5, 2), (7, 4), (5,), (7,)),
]


@pytest.mark.parametrize(("x", "y", "a", "b", "lead"), STACKS)
def test_many_problems_broadcast(x, y, a, b, lead):
    found = stack_clouds(x, y, a, b)
    assert found.lead == lead
    assert found.parts == (x[-2:], y[-2:], a and a[-1:], b and b[-1:])


#: shapes, the sentence that refuses them
MISFITS = [
    (stack_clouds, ((4,), (5, 2), None, None), "x has shape (4,); it must be (..., n, d)"),
    (stack_clouds, ((4, 2), (0, 2), None, None), "y has shape (0, 2)"),
    (stack_clouds, ((4, 2), (5, 3), None, None), "both must live in one space"),
    (stack_clouds, ((4, 2), (5, 2), (5,), None), "a has shape (5,); it must be (..., 4)"),
    (stack_clouds, ((3, 4, 2), (2, 5, 2), None, None), "they must broadcast against each other"),
    (stack_costs, ((4,), None, None), "M has shape (4,); it must be (..., n, m)"),
    (stack_costs, ((4, 5), None, (4,)), "b has shape (4,); it must be (..., 5), one weight"),
]


@pytest.mark.parametrize(("stack", "shapes", "sentence"), MISFITS)
def test_shapes_that_do_not_fit_are_refused(stack, shapes, sentence):
    with pytest.raises(epsilot.InvalidProblem) as caught:
        stack(*shapes)
    assert sentence in str(caught.value)


@pytest.mark.parametrize(("n", "d"), [(64, 2), (40, 200), (300, 3), (290, 20)])
def test_partners_of_as_many_points_are_a_permutation_of_least_cost(n, d, rng):
    x, y = rng.normal(size=(2, 2, n, d))
    found, gap = values.partners(x, y, None, None)
    for k in range(2):
        assert sorted(found[k]) == list(range(n))
        M = ((x[k, :, None] - y[k]) ** 2).sum(axis=2)
        least = M[linear_sum_assignment(M)].mean()
        assert M[np.arange(n), found[k]].mean() == pytest.approx(least, rel=1e-12)
        assert gap[k] < 1e-9


#: coordinates, what is refused
NO_POINTS = [(2, r"X_a\[0\] has a coordinate"), (40, r"X_a\[0\] has a coordinate")]


@pytest.mark.parametrize(("d", "sentence"), NO_POINTS)
def test_points_that_are_none_have_no_partners(d, sentence, rng):
    x, y = rng.normal(size=(2, 1, 5, d))
    x[0, 0, 1] = np.nan
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        values.partners(x, y, None, None)


def test_partners_are_drawn_from_the_rows_of_the_plan(rng):
    x, y = rng.normal(size=(2, 1, 5, 2))
    y = y[:, :3]
    plan = epsilot.solve_sample(x[0], y[0], rtol=1e-9).plan
    counts = np.zeros((5, 3))
    for seed in range(200):
        found, _ = values.partners(x, y, None, None, seed=seed)
        counts[np.arange(5), found[0]] += 1
    np.testing.assert_allclose(counts / 1000, plan, atol=0.04)


def test_points_without_mass_have_no_partner(rng):
    x, y = rng.normal(size=(2, 1, 3, 2))
    with pytest.raises(epsilot.InvalidProblem, match=r"a\[1\] is 0; a point without mass"):
        values.partners(x, y, np.array([[0.5, 0.0, 0.5]]), None)
