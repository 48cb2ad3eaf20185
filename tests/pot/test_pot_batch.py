"""Batches of problems of one shape, by POT's names."""

import numpy as np
import ot
import pytest

import epsilot.pot

jax = pytest.importorskip("jax")
torch = pytest.importorskip("torch")
batch = pytest.importorskip("ot.batch")

BACKENDS = {"numpy": np.asarray, "torch": torch.as_tensor, "jax": jax.numpy.asarray}


def problems(k=4, n=6, m=5):
    rng = np.random.default_rng(0)
    a, b = rng.random((k, n)) + 0.1, rng.random((k, m)) + 0.1
    return rng.random((k, n, m)), a / a.sum(1, keepdims=True), b / b.sum(1, keepdims=True)


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("name", BACKENDS)
def test_exact_batches(name, weighted):
    M, a, b = problems()
    given = [BACKENDS[name](x) for x in (a, b)] if weighted else [None, None]
    result = epsilot.pot.solve_batch(BACKENDS[name](M), None, *given)
    for k, cost in enumerate(M):
        weights = (a[k], b[k]) if weighted else ([], [])
        assert float(result.value[k]) == pytest.approx(ot.emd2(*weights, cost), rel=1e-11)
        assert float(result.value_linear[k]) == pytest.approx(float(result.value[k]))
        f, g = (np.asarray(x[k]) for x in result.potentials)
        assert (f[:, None] + g <= cost + 1e-14).all()
    assert type(result.plan) is type(BACKENDS[name](M))
    assert (result.log["gap"] <= 1e-11).all()


@pytest.mark.parametrize("method", ["auto", "sinkhorn", "log_sinkhorn", "proximal"])
@pytest.mark.parametrize("reg_type", ["kl", "entropy"])
def test_entropic_batches(method, reg_type):
    M, a, b = problems()
    result = epsilot.pot.batch.solve_batch(M, 0.1, a, b, method=method, reg_type=reg_type)
    theirs = batch.solve_batch(M, 0.1, a, b, tol=1e-12, max_iter=9999, reg_type=reg_type)
    for name in ("plan", "value", "value_linear"):
        expected = getattr(theirs, name)
        np.testing.assert_allclose(getattr(result, name), expected, atol=1e-9)
    u, v = result.potentials
    gibbs = np.exp(u[:, :, None] + v[:, None] - M / 0.1)
    np.testing.assert_allclose(gibbs, result.plan, atol=1e-9)
    assert (result.log["gap"] <= 1e-11).all()
    np.testing.assert_allclose(result.log["lower_bound"], result.value, atol=1e-11)


@pytest.mark.parametrize("reg", [None, 0.1])
def test_gradients_of_minima(reg):
    M, a, b = (torch.tensor(x) for x in problems())
    M.requires_grad_(True)
    result = epsilot.pot.solve_batch(M, reg, a, b)
    result.value.sum().backward()
    np.testing.assert_allclose(M.grad, result.plan.detach())
    detached = epsilot.pot.solve_batch(M, reg, a, b, grad="detach")
    assert not detached.value.requires_grad


def test_gradients_of_iterations_are_left_to_pot():
    M, a, b = (torch.tensor(x) for x in problems())
    M.requires_grad_(True)
    result = epsilot.pot.solve_batch(M, 0.1, a, b, grad="autodiff")
    assert result.plan.requires_grad
    assert result.log["gap"] == np.inf


def test_points():
    rng = np.random.default_rng(1)
    X, Y = rng.random((3, 6, 2)), rng.random((3, 7, 2))
    result = epsilot.pot.solve_sample_batch(X, Y)
    costs = [ot.emd2([], [], ot.dist(x, y)) for x, y in zip(X, Y, strict=True)]
    np.testing.assert_allclose(result.value, costs)


def test_arguments_are_reported_by_pot():
    M, _, _ = problems()
    with pytest.raises(ValueError, match="Unknown method"):
        epsilot.pot.solve_batch(M, 0.1, method="fast")
    with pytest.raises(ValueError, match="strictly positive reg"):
        epsilot.pot.solve_batch(M, method="sinkhorn")


@pytest.mark.filterwarnings("ignore:The use of `x.T`:UserWarning")
@pytest.mark.parametrize("p", [1, 2, 3])
@pytest.mark.parametrize("n", [1, 3])
@pytest.mark.parametrize("name", BACKENDS)
def test_lines_with_a_log(name, n, p):
    rng = np.random.default_rng(2)
    x, y = (BACKENDS[name](rng.random((9, n) if n > 1 else 9)) for _ in range(2))
    cost, log = epsilot.pot.wasserstein_1d(x, y, p=p, log=True)
    expected = ot.wasserstein_1d(x, y, p=p)
    np.testing.assert_array_equal(np.asarray(cost), np.asarray(expected))
    assert (np.abs(np.asarray(cost) - log["lower_bound"]) <= 1e-7).all()
    assert (log["gap"] <= 1e-11).all()
    assert (np.asarray(epsilot.pot.wasserstein_1d(x, y, p=p)) == np.asarray(expected)).all()
