"""Losses of partial and unbalanced problems: values of ``solve``, slopes of finite differences."""

import math
from functools import partial

import numpy as np
import pytest

import epsilot
from epsilot.frameworks.losses import CloudLoss, MatrixLoss

STEP = 1e-4
TV = {"unbalanced": 0.6, "unbalanced_type": "tv"}
#: name: (keywords, relative error of a slope: without reg, KL slopes err by the root of the gap)
KINDS = {
    "partial": ({"mass": 0.4}, 1e-6),
    "TV": (TV, 1e-6),
    "KL": ({"unbalanced": 0.6, "rtol": 1e-8}, 1e-3),
    "KL with two penalties": ({"unbalanced": (0.6, 2.0), "rtol": 1e-8}, 1e-3),
    "KL with an exact side": ({"unbalanced": (math.inf, 0.6), "rtol": 1e-8}, 1e-3),
    "entropic partial": ({"mass": 0.4, "reg": 0.1, "tol": 1e-11}, 1e-5),
    "entropic TV": (TV | {"reg": 0.1, "tol": 1e-11}, 1e-5),
    "entropic KL": ({"unbalanced": 0.6, "reg": 0.1, "tol": 1e-11}, 1e-5),
}
each_kind = pytest.mark.parametrize(("keywords", "rtol"), KINDS.values(), ids=KINDS)


def weights(rng, k=2, n=6, m=5):
    """Return weights of different totals, of 0.6 and more."""
    return 0.2 * rng.random((k, n)) + 0.1, 0.3 * rng.random((k, m)) + 0.15


def check_slopes(loss, parts, rng, rtol):
    """Compare slopes with the differences of values along a random direction, part after part."""
    slopes = loss(parts, [z is not None for z in parts]).slopes
    for place, part in enumerate(parts):
        if part is None:
            continue
        move, ends = rng.normal(size=part.shape), []
        for sign in (1, -1):
            moved = list(parts)
            moved[place] = part + sign * STEP * move
            ends.append(loss(moved, [False] * len(parts)).value)
        found = (slopes[place] * move).reshape(len(move), -1).sum(axis=1)
        expected = (ends[0] - ends[1]) / (2 * STEP)
        np.testing.assert_allclose(found, expected, rtol=rtol, atol=rtol)


@each_kind
def test_slopes_in_points_and_free_weights(keywords, rtol, rng):
    x, y = rng.normal(size=(2, 6, 3)), rng.normal(size=(2, 5, 3)) + 0.3
    check_slopes(CloudLoss(**keywords), (x, y, *weights(rng)), rng, rtol)


#: Which weights are given; the others are uniform with their total.
GIVEN = {"both": (True, True), "a": (True, False), "b": (False, True)}


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
@each_kind
def test_slopes_in_costs_and_free_weights(keywords, rtol, given, rng):
    w = (z if is_given else None for z, is_given in zip(weights(rng), given, strict=True))
    check_slopes(MatrixLoss(**keywords), (rng.random((2, 6, 5)), *w), rng, rtol)


@each_kind
def test_values_are_those_of_solve(keywords, rtol, rng):
    M, (a, b) = rng.random((2, 6, 5)), weights(rng)
    found = MatrixLoss(**keywords)([M, a, b], [True] * 3)
    for k in range(2):
        accuracy = keywords if "rtol" in keywords or "reg" in keywords else {"rtol": 1e-6}
        alone = epsilot.solve(M[k], a[k], b[k], **(keywords | accuracy))
        assert (found.value[k], found.gap[k]) == (alone.value, alone.gap)
        np.testing.assert_array_equal(found.slopes[0][k], alone.plan)
        for x, y in zip(found.slopes[1:], alone.gradients()[:2], strict=True):
            np.testing.assert_array_equal(x[k], y)


#: keywords, the sentence that refuses them
REFUSED = [
    ({"mass": 0.4, "unbalanced": 1.0}, "mass and unbalanced were given"),
    ({"mass": -1.0}, "mass is -1.0"),
    ({"unbalanced_type": "tv"}, "unbalanced_type is 'tv' without unbalanced"),
    ({"unbalanced": 1.0, "unbalanced_type": "l2"}, "unbalanced_type is 'l2'"),
    ({"mass": 99.0}, "no more can be moved than either has"),
]


@pytest.mark.parametrize(("keywords", "sentence"), REFUSED)
def test_keywords_that_do_not_fit_are_refused(keywords, sentence, rng):
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        MatrixLoss(**keywords)([rng.random((2, 6, 5)), *weights(rng)], [False] * 3)


def test_padding_with_weights_of_zero_changes_nothing(rng):
    """With a TV penalty mass may appear anywhere, and does."""
    M, a = rng.random((1, 4, 3)), np.array([[0.5, 0.0, 0.3, 0.2]])
    for keywords, _ in (kind for name, kind in KINDS.items() if "TV" not in name):
        loss = MatrixLoss(**keywords)
        kept = loss([M[:, [0, 2, 3]], a[:, [0, 2, 3]], None], [True, True, False])
        found = loss([M, a, None], [True, True, False])
        np.testing.assert_allclose(found.value, kept.value, rtol=1e-6)
        assert np.isfinite(found.slopes[1]).all()


def test_torch_and_jax_differentiate_every_kind(rng):
    torch, jax = pytest.importorskip("torch"), pytest.importorskip("jax")
    import epsilot.jax
    import epsilot.torch

    x, y = rng.normal(size=(2, 6, 3)), rng.normal(size=(5, 3))
    a, b = weights(rng)
    for keywords in ({"mass": 0.4}, {"unbalanced": [0.6, 0.5], "reg": 0.2}, TV):
        expected = CloudLoss(**keywords)([x, np.stack([y, y]), a, b], [True] * 4)
        tensors = [torch.tensor(z, requires_grad=True) for z in (x, y, a, b)]
        value, info = epsilot.torch.transport_cost(*tensors, return_info=True, **keywords)
        value.sum().backward()
        np.testing.assert_array_equal(value.detach(), expected.value)
        np.testing.assert_array_equal(info.potentials[0], expected.f)
        for tensor, slope in zip(tensors, expected.slopes, strict=True):
            own = slope.sum(axis=0) if tensor.shape == y.shape else slope
            np.testing.assert_allclose(tensor.grad, own, atol=1e-14)
        # JAX computes in float32 unless it is told otherwise.
        cost = partial(epsilot.jax.transport_cost, **keywords)
        total = jax.jit(lambda *parts, cost=cost: cost(*parts).sum())
        da = jax.grad(total, argnums=2)(*map(jax.numpy.asarray, (x, y, a, b)))
        np.testing.assert_allclose(da, expected.slopes[2], atol=1e-2)
