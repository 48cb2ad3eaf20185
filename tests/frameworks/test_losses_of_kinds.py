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


def divergence_by_hand(x, y, a, b, reg, price):
    """Return the divergence of Séjourné et al. (2019) with a KL penalty, by plain Sinkhorn."""

    def cost(x, y, a, b):
        C, f = ((x[:, None] - y) ** 2).sum(-1), np.zeros(len(a))
        share = price / (price + reg)
        for _ in range(2000):
            g = -share * reg * np.log((a[:, None] * np.exp((f[:, None] - C) / reg)).sum(0))
            f = -share * reg * np.log((b * np.exp((g - C) / reg)).sum(1))
        plan = a[:, None] * b * np.exp((f[:, None] + g - C) / reg)
        dual = price * (a @ (1 - np.exp(-f / price)) + b @ (1 - np.exp(-g / price)))
        return dual - reg * (plan.sum() - a.sum() * b.sum())

    own = cost(x, x, a, a) + cost(y, y, b, b)
    return cost(x, y, a, b) - own / 2 + reg / 2 * (a.sum() - b.sum()) ** 2


def test_the_unbalanced_divergence_is_that_of_its_paper(rng):
    torch = pytest.importorskip("torch")
    import epsilot.torch

    x, y, (a, b) = rng.normal(size=(6, 2)), rng.normal(size=(5, 2)), weights(rng)
    parts = [torch.tensor(z) for z in (x, y, a[0], b[0])]
    x_, y_, a_, b_ = parts
    found, info = epsilot.torch.divergence(
        x_, y_, 0.3, a_, b_, unbalanced=0.7, tol=1e-10, return_info=True
    )
    expected = divergence_by_hand(x, y, a[0], b[0], 0.3, 0.7)
    assert abs(found.item() - expected) <= info.gap.item() + 1e-9
    assert found.item() > 0
    same = epsilot.torch.divergence(x_, x_, 0.3, a_, a_, unbalanced=0.7)
    assert abs(same.item()) < 1e-8
    hard = [epsilot.torch.divergence(x_, y_, 0.3, unbalanced=z).item() for z in (math.inf, None)]
    assert hard[0] == hard[1]


@pytest.mark.parametrize("kind", [{"unbalanced": 0.7}, TV])
def test_slopes_of_the_unbalanced_divergence(kind, rng):
    torch = pytest.importorskip("torch")
    import epsilot.torch

    parts = [rng.normal(size=(6, 2)), rng.normal(size=(5, 2)), *(z[0] for z in weights(rng))]

    def value(parts):
        x, y, a, b = parts
        return epsilot.torch.divergence(x, y, 0.3, a, b, tol=1e-11, **kind)

    tensors = [torch.tensor(z, requires_grad=True) for z in parts]
    value(tensors).backward()
    for place, tensor in enumerate(tensors):
        move, ends = rng.normal(size=tensor.shape), []
        for sign in (1, -1):
            moved = [torch.tensor(z) for z in parts]
            moved[place] = torch.tensor(parts[place] + sign * STEP * move)
            ends.append(value(moved).item())
        found = (tensor.grad.numpy() * move).sum()
        assert found == pytest.approx((ends[0] - ends[1]) / (2 * STEP), rel=1e-4, abs=1e-6)


def test_points_without_mass_take_no_part_in_the_unbalanced_divergence(rng):
    torch = pytest.importorskip("torch")
    import epsilot.torch

    x, y = torch.tensor(rng.normal(size=(4, 2))), torch.tensor(rng.normal(size=(3, 2)))
    a, b = torch.tensor([0.5, 0.0, 0.3, 0.2]).double(), torch.full((3,), 0.4).double()
    for kind in ({"unbalanced": 0.7}, TV):
        found = epsilot.torch.divergence(x, y, 0.3, a, b, **kind)
        kept = [0, 2, 3]
        expected = epsilot.torch.divergence(x[kept], y, 0.3, a[kept], b, **kind)
        assert found.item() == pytest.approx(expected.item(), rel=1e-9)


#: function, keywords, the sentence that refuses them
NO_SUCH_KIND = [
    ("divergence", {"reg": 0.1, "mass": 0.4}, "mass was given to divergence, which takes no mass"),
    ("divergence", {"reg": 0.1, "unbalanced": (1.0, 2.0)}, "a divergence needs equal penalties"),
    ("match", {"mass": 0.4}, "mass was given to match, which takes no mass; some points have no"),
    ("match", {"unbalanced": 1.0}, "unbalanced was given to match"),
]


@pytest.mark.parametrize(("name", "keywords", "sentence"), NO_SUCH_KIND)
def test_functions_refuse_kinds_that_they_do_not_have(name, keywords, sentence, rng):
    torch = pytest.importorskip("torch")
    import epsilot.torch

    x = torch.tensor(rng.random((3, 2)))
    function = getattr(epsilot.torch, name)
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        function(x, x, **keywords)
    with pytest.raises(TypeError, match="unexpected keyword argument 'other'"):
        function(x, x, **({"reg": 0.1} if name == "divergence" else {}), other=1)


def test_a_refused_problem_of_many_is_named(rng):
    a, b = weights(rng)
    a[1] *= 0.1
    with pytest.raises(epsilot.InvalidProblem, match=r"^problem 1: mass is 0\.4, a sums to"):
        MatrixLoss(mass=0.4)([rng.random((2, 6, 5)), a, b], [False] * 3)


@pytest.mark.parametrize("price", [np.array([0.6, 0.5]), [0.6, 0.5], (np.float64(0.6), 0.5)])
def test_two_penalties_come_in_any_sequence(price, rng):
    loss, parts = MatrixLoss(unbalanced=price, reg=0.1), [rng.random((2, 6, 5)), *weights(rng)]
    expected = MatrixLoss(unbalanced=(0.6, 0.5), reg=0.1)(parts, [False] * 3).value
    np.testing.assert_array_equal(loss(parts, [False] * 3).value, expected)
    assert hash(loss) == hash(MatrixLoss(unbalanced=(0.6, 0.5), reg=0.1))


@pytest.mark.parametrize("given", GIVEN.values(), ids=GIVEN)
def test_infinite_penalties_are_the_balanced_problem(given, rng):
    M, w = rng.random((1, 6, 5)), (rng.dirichlet(np.ones(6), 1), rng.dirichlet(np.ones(5), 1))
    parts = [M, *(z if is_given else None for z, is_given in zip(w, given, strict=True))]
    found, expected = (
        MatrixLoss(unbalanced=price)(parts, [z is not None for z in parts])
        for price in ((math.inf, math.inf), None)
    )
    np.testing.assert_array_equal(found.value, expected.value)
    for x, y in zip(found.slopes, expected.slopes, strict=True):
        np.testing.assert_array_equal(x, y)
