import pytest
from peer_lines import entropic, line

from epsilot_lab.peers.summary import Cells, accuracy_text, soundness


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
    assert soundness([line(gap=0.02), line()]).startswith("1 of 2 solves of ours are certified")


def test_processor_seconds_count_where_a_line_has_them():
    lines = [line(seconds=1.0, processor=2.0), line("emd2", seconds=3.0)]
    cells = Cells(lines)
    assert cells.cell("images", 256, 0.01, "epsilot").seconds == 2.0
    assert cells.cell("images", 256, 0.01, "emd2").seconds == 3.0


def test_accuracies_in_words():
    assert [accuracy_text(r) for r in (0.1, 0.001, 1e-6)] == ["10 %", "0.1 %", "1e-6 (exact)"]
