"""A misspelt or foreign argument is answered by the name that is meant, for every function."""

import inspect
import pickle

import numpy as np
import pytest

import epsilot
from epsilot import applications

X = np.random.default_rng(0).random((5, 2))
M, H, IMAGES = np.eye(3), np.full((2, 3), 1 / 3), np.full((2, 3, 3), 1 / 9)
FUNCTIONS = [name for name in epsilot.__all__ if inspect.isfunction(getattr(epsilot, name))]
#: Arguments with which each function would run.
GOOD = {
    "barycenter": (H, M),
    "barycenter_grid": (IMAGES,),
    "barycenter_sample": ([X, X], 3),
    "certify": (M,),
    "exact": (M,),
    "gromov_bounds": (M, M),
    "methods": (),
    "pairwise": (H, M),
    "round_plan": (M / 3, H[0], H[0]),
    "solve": (M,),
    "solve_batch": ([M],),
    "solve_graph": (M, [1, 0, 0], [0, 0, 1]),
    "solve_grid": (IMAGES[0], IMAGES[1]),
    "solve_gromov": (X, X),
    "solve_sample": (X, X),
    "solve_sample_batch": ([X], [X]),
    "warmup": (),
    "wasserstein": (X, X),
    "wasserstein_1d": (X[:, 0], X[:, 1]),
    "wasserstein_grid": (IMAGES[0], IMAGES[1]),
}


def refusal(function, *args, **keywords):
    with pytest.raises(TypeError) as caught:
        function(*args, **keywords)
    return str(caught.value)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_every_function_refuses_an_unknown_argument_by_its_own_name(name):
    function = getattr(epsilot, name)
    said = refusal(function, *GOOD[name], zzz=1)
    assert said == f"{name}() has no argument 'zzz'; leave it out (see help)."


@pytest.mark.parametrize(
    ("name", "keyword", "meant"),
    [
        ("solve", "verbose", "progress"),
        ("solve_sample", "metricc", "metric"),
        ("solve_sample", "max_dist", "max_distance"),
        ("solve_grid", "verbose", "progress"),
        ("wasserstein", "metricc", "metric"),
        ("barycenter", "verbose", "progress"),
        ("barycenter", "weigths", "weights"),
        ("solve_gromov", "timeout", "max_seconds"),
        ("solve_graph", "weigth", "weight"),
        ("certify", "potential", "potentials"),
        ("warmup", "verbose", "progress"),
    ],
)
def test_the_argument_that_is_meant_is_named(name, keyword, meant):
    said = refusal(getattr(epsilot, name), *GOOD[name], **{keyword: True})
    assert said == f"{name}() has no argument {keyword!r}; did you mean {meant}?"


def test_losses_and_applications_name_themselves():
    pytest.importorskip("torch")
    import torch

    import epsilot.torch

    x = torch.rand(4, 2)
    said = refusal(epsilot.torch.transport_cost, x, x, metricc="euclidean")
    assert said == "transport_cost() has no argument 'metricc'; did you mean metric?"
    diagram = np.array([[0.0, 1.0]])
    said = refusal(applications.persistence_distance, diagram, diagram, ordre=2)
    assert said == "persistence_distance() has no argument 'ordre'; did you mean order?"


@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_keep_their_signature_and_can_be_sent_to_processes(name):
    function = getattr(epsilot, name)
    assert pickle.loads(pickle.dumps(function)) is function
    assert function.__doc__
    names = inspect.signature(function).parameters
    assert "args" not in names
