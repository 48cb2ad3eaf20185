"""Compile ahead of use, by names of functions and methods."""

import pytest

import epsilot
from epsilot.api.warmup import _calls
from epsilot.solvers import REGISTRY


def test_named_kernels_are_compiled():
    seconds = epsilot.warmup("solve_batch", "solve", progress=True)
    assert list(seconds) == ["solve_batch", "solve"]
    assert epsilot.warmup("solve_batch") == {"solve_batch": 0.0}


@pytest.mark.parametrize("name", ["solv", 3])
def test_unknown_names_are_refused(name):
    with pytest.raises(epsilot.InvalidProblem, match=r"a name of warmup is .*'sinkhorn'"):
        epsilot.warmup(name)


def test_every_function_and_every_method_has_a_call():
    functions = {x for x in epsilot.__all__ if x.startswith(("solve", "barycenter", "pairwise"))}
    assert functions | set(REGISTRY) | {"certify"} <= set(_calls())
