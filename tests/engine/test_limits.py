"""Time that is up in the middle of a step leaves a proved answer, and a run that can go on."""

import itertools
import signal
from functools import partial

import numpy as np
import pytest

import epsilot
from epsilot import Status, deadline, parallel
from epsilot.deadline import OutOfTime
from epsilot.engine import driver, starts
from epsilot.engine import execute as executing
from epsilot.engine.clock import TUNING, Clock
from epsilot.engine.reserve import reserve
from epsilot.engine.run_state import RunState
from epsilot.problems.balanced import objective_of
from epsilot.problems.objective import crude_plan, crude_potentials
from epsilot.problems.problem import make_problem
from epsilot.problems.work import Work
from sample_problems import trace
from tuning import tune

RNG = np.random.default_rng(29)
A, B = RNG.dirichlet(np.ones(12)), RNG.dirichlet(np.ones(12))
X, Y = RNG.normal(size=(2, 12, 2))
GEOMETRIES = {
    "dense": epsilot.Dense(RNG.random((12, 12))),
    "cloud": epsilot.PointCloud(X, Y),
    "grid": epsilot.Grid((4, 3), metric="cityblock"),
}
METHODS = {entry.name: entry for entry in epsilot.methods()}
KINDS = {
    "balanced": {"rtol": 1e-3},
    "entropic": {"reg": 0.05},
    "partial": {"mass": 0.6, "rtol": 1e-3},
    "entropic partial": {"mass": 0.6, "reg": 0.05},
    "TV": {"unbalanced": 0.3, "unbalanced_type": "tv", "rtol": 1e-3},
    "TV, one side kept": {"unbalanced": (0.3, np.inf), "unbalanced_type": "tv", "rtol": 1e-3},
    "entropic TV": {"unbalanced": 0.3, "unbalanced_type": "tv", "reg": 0.05},
    "KL": {"unbalanced": 0.3, "rtol": 1e-2},
    "KL, one side kept": {"unbalanced": (np.inf, 0.3), "rtol": 1e-2},
    "entropic KL": {"unbalanced": 0.3, "reg": 0.05},
}


def runs():
    """Yield every method on every geometry it serves, and every kind by its own method."""
    for name, entry in METHODS.items():
        if entry.costs == "any":
            own = KINDS["KL"] if "unbalanced" in name else KINDS["balanced"]
            own = KINDS["entropic partial"] if name == "clipped_sinkhorn" else own
            yield name, "dense", own
            yield name, "cloud", own
    yield from (("auto", where, KINDS[kind]) for kind in KINDS for where in GEOMETRIES)
    yield "grid_flow", "grid", KINDS["balanced"]
    yield "sinkhorn", "grid", KINDS["balanced"]
    yield "sinkhorn", "dense", {"eps": 0.05, "stop": "paper"}


def is_served(method, where, keywords):
    """Tell whether a method takes such costs and problems."""
    try:
        epsilot.solve(GEOMETRIES[where], A, B, method=method, **keywords, **NO_STEP)
    except epsilot.InvalidProblem:
        return False
    return True


NO_STEP = {"max_iter": 0, "on_limit": "ignore"}
RUNS = [run for run in runs() if is_served(*run)]


def solve(method, where, keywords, **more):
    limits = {"max_iter": 40, "on_limit": "ignore", "n_threads": 1}
    return epsilot.solve(GEOMETRIES[where], A, B, method=method, **keywords, **limits, **more)


class Counting:
    """Stands for a clock: steps are abandoned at the k-th look at it."""

    def __init__(self, monkeypatch, k, *, proof_too):
        self.looks, self.k = 0, k
        monkeypatch.setattr(Clock, "is_late", lambda clock: self.look())
        if proof_too:
            monkeypatch.setattr(Clock, "is_over", lambda clock: self.looks > self.k)

    def look(self):
        self.looks += 1
        return self.looks > self.k


@pytest.fixture
def proved(monkeypatch):
    """Prove every answer again from its plan and potentials, beside what the run says."""
    result = executing._result

    def checked(run, objective, *others):
        upper, lower, _ = objective.prove(run.plan, run.potentials)
        assert upper == run.upper or abs(upper - run.upper) <= 1e-12 * objective.size
        assert lower >= run.lower - 1e-12 * objective.size
        return result(run, objective, *others)

    monkeypatch.setattr(executing, "_result", checked)


