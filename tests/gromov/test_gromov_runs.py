"""Gromov-Wasserstein on the driver: limits, interruptions, callbacks, checkpoints, threads."""

import dataclasses
import os
import signal
import threading

import numpy as np
import pytest
from gromov_problems import noisy_copy

import epsilot
from epsilot import memory
from epsilot.deadline import OutOfTime
from epsilot.errors import ConvergenceWarning, InvalidProblem, NotConverged, TooLarge
from epsilot.gromov import boxes, oracle, search, triangulation


def uniform(n=40, d=2):
    return np.random.default_rng(4).random((2, n, d))


def weighted():
    rng = np.random.default_rng(1)
    return *uniform(20), rng.dirichlet(np.ones(20)), rng.dirichlet(np.ones(20))


RUNS = {
    "triangulation": lambda **more: epsilot.solve_gromov(*uniform(), rtol=0.1, **more),
    "triangulation, weighted": lambda **more: epsilot.solve_gromov(*weighted(), rtol=0.1, **more),
    "boxes": lambda **more: epsilot.solve_gromov(*noisy_copy(30, 3), rtol=0.1, **more),
    "boxes, weighted": lambda **more: epsilot.solve_gromov(
        *weighted(), rtol=0.2, method="boxes", **more
    ),
}


def numbers(result):
    history = [(x.n_iter, x.operations, x.upper, x.lower) for x in result.history]
    return result.value, result.lower_bound, result.n_ot, result.plan.tobytes(), history


@pytest.fixture(autouse=True)
def many_steps(monkeypatch):
    monkeypatch.setattr(search, "ENTRIES_PER_STEP", 3000)


@pytest.mark.parametrize("name", RUNS)
def test_a_run_continues_to_the_same_bits(name, tmp_path):
    whole = RUNS[name]()
    assert whole.converged
    file, seen = tmp_path / "run.npz", []
    half = len(whole.history) // 2

    def stop(record):
        seen.append(record)
        return len(seen) == half

    stopped = RUNS[name](callback=stop, checkpoint=str(file), on_limit="ignore")
    assert stopped.status is epsilot.Status.CALLBACK
    assert stopped.lower_bound <= whole.value
    stopped.verify()
    assert numbers(RUNS[name](resume=str(file))) == numbers(whole)


@pytest.mark.parametrize("name", RUNS)
def test_threads_change_no_bit(name):
    found = [numbers(RUNS[name](n_threads=n)) for n in (1, 2)]
    assert found[0] == found[1]


@pytest.mark.parametrize("name", RUNS)
def test_ctrl_c_returns_bounds(name):
    def interrupt(record):
        if record.n_iter > 2:
            os.kill(os.getpid(), signal.SIGINT)

    result = RUNS[name](callback=interrupt, on_limit="ignore")
    assert result.status in (epsilot.Status.INTERRUPTED, epsilot.Status.CERTIFIED)
    assert 0 <= result.lower_bound <= result.value
    result.verify()


@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("limit", [{"max_seconds": 0}, {"max_ot": 1}, {"max_ot": 15}], ids=str)
def test_limits_leave_proved_bounds(name, limit):
    result = RUNS[name](on_limit="ignore", **limit)
    assert not result.converged
    wanted = "MAX_OT" if "max_ot" in limit else "MAX_SECONDS"
    assert result.status.name == wanted
    assert 0 <= result.lower_bound <= result.value
    assert result.n_ot <= 16 + 64
    result.verify()


@pytest.mark.parametrize("name", RUNS)
def test_full_memory_leaves_proved_bounds(name, monkeypatch):
    def ask(n_bytes, what, remedy):
        if what.endswith(("boxes", "problems")):
            n_asked.append(what)
            if len(n_asked) > 3:
                raise TooLarge(f"{what} needs too much; {remedy}.")

    n_asked = []
    monkeypatch.setattr(memory, "ask", ask)
    monkeypatch.setattr(triangulation, "FIRST_POINTS", 8)
    monkeypatch.setattr(boxes, "TUNING", dataclasses.replace(boxes.TUNING, first_boxes=8))
    result = RUNS[name](on_limit="ignore")
    assert not result.converged
    assert result.status is epsilot.Status.FINISHED
    assert 0 <= result.lower_bound <= result.value
    result.verify()


