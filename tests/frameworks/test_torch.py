"""epsilot.torch: gradients beside finite differences, many problems, types, sentences."""

import doctest

import numpy as np
import pytest

import epsilot

torch = pytest.importorskip("torch", reason="PyTorch is not installed")
losses = epsilot.torch


@pytest.fixture
def draw(rng):
    """Return a function that draws tensors of float64 that require gradients."""

    def drawn(*shape):
        return torch.tensor(rng.normal(size=shape), requires_grad=True)

    return drawn


def gradcheck(function, *tensors):
    assert torch.autograd.gradcheck(function, tensors, eps=1e-4, atol=1e-5, rtol=1e-4)


#: what is differentiated, of x, y and the logits of a and b
ENTROPIC = {
    "squares": lambda x, y, s, t: losses.transport_cost(
        x, y, s.softmax(-1), t.softmax(-1), reg=0.5, tol=2e-11
    ),
    "distances": lambda x, y, s, t: losses.transport_cost(
        x, y, s.softmax(-1), t.softmax(-1), metric="euclidean", reg=0.3, tol=1e-11
    ),
    "matrix": lambda x, y, s, t: losses.transport_cost_matrix(
        torch.tanh(x @ y.mT), s.softmax(-1), t.softmax(-1), reg=0.2, tol=2e-12
    ),
    "divergence": lambda x, y, s, t: losses.divergence(
        x, y, 0.5, s.softmax(-1), t.softmax(-1), tol=2e-11
    ),
    "one weight": lambda x, y, s, t: losses.divergence(x, y, 0.5, b=t.exp(), tol=1e-10),
}


@pytest.mark.parametrize("function", ENTROPIC.values(), ids=ENTROPIC)
def test_entropic_costs_pass_gradcheck(function, draw):
    gradcheck(function, draw(4, 2), draw(3, 2), draw(4), draw(3))


def test_entropic_costs_of_many_problems_pass_gradcheck(draw):
    gradcheck(
        lambda x, y: losses.transport_cost(x, y, reg=0.5, tol=2e-11),
        draw(2, 1, 3, 2),
        draw(2, 3, 2),
    )


@pytest.mark.parametrize("metric", ["sqeuclidean", "euclidean", "cityblock", "cosine"])
def test_exact_costs_pass_gradcheck_away_from_kinks(metric, draw):
    def function(x, y, s, t):
        return losses.transport_cost(x, y, s.softmax(-1), t.softmax(-1), metric=metric)

    assert torch.autograd.gradcheck(
        function, (draw(5, 2), draw(4, 2), draw(5), draw(4)), eps=1e-6, atol=1e-5
    )


def test_many_problems_are_those_one_by_one(draw):
    x, y, b = draw(3, 1, 5, 2), draw(4, 6, 2), torch.rand(6, dtype=torch.float64).softmax(0)
    value, info = losses.transport_cost(x, y, b=b, return_info=True)
    assert value.shape == info.gap.shape == (3, 4)
    assert [p.shape for p in info.potentials] == [(3, 4, 5), (3, 4, 6)]
    value.square().sum().backward()
    dx, dy = x.grad.clone(), y.grad.clone()
    x.grad = y.grad = None
    total = 0.0
    for i in range(3):
        for j in range(4):
            one = losses.transport_cost(x[i, 0], y[j], b=b)
            assert one == value[i, j]
            total = total + one.square()
    total.backward()
    torch.testing.assert_close(x.grad, dx)
    torch.testing.assert_close(y.grad, dy)


def test_info_is_the_certificate_of_a_solve(draw):
    x, y = draw(300, 2), draw(280, 2)
    value, info = losses.transport_cost(x, y, return_info=True)
    result = epsilot.solve_sample(x.detach(), y.detach(), rtol=1e-6)
    assert value.item() == result.value
    assert info.gap.item() == result.gap <= 1e-6 * result.value
    for mine, theirs in zip(info.potentials, result.potentials, strict=True):
        np.testing.assert_array_equal(mine.numpy(), theirs)
        assert not mine.requires_grad
    shown = repr(info)
    assert f"gap={info.gap}" in shown
    assert "shapes (300,) and (280,)" in shown
    assert len(shown) < 120


def test_a_divergence_is_made_of_three_solves(draw):
    x, y = draw(6, 2).detach(), draw(5, 2).detach()
    cost, of_x, of_y = (
        epsilot.solve_sample(p, q, reg=0.5, tol=1e-9).value for p, q in ((x, y), (x, x), (y, y))
    )
    found = losses.divergence(x, y, 0.5).item()
    assert found == pytest.approx(cost - (of_x + of_y) / 2, abs=1e-7)
    assert found == pytest.approx(losses.divergence(y, x, 0.5).item(), abs=1e-7)
    assert found > 0.01


