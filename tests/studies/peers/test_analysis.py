import pytest

from epsilot.studies.peers.analysis import Cells, crossover
from epsilot.studies.peers.entrants import RelativeSetting
from epsilot.studies.peers.run import FULL, QUICK, Wishes, selected
from epsilot.studies.peers.selection import PeerTask, is_worth_trying
from epsilot.studies.peers.targets import accuracy_text, judged


def line(solver="epsilot", size=256, seed=0, repeat=0, seconds=1.0, **more):
    base = {
        "family": "images", "size": size, "n": size, "seed": seed, "solver": solver,
        "rtol": 0.01 if solver == "epsilot" else None, "reg": None, "tol": None, "repeat": repeat,
        "status": "done", "seconds": seconds, "peak_mib": 1.0, "limit": 2.0, "error": 0.0,
        "gap": 0.0, "value": 1.0, "lower": 1.0, "marginal_error": 0.0, "version": "0",
    }  # fmt: skip
    return base | more


def entropic(reg, **more):
    return line("sinkhorn", reg=reg, tol=0.3, **more)


@pytest.mark.parametrize(
    ("pairs", "expected"),
    [
        ([], None),
        ([(100, 1.0, 2.0), (400, 1.0, 4.0)], 100),
        ([(100, 2.0, 1.0), (400, 4.0, 4.0)], None),
        ([(400, 1.0, 2.0), (100, 2.0, 1.0)], 200),
        ([(100, 1.0, 2.0), (200, 2.0, 1.0), (800, 1.0, 2.0)], 400),
        ([(100, 1.0, 2.0), (200, 2.0, 1.0)], None),
    ],
)
def test_crossover(pairs, expected):
    assert crossover(pairs) == (None if expected is None else pytest.approx(expected))


def test_a_ratio_is_the_median_of_the_problems_ratios():
    lines = [line(seed=k, seconds=t) for k, t in enumerate((1.0, 2.0, 10.0))]
    lines += [line("emd2", seed=k, seconds=t) for k, t in enumerate((3.0, 4.0, 5.0))]
    cell = Cells(lines).cell("images", 256, 0.01, "emd2")
    assert (cell.ratio, cell.seconds, cell.n_problems) == (2.0, 4.0, 3)


def test_the_fastest_accurate_setting_counts_with_all_its_repetitions():
    lines = [
        line(),
        entropic(0.1, seconds=0.1, error=0.02),
        entropic(0.03, seconds=0.5, error=0.009),
        entropic(0.03, seconds=0.9, error=0.009, repeat=1),
        entropic(0.01, seconds=0.8, error=0.001),
    ]
    cell = Cells(lines).cell("images", 256, 0.01, "sinkhorn")
    assert (cell.seconds, cell.settings) == (pytest.approx(0.7), "reg 0.03, tol 0.3")


def test_a_certified_solver_must_prove_its_accuracy():
    cells = Cells([line(gap=0.02, error=0.0), line("emd2")])
    assert cells.cell("images", 256, 0.01, "epsilot").failure
    assert [claim.verdict for claim in judged(cells, [line(gap=0.02)])][-1] == "does not hold"


def test_targets_are_judged_by_the_worst_problem():
    def verdicts(small, large):
        lines = [line(), line(size=1024), line("emd2", seconds=small)]
        lines += [line("emd2", size=1024, seconds=large)]
        return [claim.verdict for claim in judged(Cells(lines), lines)][:3]

    assert verdicts(0.9, 1.4) == ["holds", "holds", "not measured"]
    assert verdicts(0.8, 1.2) == ["does not hold", "does not hold", "not measured"]


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
        "images", "points2-squared",
    }  # fmt: skip


def test_settings_scale_with_the_answer():
    assert RelativeSetting(None, 0.1, 0.3).absolute(2.0, 4.0)[1:] == pytest.approx(
        (0.2, 0.015, 0.3)
    )
    assert RelativeSetting(0.01).absolute(2.0, 4.0).rtol == 0.01


def test_accuracies_in_words():
    assert [accuracy_text(r) for r in (0.1, 0.001, 1e-6)] == ["10 %", "0.1 %", "1e-6 (exact)"]
