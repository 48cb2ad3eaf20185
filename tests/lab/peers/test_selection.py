"""Selections of the benchmark: tasks, expected failures and overrides."""

import pytest
from peer_lines import entropic

from epsilot.errors import InvalidProblem
from epsilot_lab.peers.selection import (
    FULL,
    QUICK,
    PeerTask,
    SelectionOverrides,
    is_worth_trying,
    selected,
)
from epsilot_lab.peers.solvers import SOLVERS, BenchmarkSolver, RelativeSetting


def task(reg=0.01, size=256, repeat=0, seed=0):
    return PeerTask("images", size, seed, "sinkhorn", RelativeSetting(None, reg, 0.3), repeat, 1.0)


@pytest.mark.parametrize(
    ("known", "wanted", "expected"),
    [
        ([], task(), True),
        ([entropic(0.1, status="timeout")], task(), False),
        ([entropic(0.1, status="timeout")], task(size=1024), False),
        ([entropic(0.1, status="timeout", size=1024)], task(), True),
        ([entropic(0.001, status="timeout")], task(), True),
        ([entropic(0.1, error=1e-3)], task(), False),
        ([entropic(0.1, error=1e-3)], task(seed=1), True),
        ([entropic(0.1, error=2e-3)], task(), True),
        ([entropic(0.1, error=0.2), entropic(0.01, error=1e-3)], task(repeat=1), True),
        ([entropic(0.1, error=0.2), entropic(0.01, error=1e-3)], task(0.1, repeat=1), False),
    ],
)
def test_what_cannot_matter_is_not_tried(known, wanted, expected):
    assert is_worth_trying(wanted, known, (0.1, 0.001, 1e-6)) is expected


def test_rounds_begin_with_the_reference_and_turn():
    selection = selected(QUICK, SelectionOverrides(families=("images",), sizes=(256,), n_seeds=1))
    tasks = selection.tasks()
    assert tasks[0].is_reference
    first = [t.solver for t in tasks if t.repeat == 0]
    second = [t.solver for t in tasks if t.repeat == 1]
    assert first[: 1 + len(QUICK.rtols)] == ["emd2"] + ["epsilot"] * len(QUICK.rtols)
    assert second[0] == selection.solvers[1]
    assert sorted(first) == sorted(second)
    assert len({str(t.identity) for t in tasks}) == len(tasks)


def test_large_sizes_are_measured_less_often():
    tasks = selected(FULL, SelectionOverrides()).tasks()
    assert {t.seed for t in tasks if t.size > 2304} == {0}
    assert {t.repeat for t in tasks if t.size > 4096} == {0}
    assert {t.family for t in tasks if t.size > 1024 and t.is_entropic} == {
        "images",
        "points2-squared",
    }


def test_settings_scale_with_the_answer():
    assert RelativeSetting(None, 0.1, 0.3).absolute(2.0, 4.0)[1:] == pytest.approx(
        (0.2, 0.015, 0.3)
    )
    assert RelativeSetting(0.01).absolute(2.0, 4.0).rtol == 0.01


@pytest.mark.parametrize(
    ("overrides", "message"),
    [
        (SelectionOverrides(solvers=("emd3",)), "solver 'emd3' is unknown; .*did you mean emd2"),
        (SelectionOverrides(families=("pictures",)), "problem 'pictures' is unknown"),
        (SelectionOverrides(sizes=(2,)), "the size is 2; it must be between 4 and 20000"),
        (SelectionOverrides(rtols=(0.0,)), "the rtol is 0"),
        (SelectionOverrides(rtols=(float("nan"),)), "the rtol is nan"),
        (SelectionOverrides(time_limit=0.0), "the time limit is 0;"),
        (SelectionOverrides(time_limit=1e9), r"the time limit is 1e\+09"),
    ],
)
def test_bad_wishes_are_refused(overrides, message):
    with pytest.raises(InvalidProblem, match=message):
        selected(QUICK, overrides)


def test_a_peer_that_is_not_installed_is_refused_by_name_and_left_out_by_default(monkeypatch):
    gone = BenchmarkSolver("gone", "Gone", "entropic", "x:y", "no_such_package_here", "gone-ot")
    monkeypatch.setitem(SOLVERS, "gone", gone)
    assert gone.version == "not installed"
    assert "gone" not in selected(QUICK, SelectionOverrides()).solvers
    with pytest.raises(InvalidProblem, match="pip install gone-ot"):
        selected(QUICK, SelectionOverrides(solvers=("gone",)))


def test_we_and_the_reference_always_take_part():
    assert selected(QUICK, SelectionOverrides(solvers=("sinkhorn",))).solvers == (
        "epsilot",
        "emd2",
        "sinkhorn",
    )
