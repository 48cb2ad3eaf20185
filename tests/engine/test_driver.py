"""The one loop: what observers are told, what a start hands over, what a signal means."""

import math
from dataclasses import dataclass

import numpy as np
import pytest

import epsilot
from epsilot.display.progress import Progress
from epsilot.engine import execute as engine
from epsilot.engine import starts
from epsilot.engine.clock import Clock
from epsilot.engine.driver import Driver
from epsilot.engine.goal import make_goal, make_limits
from epsilot.engine.observers import History, Observer
from epsilot.engine.request import Request
from epsilot.engine.run_plan import make_run_plan
from epsilot.engine.run_state import RunState
from epsilot.engine.starts import Started
from epsilot.problems.balanced import objective_of
from epsilot.problems.problem import Additive, Entropic, make_problem
from epsilot.problems.work import Work
from epsilot.solvers import make_solver
from epsilot.solvers.base import Signal
from sample_problems import images
from tuning import tune

RANDOM = np.random.default_rng(15).random((20, 24))


@dataclass(frozen=True)
class Told(Observer):
    """Notes everything it is told; asks to stop at the n-th certificate."""

    events: list
    stop_at: float = math.inf

    def starting(self, record):
        self.events.append(("starting", record.n_iter))
        return False

    def stepped(self, n_iter, seconds):
        self.events.append(("stepped", n_iter))

    def evaluated(self, record):
        self.events.append(("evaluated", record.n_iter))
        return sum(name == "evaluated" for name, _ in self.events) >= self.stop_at

    def reached(self, moment):
        self.events.append(("reached", moment.run.n_iter))


def driven(request, observer, *, start=None):
    """Run a request with an observer, perhaps from another start."""
    objective = objective_of(make_problem(RANDOM))
    goal = make_goal(objective, request)
    run_plan, run = make_run_plan(objective, goal, request), RunState()
    driver = Driver(
        objective=objective,
        support=run_plan.support,
        solver=run_plan.solver,
        schedule=run_plan.schedule,
        goal=goal,
        limits=make_limits(request, run_plan.solver.patience),
        rng=np.random.default_rng(0),
        observers=[History(run), observer],
        clock=Clock(request.max_seconds),
        run=run,
    )
    return driver.drive(start(driver) if start else Started(run_plan.start.potentials))


def test_observers_are_told_of_steps_certificates_and_points_to_continue_from():
    told = Told([])
    run = driven(Request(eps=1e-3, method="sinkhorn"), told)
    steps = [n for name, n in told.events if name == "stepped"]
    evaluated = [n for name, n in told.events if name == "evaluated"]
    assert steps == list(range(1, run.n_iter + 1))
    assert evaluated == [record.n_iter for record in run.history]
    for name, n in told.events:
        if name == "evaluated":
            at = told.events.index((name, n))
            assert told.events[at - 1] == ("stepped", n)
            assert told.events[at + 1] == ("reached", n)


def test_the_last_certificate_comes_after_the_last_point_to_continue_from():
    told = Told([])
    run = driven(Request(eps=1e-12, method="sinkhorn", max_iter=7), told)
    assert run.status is epsilot.Status.MAX_ITER
    assert told.events[-2:] == [("reached", 7), ("evaluated", 7)]


@pytest.mark.parametrize("stop_at", [1, 3])
def test_any_observer_may_end_the_run(stop_at):
    run = driven(Request(eps=1e-12, method="sinkhorn"), Told([], stop_at))
    assert run.status is epsilot.Status.CALLBACK
    assert len(run.history) == stop_at


# -- starts ----------------------------------------------------------------------------------------


def two_looks(driver):
    """Return a start during which observers were told twice."""
    for _ in range(2):
        assert not driver.look()
    n, m = RANDOM.shape
    return Started((np.zeros(n), np.zeros(m)), work=Work.of(vector=5), seconds=7.0)


def test_a_start_is_timed_looked_at_and_counted():
    told = Told([])
    request = Request(eps=1e-3, method="restricted_simplex", max_seconds=60, max_iter=0)
    run = driven(request, told, start=two_looks)
    assert told.events[:2] == [("starting", 0), ("starting", 0)]
    assert run.seconds >= 7.0
    assert run.work.units["vector"] == 5


