"""Checkpoints that are not believed, starts that are stages of the run, signals that end it."""

import json
import signal

import numpy as np
import ot
import pytest

import epsilot
from epsilot import InvalidProblem
from epsilot.engine import starts
from sample_problems import images
from tuning import tune

COST, A, B = images(8)
RANDOM = np.random.default_rng(15).random((20, 24))

GOALS = [
    {"reg": 0.2},
    {"reg": 0.05},
    {"reg": 0.2, "tol": 1e-3},
    {"eps": 0.01},
    {"eps": 0.1, "stop": "paper"},
    {"rtol": 0.05},
]


@pytest.mark.parametrize("first", GOALS, ids=str)
@pytest.mark.parametrize("second", GOALS, ids=str)
def test_a_checkpoint_knows_its_goal(first, second, tmp_path):
    path = tmp_path / "run.npz"
    keywords = {"method": "sinkhorn", "on_limit": "ignore"}
    epsilot.solve(RANDOM, **first, **keywords, max_iter=3, checkpoint=path)
    if first == second:
        assert epsilot.solve(RANDOM, **second, **keywords, resume=path).converged
        return
    with pytest.raises(InvalidProblem, match=r"was saved with goal .*; resume with the same"):
        epsilot.solve(RANDOM, **second, **keywords, resume=path)


def rewrite(path, **changes):
    """Change arrays or numbers of the header of a file, as an editor of it would."""
    with np.load(path) as file:
        arrays = dict(file)
    header = json.loads(str(arrays["header"]))
    for name, value in changes.items():
        if name in header:
            header[name] = value
        elif value is None:
            del arrays[name]
        else:
            arrays[name] = value(arrays[name])
    arrays["header"] = np.array(json.dumps(header))
    np.savez(path, **arrays)


EDITS = {
    "bounds": {"upper": 0.0, "lower": 0.0},
    "NaN counter": {"seconds": float("nan")},
    "negative counter": {"n_iter": -5},
    "shortened": {"state.row": lambda x: x[:-1]},
    "other type": {"state.lam": lambda x: x.astype(np.float32)},
    "no plan": {"plan.s": None},
    "no state": {"state.lam": None},
    "scaled plan": {"plan.s": lambda x: 2 * x},
    "raised potentials": {"best.f": lambda x: x + 1},
    "another generator": {"rng": {"bit_generator": "MT19937"}},
}


@pytest.fixture
def spoil(monkeypatch):
    """Return a function that changes a checkpoint, with a digest that fits or one that does not."""

    def change(path, edit, is_signed):
        rewrite(path, **edit)
        if is_signed:
            monkeypatch.setattr(
                "epsilot.engine.storage._digest", lambda text, arrays: _stored(path)
            )

    def _stored(path):
        with np.load(path) as file:
            return str(file["digest"])

    return change


@pytest.mark.parametrize("is_signed", [False, True], ids=["caught", "signed"])
@pytest.mark.parametrize("edit", EDITS)
def test_a_changed_checkpoint_is_refused_or_proved_again(edit, is_signed, spoil, tmp_path):
    path = tmp_path / "run.npz"
    goal = {"eps": 1e-3, "method": "sinkhorn", "on_limit": "ignore"}
    epsilot.solve(RANDOM, **goal, max_iter=40, checkpoint=path)
    spoil(path, EDITS[edit], is_signed)
    if is_signed and edit == "bounds":  # they are not believed
        result = epsilot.solve(RANDOM, **goal, resume=path)
        assert result.lower_bound <= float(ot.emd2([], [], RANDOM)) + 1e-12 <= result.value + 2e-12
        assert result.value - result.lower_bound <= 1e-3
        return
    with pytest.raises(InvalidProblem, match=r"run\.npz"):
        epsilot.solve(RANDOM, **goal, resume=path)


@pytest.mark.parametrize(
    ("method", "field"),
    [
        ("apdagd", "beta"),
        ("aam", "weight_sum"),
        ("accelerated_sinkhorn", "theta"),
        ("hybrid_primal_dual", "sigma"),
    ],
)
def test_numbers_without_a_root_in_a_signed_checkpoint_are_refused(method, field, spoil, tmp_path):
    path = tmp_path / "run.npz"
    goal = {"eps": 1e-3, "method": method, "on_limit": "ignore", "max_iter": 30}
    epsilot.solve(RANDOM, **goal, checkpoint=path)
    spoil(path, {f"state.{field}": lambda x: np.array(-1e300)}, True)
    with pytest.raises(InvalidProblem, match=r"run\.npz cannot be resumed"):
        epsilot.solve(RANDOM, **{**goal, "max_iter": 60}, resume=path)


# -- a start is a stage of the run -----------------------------------------------------------------


@pytest.fixture
def small_stages(monkeypatch):
    tune(monkeypatch, starts, n_cells=64)
    tune(monkeypatch, starts, min_points_of_coarse=200)


def clouds():
    return np.random.default_rng(2).normal(size=(2, 300, 2))


@pytest.mark.usefixtures("small_stages")
def test_a_start_counts_its_work_and_heeds_the_callback():
    seen = []
    X, Y = clouds()
    result = epsilot.solve_sample(
        X, Y, lazy=True, rtol=0.1, callback=lambda record: seen.append(record) or True
    )
    assert result.status is epsilot.Status.CALLBACK
    assert seen[0].n_iter == 0
    assert result.n_iter == 0
    assert result.work.operations > 0


@pytest.mark.usefixtures("small_stages")
def test_a_start_heeds_time_and_interruption():
    X, Y = clouds()
    result = epsilot.solve_sample(X, Y, lazy=True, rtol=1e-9, max_seconds=0, on_limit="ignore")
    assert result.status is epsilot.Status.MAX_SECONDS
    assert result.n_iter == 0

    presses = iter([signal.SIGINT])

    def interrupt(record):
        for number in presses:
            signal.raise_signal(number)

    result = epsilot.solve_sample(X, Y, lazy=True, rtol=1e-9, callback=interrupt, on_limit="ignore")
    assert result.status is epsilot.Status.INTERRUPTED
    assert result.n_iter == 0


@pytest.mark.usefixtures("small_stages")
def test_a_cloud_starts_alike_however_it_is_passed():
    X, Y = clouds()
    one = epsilot.solve_sample(X, Y, lazy=True, rtol=0.01)
    two = epsilot.solve(epsilot.PointCloud(X, Y, single=True), rtol=0.01)
    assert one.work.operations == two.work.operations
    assert one.value == two.value


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_end_a_run_with_its_best_answer(number):
    before = signal.getsignal(number)
    result = epsilot.solve(
        COST,
        A,
        B,
        eps=1e-9,
        method="sinkhorn",
        on_limit="ignore",
        callback=lambda record: signal.raise_signal(number),
    )
    assert result.status is epsilot.Status.INTERRUPTED
    assert signal.getsignal(number) is before
