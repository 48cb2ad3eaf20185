"""When η and ε fall."""

from epsilot.engine.goal import Goal
from epsilot.engine.run_state import RunState
from epsilot.engine.schedules import EpsilonRefinement
from epsilot.problems.problem import make_problem
from epsilot.solvers.base import Pace, Signal
from sample_problems import points


def test_refinement_falls_only_when_a_stage_is_over():
    problem = make_problem(*points())
    schedule = EpsilonRefinement(problem, Goal(rtol=0.1), Pace(start=0.0, factor=4.0))
    first = schedule.first()
    independent = problem.p @ problem.geometry.block(0, 24) @ problem.q
    assert 0 < first.epsilon <= 0.25 * independent
    run = RunState(upper=2.0, lower=2.0 - 2 * first.epsilon)
    busy, finished = Signal(), Signal(is_finished=True)
    assert schedule.after(first, busy, run) is None
    assert schedule.after(first, finished, run).epsilon == max(first.epsilon / 4, 0.1 * run.lower)
    run = RunState(upper=1e-3, lower=1e-3 - first.epsilon / 2)
    assert schedule.after(first, busy, run).epsilon == first.epsilon / 8
    assert schedule.at(first.epsilon) == first
    absolute = EpsilonRefinement(problem, Goal(eps=0.3), Pace(start=0.0))
    assert absolute.first().epsilon == 0.3
    assert absolute.after(absolute.first(), finished, RunState(upper=1.0, lower=0.5)) is None