def test_coarse_problems_are_solved_within_the_time_of_the_run(monkeypatch):
    tune(monkeypatch, starts, n_cells=64)
    tune(monkeypatch, starts, n_middle=128)
    tune(monkeypatch, starts, min_points_of_middle=300)
    limits, execute = [], engine.execute

    def noted(problem, request, clock=None):
        if problem.shape[0] < 300:  # the coarse ones
            limits.append((problem.shape[0], request.max_seconds, request.seed))
        return execute(problem, request, clock)

    monkeypatch.setattr(engine, "execute", noted)
    X, Y = np.random.default_rng(2).normal(size=(2, 300, 2))
    epsilot.solve_sample(X, Y, multiscale=True, rtol=0.1, max_seconds=60, seed=3)
    (first, left, seed), (second, less, _) = limits
    assert first < second < 300
    assert 0 < less < left < 60
    assert seed == 3


def test_a_start_without_time_leaves_crude_bounds():
    run = driven(Request(eps=1e-3, method="sinkhorn"), Told([]), start=lambda driver: None)
    assert run.status is epsilot.Status.MAX_SECONDS
    assert run.n_iter == 0
    assert run.lower <= run.upper < math.inf


def test_a_live_line_beats_while_a_start_goes_on(monkeypatch):
    tune(monkeypatch, starts, n_cells=64)
    beats = []
    monkeypatch.setattr(Progress, "beat", lambda self, n_iter, seconds: beats.append(n_iter))
    X, Y = np.random.default_rng(2).normal(size=(2, 300, 2))
    result = epsilot.solve_sample(X, Y, multiscale=True, rtol=0.1, progress=True)
    assert beats[0] == 0
    assert max(beats) == result.n_iter


def test_a_resumed_run_does_not_start_again(monkeypatch, tmp_path):
    tune(monkeypatch, starts, n_cells=64)
    X, Y = np.random.default_rng(2).normal(size=(2, 300, 2))
    keywords = {"multiscale": True, "eps": 1e-3, "method": "sinkhorn", "on_limit": "ignore"}
    whole = epsilot.solve_sample(X, Y, **keywords)
    path = tmp_path / "run.npz"
    epsilot.solve_sample(X, Y, **keywords, checkpoint=path, max_iter=whole.n_iter // 2)
    monkeypatch.setattr(engine, "coarse_levels", None)
    resumed = epsilot.solve_sample(X, Y, **keywords, resume=path)
    assert resumed.value == whole.value
    assert resumed.work.operations == whole.work.operations


# -- signals ---------------------------------------------------------------------------------------


def signals(method, target):
    """Return the signals of a method before and after each of its first steps."""
    solver = make_solver(method, {}).resolved("certificate", make_problem(*images(5)))
    rng = np.random.default_rng(0)
    state, _ = solver.init(target, rng)
    found = [solver.signal(target, state)]
    for _ in range(40):
        solver.step(target, state, rng)
        found.append(solver.signal(target, state))
    return found


def test_a_signal_of_an_entropic_method_is_its_violation():
    M, a, b = images(5)
    found = signals("sinkhorn", Entropic(make_problem(M, a, b).geometry, 0.05, a, b))
    assert not any(signal.is_finished for signal in found)
    assert found[-1].violation < found[1].violation < math.inf
    assert all(signal.wants_certificate == (signal.violation == 0) for signal in found)


def test_a_simplex_wants_certificates_between_rounds_and_says_when_it_has_finished():
    M, a, b = images(5)
    geometry = make_problem(M, a, b).geometry
    found = signals("restricted_simplex", Additive(geometry, 1e-9, a, b))
    wants = [signal.wants_certificate for signal in found]
    assert not wants[0]
    assert wants.index(True) > 1
    assert found[-1].is_finished
    exact = signals("exact", Additive(geometry, 1e-9, a, b))
    assert [signal.is_finished for signal in exact[:2]] == [False, True]
    assert all(signal.violation == math.inf for signal in (*found, *exact))


@pytest.mark.parametrize(
    ("violation", "expected"), [(0.0, False), (math.inf, False), (math.nan, True)]
)
def test_only_what_was_measured_as_no_number_has_overflowed(violation, expected):
    assert Signal(violation).has_overflowed is expected