@pytest.mark.usefixtures("proved")
@pytest.mark.parametrize("proof_too", [False, True], ids=["proof", "no proof"])
@pytest.mark.parametrize(("method", "where", "keywords"), RUNS, ids=str)
def test_whenever_time_is_up_the_answer_is_proved_and_the_run_goes_on(
    method, where, keywords, proof_too, tmp_path, monkeypatch
):
    tune(monkeypatch, parallel, min_entries_per_thread=1)  # short passes look at the clock too
    whole = solve(method, where, keywords)
    with monkeypatch.context() as patched:
        counting = Counting(patched, np.inf, proof_too=False)
        solve(method, where, keywords)
    n_looks = counting.looks
    room = 1e-9 * max(1.0, abs(whole.value))
    for k in sorted({0, 1, 3, n_looks // 4, n_looks // 2, n_looks - 1} & set(range(n_looks))):
        path = tmp_path / f"{k}.npz"
        with monkeypatch.context() as patched:
            Counting(patched, k, proof_too=proof_too)
            part = solve(method, where, keywords, checkpoint=path)
        assert part.status in {Status.MAX_SECONDS, Status.CERTIFIED, whole.status}
        assert part.converged == (part.gap <= part.target)
        assert part.lower_bound <= whole.value + room
        assert whole.lower_bound <= part.value + room
        assert part.history[-1].upper == pytest.approx(part.value, abs=room)
        if path.exists():
            resumed = solve(method, where, keywords, resume=path)
            assert trace(resumed) == trace(whole)
            np.testing.assert_array_equal(resumed.plan, whole.plan)


@pytest.fixture
def two_stages(monkeypatch):
    """Start a cloud of 300 points from one of 64 cells, and that from one of 16."""
    sizes = {"min_points_of_coarse": 200, "min_points_of_middle": 200, "n_middle": 64}
    tune(monkeypatch, starts, n_cells=16, **sizes)
    tune(monkeypatch, parallel, min_entries_per_thread=1)
    cloud = epsilot.PointCloud(*np.random.default_rng(2).normal(size=(2, 300, 2)), single=True)
    keywords = {"method": "sinkhorn", "rtol": 1e-2, "n_threads": 1, "on_limit": "ignore"}
    return partial(epsilot.solve, cloud, multiscale=True, **keywords)


@pytest.mark.usefixtures("proved")
def test_a_start_may_be_abandoned_at_any_time(two_stages, monkeypatch):
    whole = two_stages()
    with monkeypatch.context() as patched:
        counting = Counting(patched, np.inf, proof_too=False)
        two_stages()
    for k in range(0, counting.looks, max(1, counting.looks // 8)):
        with monkeypatch.context() as patched:
            Counting(patched, k, proof_too=True)
            part = two_stages()
        assert part.lower_bound <= whole.value
        assert whole.lower_bound <= part.value


@pytest.mark.usefixtures("proved")
def test_a_start_whose_stages_have_no_time_for_a_certificate(two_stages, monkeypatch):
    monkeypatch.setattr(driver, "can_be_certified", lambda *_: False)
    found = two_stages(max_seconds=0)
    assert found.status is Status.MAX_SECONDS
    assert found.lower_bound <= two_stages().value


@pytest.mark.parametrize(("where", "kind"), list(itertools.product(GEOMETRIES, KINDS)))
def test_crude_bounds_are_proved_without_a_pass(where, kind, monkeypatch):
    found, share, n_items = [], parallel.share, []
    with monkeypatch.context() as patched:
        result = executing._result
        patched.setattr(executing, "_result", lambda *args: found.append(args) or result(*args))
        solve("auto", where, KINDS[kind])
    objective = found[0][1]

    def counted(kernel, n, n_entries, *args):
        n_items.append(n)
        share(kernel, n, n_entries, *args)

    monkeypatch.setattr(parallel, "share", counted)
    monkeypatch.setattr(epsilot.Plan, "blocks", None)  # is not called
    plan, upper, _ = crude_plan(objective)
    potentials, lower = crude_potentials(objective)
    monkeypatch.undo()
    n, m = objective.problem.shape
    assert sum(n_items) <= 3 * (n + m)  # the pairs that carry mass, looked at thrice
    proof = objective.prove(plan, potentials)
    assert proof.upper == upper
    assert lower <= proof.lower + 1e-15 * objective.size


# -- passes ----------------------------------------------------------------------------------------


def test_a_long_pass_looks_at_its_deadline_between_slices(monkeypatch):
    tune(monkeypatch, parallel, first_slice_entries=100)
    seen, looks = [], iter([False, False, True])
    with pytest.raises(OutOfTime), deadline.until(lambda: next(looks)), parallel.limit(1):
        parallel.share(lambda start, stop: seen.append((start, stop)), 10**9, 10**10)
    assert seen[0] == (0, 10)
    assert seen[1][0] == 10
    assert len(seen) == 2


@pytest.mark.parametrize("n_threads", [1, 2, 3])
def test_slices_cover_every_item_once(n_threads, monkeypatch):
    tune(monkeypatch, parallel, first_slice_entries=100)
    tune(monkeypatch, parallel, slice_seconds=1e-6)
    tune(monkeypatch, parallel, min_entries_per_thread=10)
    counts = np.zeros(997, dtype=int)

    def kernel(start, stop):
        counts[start:stop] += 1

    with deadline.until(lambda: False), parallel.limit(n_threads):
        parallel.share(kernel, counts.size, 20 * counts.size)
    assert (counts == 1).all()


def test_a_deadline_ends_with_its_block_and_an_outer_one_holds_inside():
    late = [True]
    with deadline.until(lambda: late[0]):
        with deadline.until(lambda: False), pytest.raises(OutOfTime):
            deadline.check()
        with deadline.until(None):
            deadline.check()
        late[0] = False
        deadline.check()
    late[0] = True
    deadline.check()


# -- clocks ----------------------------------------------------------------------------------------


@pytest.fixture
def now(monkeypatch):
    """A clock that the test turns."""
    seconds = [100.0]
    monkeypatch.setattr("epsilot.engine.clock.time.perf_counter", lambda: seconds[0])
    return seconds


@pytest.mark.parametrize(("limit", "room"), [(3.0, 1.0), (60.0, 6.0)])
def test_a_limit_keeps_the_time_of_a_proof_and_is_hardly_overrun(limit, room, now):
    clock = Clock(limit)
    clock.keep(1.0, 0.5)
    now[0] += limit - 1.6
    assert clock.ending() is None
    now[0] += 0.2  # another step would eat into the second that is kept
    assert clock.ending() is Status.MAX_SECONDS
    assert not clock.is_late()
    now[0] += 0.5 + TUNING.grace_seconds
    assert clock.is_late()
    assert not clock.is_over()
    now[0] += 1 + 0.5 * room
    assert clock.is_over()


def test_an_interruption_leaves_a_step_a_moment_and_a_proof_less_than_a_second(now):
    pressed = []
    clock = Clock(None, lambda: bool(pressed))
    assert clock.ending() is None
    assert clock.seconds_for_proof() == np.inf
    pressed.append(signal.SIGINT)
    assert clock.ending() is Status.INTERRUPTED
    assert not clock.is_late()
    now[0] += 0.3
    assert clock.is_late()
    assert not clock.is_over()
    now[0] += 0.6
    assert clock.is_over()


def test_compilation_is_not_counted(now):
    clock = Clock(2.0)
    now[0] += 5
    clock.pause(4.0)
    assert clock.seconds_left() == 1.0


@pytest.mark.parametrize(("share", "is_kept"), [(0.001, False), (0.5, True)])
def test_time_is_kept_for_a_certificate_only_once_steps_tell_how_long_it_takes(share, is_kept):
    needed = 10_000

    class Objective:
        @staticmethod
        def certificate_operations():
            return needed

    run = RunState(work=Work.of(vector=int(share * needed)), seconds=0.001)
    assert run.work.operations == int(share * needed)
    assert (reserve(run, Objective, Clock(10.0)) > 0) == is_kept


def test_slow_steps_do_not_end_a_run_of_points_long_before_its_limit():
    """A certificate of points in few dimensions searches trees: it takes far less than a pass."""
    X, Y = np.random.default_rng(0).random((2, 10**5, 2))
    objective = objective_of(make_problem(epsilot.PointCloud(X, Y)))
    run = RunState(work=Work.of(vector=10**10), seconds=300.0)
    assert 0 < reserve(run, objective, Clock(60.0)) < 5