@pytest.mark.parametrize("weights", [None, np.arange(40, 80.0)], ids=["equal", "unequal"])
def test_large_clouds_are_bounded_by_known_prices_and_samples(weights, monkeypatch):
    monkeypatch.setattr(oracle, "MIN_SAMPLED", 20)
    monkeypatch.setattr(oracle, "LEAST_SAMPLE", 12)
    monkeypatch.setattr(oracle, "MIN_CLOUD_ENTRIES", 900)
    monkeypatch.setattr(oracle.GromovProblem, "is_tree", False)
    calls = []
    for name in ("rough_prices", "_match", "_run"):
        method = getattr(oracle.TransportOracle, name)
        spy = lambda self, *args, f=method, of=name: calls.append(of) or f(self, *args)  # noqa: E731
        monkeypatch.setattr(oracle.TransportOracle, name, spy)
    X, Y = uniform()
    found = [
        epsilot.solve_gromov(X, Y, weights, rtol=0.05, n_threads=n_threads) for n_threads in (1, 2)
    ]
    assert numbers(found[0]) == numbers(found[1])
    assert found[0].converged
    assert {"rough_prices", "_run"} <= set(calls)
    assert ("_match" in calls) == (weights is None)
    assert found[0].n_ot < len(found[0].cover.points) + search.MAX_DESCENT
    found[0].verify()


def test_a_run_without_a_step_is_verified_without_a_transport_problem(monkeypatch):
    result = RUNS["triangulation"](max_seconds=0, on_limit="ignore")
    monkeypatch.setattr(oracle.TransportOracle, "answer", None)
    assert result.verify().is_feasible


def test_ctrl_c_ends_a_verification(monkeypatch):
    def interrupted(*_):
        raise OutOfTime

    result = RUNS["boxes"](max_ot=40, on_limit="ignore")
    cover = dataclasses.replace(result.cover, price_rows=result.cover.price_rows * 0 - 1)
    monkeypatch.setattr(oracle.TransportOracle, "answer", interrupted)
    with pytest.raises(KeyboardInterrupt):
        dataclasses.replace(result, cover=cover).verify()


def test_limits_are_announced():
    with pytest.warns(ConvergenceWarning, match="max_ot"):
        RUNS["triangulation"](max_ot=12)
    with pytest.raises(NotConverged, match="max_ot") as caught:
        RUNS["triangulation"](max_ot=12, on_limit="raise")
    assert caught.value.result.lower_bound <= caught.value.result.value


def test_the_seed_draws_the_starts():
    X, Y = uniform()
    found = [epsilot.solve_gromov(X, Y, rtol=0.1, seed=seed) for seed in (0, 0, 1)]
    assert numbers(found[0]) == numbers(found[1]) != numbers(found[2])


def test_bounds_only_improve():
    history = RUNS["boxes"]().history
    assert len(history) > 5
    assert (np.diff([x.upper for x in history]) <= 0).all()
    assert (np.diff([x.lower for x in history]) >= 0).all()


def test_a_run_in_a_thread():
    found = []
    thread = threading.Thread(target=lambda: found.append(RUNS["triangulation"]()))
    thread.start()
    thread.join()
    assert numbers(found[0]) == numbers(RUNS["triangulation"]())


def test_files_of_other_runs_are_refused(tmp_path):
    file = str(tmp_path / "run.npz")
    RUNS["triangulation"](checkpoint=file, max_ot=30, on_limit="ignore")
    X, Y = uniform()
    with pytest.raises(InvalidProblem, match="saved with problem"):
        epsilot.solve_gromov(X, 2 * Y, rtol=0.1, resume=file)
    with pytest.raises(InvalidProblem, match="saved with goal"):
        epsilot.solve_gromov(X, Y, rtol=0.05, max_ot=30, resume=file)
    with pytest.raises(InvalidProblem, match="saved with options"):
        epsilot.solve_gromov(X, Y, rtol=0.1, starts=3, max_ot=30, resume=file)
    with pytest.raises(InvalidProblem, match="saved with method"):
        epsilot.solve_gromov(X, Y, rtol=0.1, method="boxes", resume=file)


@pytest.mark.parametrize("name", ["triangulation", "boxes"])
def test_values_of_a_file_are_proved_again(name, tmp_path, monkeypatch):
    file = str(tmp_path / "run.npz")
    RUNS[name](checkpoint=file, max_ot=30, on_limit="ignore")
    from epsilot.gromov.oracle import TransportOracle

    monkeypatch.setattr(TransportOracle, "bound", lambda self, c, prices: 1e9)
    with pytest.raises(InvalidProblem, match="do not fit together"):
        RUNS[name](max_ot=30, resume=file)


def test_the_progress_line_shows_the_gap(capfd):
    from epsilot.display import progress

    class Always(progress.Progress):
        def __init__(self, *args):
            super().__init__(*args, force=True)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(progress, "Progress", Always)
        patch.setattr(progress, "REFRESH_SECONDS", 0.0)
        RUNS["triangulation"](progress=True)
    assert "gap" in capfd.readouterr().err
