"""Points whose costs their type cannot hold give a sentence, and never an infinite loss."""

import warnings

import numpy as np
import pytest

import epsilot
from epsilot import InvalidProblem

X, Y = np.random.default_rng(0).random((2, 6, 2))

#: type, scale of points whose distances it holds, and whose squares it does not
SCALES = {"float32": 1e30, "float16": 3e4}


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine"])
@pytest.mark.parametrize("is_lazy", [False, True])
def test_solve_computes_in_float64(dtype, metric, is_lazy):
    x, y = ((SCALES[dtype] * z).astype(dtype) for z in (X, Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        result = epsilot.solve_sample(x, y, metric=metric, lazy=is_lazy)
        batch = epsilot.solve_sample_batch(x[None], y[None], metric=metric)
    wide = epsilot.solve_sample(x.astype(float), y.astype(float), metric=metric, lazy=is_lazy)
    assert result.converged
    assert result.value == wide.value
    assert batch.value[0] == pytest.approx(wide.value, rel=1e-2)


@pytest.mark.parametrize(("metric", "is_lazy"), [("sqeuclidean", False), ("euclidean", True)])
def test_points_whose_costs_leave_float64_are_refused(metric, is_lazy):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidProblem, match="multiply all of them by one factor"):
            epsilot.solve_sample(1e200 * X, 1e200 * Y, metric=metric, lazy=is_lazy)


@pytest.fixture(params=["torch", "jax"])
def front(request):
    """Return a framework, its losses, and how it makes an array of a type."""
    library = pytest.importorskip(request.param, reason=f"{request.param} is not installed")
    if request.param == "torch":
        return epsilot.torch, lambda x, dtype: library.tensor(x, dtype=getattr(library, dtype))
    return epsilot.jax, lambda x, dtype: library.numpy.asarray(x, dtype=dtype)


CALLS = {
    "cost": lambda losses, x, y, reg: losses.transport_cost(x, y),
    "entropic cost": lambda losses, x, y, reg: losses.transport_cost(x, y, reg=reg),
    "divergence": lambda losses, x, y, reg: losses.divergence(x, y, reg),
}


@pytest.mark.parametrize("dtype", SCALES)
@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_a_loss_that_its_type_cannot_hold_is_refused(front, call, dtype):
    losses, array = front
    x, y = (array(SCALES[dtype] * z, dtype) for z in (X, Y))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(
            Exception, match=f"beyond the range of .*{dtype}; pass arrays of float64"
        ):
            call(losses, x, y, 0.1 * SCALES[dtype] ** 2)


@pytest.mark.parametrize("dtype", SCALES)
def test_a_loss_that_its_type_holds_is_finite(front, dtype):
    losses, array = front
    x, y = (array(SCALES[dtype] * z, dtype) for z in (X, Y))
    value = float(losses.transport_cost(x, y, metric="euclidean"))
    assert value == pytest.approx(
        SCALES[dtype] * epsilot.solve_sample(X, Y, metric="euclidean", rtol=1e-9).value, rel=1e-2
    )


def test_slopes_beyond_a_type_are_refused():
    torch = pytest.importorskip("torch", reason="torch is not installed")
    x = torch.tensor(300 * X, dtype=torch.float16)
    y = torch.tensor(3000 + 300 * Y, dtype=torch.float64)
    a = torch.full((6,), 1 / 6, dtype=torch.float16, requires_grad=True)
    with pytest.raises(InvalidProblem, match=r"beyond the range of torch\.float16"):
        epsilot.torch.transport_cost(x, y, a)
