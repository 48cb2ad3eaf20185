import pytest
from peer_lines import entropic

from epsilot_lab.peers.entrants import RelativeSetting
from epsilot_lab.peers.run import FULL, QUICK, Wishes, selected
from epsilot_lab.peers.selection import PeerTask, is_worth_trying


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
    selection = selected(QUICK, Wishes(families=("images",), sizes=(256,), n_seeds=1))
    tasks = selection.tasks()
    assert tasks[0].is_reference
    first = [t.solver for t in tasks if t.repeat == 0]
    second = [t.solver for t in tasks if t.repeat == 1]
    assert first[: 1 + len(QUICK.rtols)] == ["emd2"] + ["epsilot"] * len(QUICK.rtols)
    assert second[0] == selection.solvers[1]
    assert sorted(first) == sorted(second)
    assert len({str(t.identity) for t in tasks}) == len(tasks)


def test_large_sizes_are_measured_less_often():
    tasks = selected(FULL, Wishes()).tasks()
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
