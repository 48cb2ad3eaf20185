"""epsilot.jax: gradients under jit, grad and vmap, beside those of the library itself."""

import doctest

import numpy as np
import pytest

import epsilot
from epsilot.frameworks.losses import CloudLoss, MatrixLoss, partners

jax = pytest.importorskip("jax", reason="JAX is not installed")
losses = epsilot.jax
jnp = jax.numpy


@pytest.fixture
def clouds(rng):
    return (jnp.asarray(z, jnp.float32) for z in (rng.normal(size=(6, 2)), rng.normal(size=(5, 2))))


def expected(loss, *parts):
    """Return values and slopes as they are computed without JAX."""
    stacks = [None if z is None else np.asarray(z, np.float64)[None] for z in parts]
    found = loss(stacks, [z is not None for z in parts])
    return found.value[0], [None if s is None else s[0] for s in found.slopes]


@pytest.mark.parametrize("keywords", [{}, {"metric": "euclidean"}, {"reg": 0.3}], ids=str)
def test_gradients_under_jit_are_those_of_the_solution(keywords, clouds):
    x, y = clouds
    a = jax.nn.softmax(x[:, 0])

    def cost(x, y, a):
        return losses.transport_cost(x, y, a, **keywords)

    value, slopes = jax.jit(jax.value_and_grad(cost, argnums=(0, 1, 2)))(x, y, a)
    right, right_slopes = expected(CloudLoss(**keywords), x, y, a, None)
    assert value == pytest.approx(right, rel=1e-5)
    for mine, theirs in zip(slopes, right_slopes, strict=False):
        np.testing.assert_allclose(mine, theirs, rtol=1e-4, atol=1e-5)


def test_gradients_in_the_cost_are_plans(rng):
    M = jnp.asarray(rng.random((4, 5)), jnp.float32)
    slope = jax.jit(jax.grad(losses.transport_cost_matrix))(M)
    _, (plan, _, _) = expected(MatrixLoss(), M, None, None)
    np.testing.assert_allclose(slope, plan, atol=1e-6)


def test_mapped_problems_are_one_batch(rng, clouds):
    _, y = clouds
    many = jnp.asarray(rng.normal(size=(2, 3, 6, 2)), jnp.float32)
    slope = jax.grad(losses.transport_cost)
    mapped = jax.jit(jax.vmap(jax.vmap(slope, (0, None)), (0, None)))(many, y)
    np.testing.assert_array_equal(mapped[1, 2], slope(many[1, 2], y))
    np.testing.assert_array_equal(
        jax.vmap(losses.transport_cost, (0, None))(many[0], y), losses.transport_cost(many[0], y)
    )


def test_the_divergence_is_smooth(clouds):
    x, y = clouds
    weights = jnp.full(5, 0.4)

    def cost(x):
        return losses.divergence(x, y, 0.5, b=weights)

    step = 1e-2 * jnp.sign(x)
    slope = jax.jit(jax.grad(cost))(x)
    change = float(cost(x + step) - cost(x - step))
    assert change == pytest.approx(2 * float((slope * step).sum()), rel=1e-2)
    assert abs(losses.divergence(x, x, 0.5)) < 1e-5
    terms = (epsilot.solve_sample(p, q, reg=0.5).value for p, q in ((x, y), (x, x), (y, y)))
    between, of_x, of_y = terms
    assert losses.divergence(x, y, 0.5) == pytest.approx(between - (of_x + of_y) / 2, abs=1e-4)


def test_info_is_auxiliary(clouds):
    x, y = clouds

    def cost(x):
        return losses.transport_cost(x, y, return_info=True)

    (value, info), _ = jax.value_and_grad(cost, has_aux=True)(x)
    assert info.gap <= 1e-6 * value
    assert [p.shape for p in info.potentials] == [(6,), (5,)]


def test_short_floats_are_widened(clouds):
    x, y = (z.astype(jnp.bfloat16) for z in clouds)
    assert losses.transport_cost(x, y).dtype == jnp.bfloat16
    assert jax.grad(losses.transport_cost)(x, y).dtype == jnp.bfloat16


@pytest.mark.parametrize("wrap", [lambda f: f, jax.jit], ids=["eager", "jit"])
def test_partners_are_those_without_jax(wrap, rng):
    x, y = (jnp.asarray(rng.normal(size=(2, 3, n, 2)), jnp.float32) for n in (6, 6))
    found, gap = wrap(lambda x, y: losses.match(x, y, return_info=True))(x, y)
    right, gaps = partners(*(np.asarray(z).reshape(6, 6, 2) for z in (x, y)), None, None)
    np.testing.assert_array_equal(found.reshape(6, 6), right)
    np.testing.assert_allclose(gap.ravel(), gaps, atol=1e-12)
    np.testing.assert_array_equal(jax.vmap(losses.match)(x, y), found)
    np.testing.assert_array_equal(
        jax.vmap(losses.match, (0, None))(x, y[0])[1], losses.match(x[1], y[0])
    )


def test_partners_have_no_gradient_and_the_pairs_have_one(clouds):
    x, y = clouds

    def cost(x):
        return jnp.sum((x - y[losses.match(x, y, seed=3)]) ** 2)

    slope = jax.jit(jax.grad(cost))(x)
    np.testing.assert_allclose(slope, 2 * (x - y[losses.match(x, y, seed=3)]), rtol=1e-6)


def test_the_gap_of_a_divergence_is_returned(clouds):
    x, y = clouds
    rough, info = losses.divergence(x, y, 0.5, tol=1e-2, return_info=True)
    assert abs(rough - losses.divergence(x, y, 0.5)) <= info.gap + 1e-5
    assert [p.shape for p in info.potentials] == [(6,), (5,)]


#: how it is called wrongly, the sentence
REFUSED = [
    (lambda x: losses.transport_cost(x, x, rtol=-1.0), "rtol is -1.0; it must be a positive"),
    (lambda x: losses.transport_cost(None, x), "x is of type NoneType; it must be an array of"),
    (lambda x: losses.divergence(x, x, None), "reg is None; it must be a positive finite number"),
    (lambda x: losses.match(x, x, seed=-1), "seed is -1; it must be an integer, 0 or more"),
    (lambda x: losses.transport_cost(x, x[:, :1]), "both must live in one space"),
    (lambda x: losses.transport_cost(jnp.arange(4), x), "x is of type int32; it must be"),
    (lambda x: losses.transport_cost(x, x, metric="l3"), "metric is 'l3'"),
    (lambda x: jax.jit(lambda M: epsilot.solve(M).value)(x), "M is traced by JAX and has no"),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_refusals_are_sentences(call, sentence):
    with pytest.raises(epsilot.InvalidProblem) as caught:
        call(jnp.ones((3, 2)))
    assert sentence in str(caught.value)


def test_arrays_are_read_by_every_solve(rng):
    M = rng.random((2, 4, 5)).astype(np.float32)
    assert epsilot.solve(jnp.asarray(M[0])).value == epsilot.solve(M[0]).value
    np.testing.assert_array_equal(
        epsilot.solve_batch(jnp.asarray(M)).value, epsilot.solve_batch(M).value
    )


def test_examples():
    assert doctest.testmod(losses).failed == 0
