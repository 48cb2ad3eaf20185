"""PDASMD in any norm and with any mirror map: beside the general algorithm, and to ε."""

import numpy as np
import pytest
from by_hand import small, start, synthetic

import epsilot
from epsilot.engine.result import Status
from epsilot.finite_sum import EUCLIDEAN, EntropicTransport, Mirror, euclidean, minimize, p_norm
from epsilot.solvers import make_solver

#: w = Σ cosh x, which is 1-strongly convex in l2 and l∞.
COSH = Mirror(np.sinh, np.arcsinh, name="cosh")
CASES = [
    ("linf", EUCLIDEAN),
    ("l2", COSH),
    ("l1", euclidean(5, "l1")),
    ("l1", p_norm(5, "l1")),
    ("l1.5", p_norm(5, "l1.5")),
    ("l4", "euclidean"),
]


@pytest.mark.parametrize("batch_size", [1, 3])
@pytest.mark.parametrize(("norm", "mirror"), CASES)
def test_the_solver_follows_the_general_algorithm(norm, mirror, batch_size):
    problem = small()
    options = {"norm": norm, "mirror": mirror, "batch_size": batch_size, "smoothness": "sharp"}
    solver, state, rng = start(make_solver("pdasmd", options), problem)
    for _ in range(6):
        solver.step(problem, state, rng)
    general = minimize(
        EntropicTransport.of(problem),
        norm=norm,
        mirror=None if isinstance(mirror, str) else mirror,
        batch_size=batch_size,
        n_outer=6,
    )
    np.testing.assert_allclose(state.lam, general.lam, atol=1e-13)
    np.testing.assert_allclose(state.plan_sum / state.weight_sum, general.x, atol=1e-13)


def test_a_map_that_is_the_euclidean_one_takes_the_compiled_steps():
    M, a, b = synthetic(3, 0)
    own = Mirror(lambda x: x, lambda x: x, name="mine")
    arguments = {"eps": 0.5, "method": "pdasmd", "stop": "paper", "seed": 2}
    compiled, ours = (epsilot.solve(M, a, b, **arguments, mirror=m) for m in ("euclidean", own))
    assert ours.n_iter == compiled.n_iter
    np.testing.assert_allclose(ours.plan, compiled.plan, atol=1e-13)
    assert str(ours.options["mirror"]) == "Mirror(name='mine')"


@pytest.mark.parametrize("stop", ["paper", "certificate"])
@pytest.mark.parametrize(("norm", "mirror"), [("l1.5", p_norm(9, "l1.5")), ("linf", COSH)])
def test_other_maps_reach_eps(norm, mirror, stop):
    M, a, b = synthetic(3, 0)
    result = epsilot.solve(
        M, a, b, eps=0.5, method="pdasmd", norm=norm, mirror=mirror, stop=stop, on_limit="raise"
    )
    assert result.gap <= 0.5
    assert result.status in (Status.PUBLISHED_STOP, Status.CERTIFIED)


def test_a_run_with_a_map_can_be_resumed_and_saved(tmp_path):
    M, a, b = synthetic(3, 0)
    run = {"eps": 0.3, "method": "pdasmd", "stop": "paper", "mirror": COSH, "on_limit": "ignore"}
    whole = epsilot.solve(M, a, b, **run)
    path = tmp_path / "run.npz"
    epsilot.solve(M, a, b, **run, max_iter=whole.n_iter // 2, checkpoint=path)
    resumed = epsilot.solve(M, a, b, **run, resume=path)
    np.testing.assert_array_equal(resumed.plan, whole.plan)
    other = {**run, "mirror": Mirror(np.sinh, np.arcsinh, name="another")}
    with pytest.raises(epsilot.InvalidProblem, match="options"):
        epsilot.solve(M, a, b, **other, resume=path)
    whole.save(tmp_path / "result.npz")


def test_a_map_must_be_one():
    with pytest.raises(epsilot.InvalidProblem, match=r"mirror is 3; .* a string or a Mirror"):
        epsilot.solve(np.eye(2), eps=0.1, method="pdasmd", mirror=3)