def test_the_gap_of_a_divergence_bounds_its_error(draw):
    x, y = draw(20, 2), draw(15, 2)
    rough, info = losses.divergence(x, y, 0.5, tol=1e-2, return_info=True)
    fine = losses.divergence(x, y, 0.5, tol=1e-9)
    assert 1e-9 < abs(rough - fine) <= info.gap <= 0.02
    assert losses.divergence(x, x, 0.1).abs() < 1e-6


#: types of x and y, of the value
TYPES = [
    (torch.float32, torch.float32, torch.float32),
    (torch.float64, torch.float32, torch.float64),
    (torch.bfloat16, torch.bfloat16, torch.bfloat16),
    (torch.float16, torch.float32, torch.float32),
]


@pytest.mark.parametrize(("first", "second", "promoted"), TYPES, ids=str)
def test_types_are_kept(first, second, promoted, draw):
    x, y = (draw(4, 2).detach().to(kind).requires_grad_() for kind in (first, second))
    a = torch.full((4,), 0.25, dtype=first)
    value = losses.transport_cost(x, y, a)
    assert value.dtype == promoted
    value.backward()
    assert (x.grad.dtype, y.grad.dtype) == (first, second)


def test_gradients_are_not_differentiated_again(draw):
    x = draw(4, 2)
    (slope,) = torch.autograd.grad(losses.transport_cost(x, draw(4, 2)), x, create_graph=True)
    with pytest.raises(RuntimeError):
        slope.sum().backward()


def test_only_wanted_slopes_are_computed(draw, monkeypatch):
    def never(*_, **__):
        raise AssertionError

    monkeypatch.setattr("epsilot.frameworks.losses.point_slopes", never)
    losses.transport_cost(draw(4, 2).detach(), draw(4, 2).detach(), draw(4).softmax(0)).backward()


def test_partners(draw):
    x, y = draw(3, 50, 2), draw(3, 50, 2)
    index, gap = losses.match(x, y, return_info=True)
    assert index.shape == (3, 50)
    assert gap.shape == (3,)
    paired = y.gather(1, index[..., None].expand(-1, -1, 2))
    torch.testing.assert_close(
        (x - paired).square().sum((1, 2)) / 50, losses.transport_cost(x, y), rtol=1e-12, atol=0
    )
    assert losses.match(x[0, :4], y[0, :7]).shape == (4,)


#: how it is called wrongly, the sentence
REFUSED = [
    (lambda x: losses.transport_cost(x.detach().numpy(), x), "x is of type ndarray; it must be a"),
    (lambda x: losses.transport_cost(x.long(), x), "x is of type torch.int64"),
    (lambda x: losses.transport_cost(x, x[:, :1]), "both must live in one space"),
    (lambda x: losses.transport_cost(x, x, x[:3, 0]), "a has shape (3,); it must be (..., 4)"),
    (lambda x: losses.transport_cost(x, x, metric="l3"), "metric is 'l3'; it must be one of"),
    (lambda x: losses.transport_cost_matrix(-x, x[0], x[0]), "a has shape (2,)"),
    (lambda x: losses.divergence(x, x, -1.0), "reg is -1.0"),
    (lambda x: losses.divergence(x, x, None), "reg is None; it must be a positive finite number"),
    (lambda x: losses.transport_cost_matrix(1e264 + 0 * x, reg=2.3e-308), "reg is 2.3e-308 for"),
    (lambda x: losses.divergence(1e100 * x, 1e100 * x, 1e-300), "reg is 1e-300 for costs of size"),
    (lambda x: epsilot.solve(x), "M requires a gradient, which would be lost; use epsilot.torch"),
    (lambda x: epsilot.solve(x.detach().to("meta")), "M is of type torch.float64"),
]


@pytest.mark.parametrize(("call", "sentence"), REFUSED)
def test_refusals_are_sentences(call, sentence, draw):
    with pytest.raises(epsilot.InvalidProblem) as caught:
        call(draw(4, 2))
    assert sentence in str(caught.value)


def test_tensors_are_read_by_every_solve(draw):
    M = draw(3, 4, 5).detach()
    assert epsilot.solve(M[0], rtol=1e-9).value == pytest.approx(epsilot.solve_batch(M).value[0])
    a, b = (torch.full((n,), 1 / n) for n in (4, 5))  # float32, of totals that differ by rounding
    assert epsilot.solve(M[0], a, b).converged
    assert epsilot.pairwise(torch.eye(3), torch.ones(3, 3) - torch.eye(3)).value.tolist() == [1] * 3


def test_examples():
    assert doctest.testmod(losses).failed == 0
