"""The NumPy version of PDASMD-B is the compiled one: same draws, same plans, same end."""

import numpy as np
import pytest

import epsilot
from epsilot.problems.problem import make_problem
from epsilot.solvers.pdasmd import PDASMD
from epsilot_lab.instances import images
from epsilot_lab.paper.numpy_pdasmd import Iterate, NumpyTask, Settings, outer_loop


@pytest.mark.parametrize(
    ("batch_size", "smoothness"), [(1, "sharp"), (1, "paper"), (3, "sharp"), (4, "paper")]
)
def test_iterates_are_those_of_the_compiled_method(batch_size, smoothness):
    M, a, b = images(4, 0)
    constant = 1.0 if smoothness == "sharp" else 5.0
    settings = Settings.of(M, a, b, 0.2, batch_size, constant)
    problem = make_problem(M, a, b)
    solver = PDASMD(batch_size=batch_size, smoothness=smoothness).resolved("paper", problem)
    target, tolerance = solver.published(problem, 0.2)
    np.testing.assert_allclose(settings.p, target.p, rtol=1e-14)
    assert (settings.eta, settings.tolerance) == pytest.approx((target.eta, tolerance), rel=1e-14)
    mine, theirs = np.random.default_rng(7), np.random.default_rng(7)
    at, (state, _) = Iterate.zero(a.size), solver.init(target, theirs)
    for _ in range(20):
        outer_loop(settings, at, mine)
        solver.step(target, state, theirs)
        np.testing.assert_allclose(at.snap, state.lam, atol=1e-12)
        np.testing.assert_allclose(at.z, state.z, atol=1e-12)
    np.testing.assert_allclose(
        at.plan_sum / at.weight_sum, state.plan_sum / state.weight_sum, atol=1e-13
    )


def test_it_ends_where_the_compiled_method_does():
    task = NumpyTask("synthetic", 3, 2, 0.4, 2)
    line = task.line()
    result = epsilot.solve(
        *images(3, 2), eps=0.4, method="pdasmd", stop="paper", seed=2, batch_size=2,
        smoothness="sharp",
    )  # fmt: skip
    assert line["n_iter"] == result.n_iter
    assert line["is_certified"]
    assert line["value"] == pytest.approx(result.value, abs=line["gap"])
    assert {name: line[name] for name in task.identity} == task.identity
