"""The loss as a module of PyTorch."""

import numpy as np
import pytest

import epsilot

torch = pytest.importorskip("torch")
import epsilot.torch  # noqa: E402

X = torch.from_numpy(np.random.default_rng(0).random((4, 6, 2)))
Y = torch.from_numpy(np.random.default_rng(1).random((4, 5, 2)))
CASES = [
    ({}, epsilot.torch.transport_cost),
    ({"metric": "euclidean", "reg": 0.1}, epsilot.torch.transport_cost),
    ({"unbalanced": 1.0}, epsilot.torch.transport_cost),
    ({"debias": True, "reg": 0.2}, epsilot.torch.divergence),
]


@pytest.mark.parametrize(("keywords", "function"), CASES)
def test_the_module_is_the_function(keywords, function):
    given = {name: value for name, value in keywords.items() if name != "debias"}
    expected = function(X, Y, **given)
    for reduction, reduced in (("none", expected), ("sum", expected.sum())):
        loss = epsilot.torch.TransportLoss(reduction=reduction, **keywords)
        torch.testing.assert_close(loss(X, Y), reduced, rtol=0, atol=0)
    points = X.clone().requires_grad_()
    epsilot.torch.TransportLoss(**keywords)(points, Y).backward()
    again = X.clone().requires_grad_()
    function(again, Y, **given).mean().backward()
    torch.testing.assert_close(points.grad, again.grad, rtol=0, atol=0)


def test_weights_and_a_training_step():
    model = torch.nn.Linear(2, 2).double()
    loss = epsilot.torch.TransportLoss()
    a = torch.full((6,), 1 / 6, dtype=torch.float64)
    optimiser = torch.optim.SGD(model.parameters(), lr=0.1)
    values = []
    for _ in range(5):
        optimiser.zero_grad()
        value = loss(model(X[0]), Y[0], a)
        value.backward()
        optimiser.step()
        values.append(value.item())
    assert values[-1] < values[0]


@pytest.mark.parametrize(
    ("keywords", "words"),
    [
        ({"debias": True}, "without reg"),
        ({"reduction": "max"}, "reduction is 'max'"),
        ({"return_info": True}, "one tensor"),
        ({"metric": "haversine"}, "metric"),
        ({"blur": 0.1}, "no argument 'blur'"),
        ({"debias": True, "reg": 0.1, "mass": 0.5}, "takes no mass"),
    ],
)
def test_wrong_keywords_are_rejected_when_the_module_is_made(keywords, words):
    with pytest.raises(ValueError, match=words):
        epsilot.torch.TransportLoss(**keywords)


def test_a_module_shows_its_keywords():
    loss = epsilot.torch.TransportLoss(reg=0.1, debias=True, reduction="sum")
    assert repr(loss) == "TransportLoss(debias=True, reduction='sum', reg=0.1)"
