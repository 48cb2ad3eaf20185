import json
import math
import shutil

import pytest
from browser import EXECUTABLE, Browser
from matplotlib.figure import Figure
from rich.console import Console

from epsilot.errors import InvalidProblem
from epsilot.studies.lab.document import tally
from epsilot.studies.paper import fig1
from epsilot.studies.paper.fig1_claims import claims, reference_table
from epsilot.studies.paper.fig1_panels import (
    FULL,
    QUICK,
    Scale,
    chosen_panels,
    size_curves,
    tasks_of,
)
from epsilot.studies.paper.measures import operations, soundness

TOY = Scale((2, 3), (3,), (1, 2), seeds=1, eps=0.5)
BOTH = ("synthetic", "mnist")
CONSOLE = Console(stderr=True, force_terminal=False)
FIGURES = ("fig1-synthetic-n", "fig1-synthetic-B", "fig1-mnist-n", "fig1-mnist-B")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A toy-size run of every panel."""
    out = tmp_path_factory.mktemp("fig1")
    fig1.run(out, True, None, 1, CONSOLE, scale=TOY)
    return out


def test_every_panel_is_solved_drawn_and_judged(folder):
    names = {path.name for path in folder.iterdir()}
    pictures = {f"{name}.{kind}" for name in FIGURES for kind in ("svg", "png")}
    assert names == {"solves.jsonl", "summary.md", "report.html", *pictures}
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    assert {line["method"] for line in lines} == {
        "pdasmd", "pdasgd", "apdagd", "apdrcd", "aam", "sinkhorn", "stochastic_sinkhorn",
    }  # fmt: skip
    assert all(line["has_ended"] and line["is_certified"] for line in lines)
    assert {line["B"] for line in lines if line["is_timed"]} == {1, 2}
    summary = (folder / "summary.md").read_text()
    tables = summary.partition("The same under our certificate")
    for letter in "abcdefgh":
        for part in (tables[0], tables[2]):
            rows = [row for row in part.splitlines() if f"| ({letter})" in row]
            assert len(rows) >= 2, letter
            assert all(row.endswith(("holds |", "does not hold |")) for row in rows)
    assert "epsilot reproduce fig1 --quick" in summary


def test_drawing_reads_lines_and_never_solves(folder, tmp_path, monkeypatch):
    monkeypatch.delattr("epsilot.studies.paper.image_tasks.solve")
    shutil.copy(folder / "solves.jsonl", tmp_path)
    fig1.run(tmp_path, True, None, 1, CONSOLE, panel=("c",), scale=TOY)
    assert (tmp_path / "fig1-synthetic-B.svg").exists()
    assert (tmp_path / "solves.jsonl").stat().st_size == (folder / "solves.jsonl").stat().st_size


def test_figures_are_small_enough_to_be_kept(folder):
    assert all((folder / f"{name}.{kind}").stat().st_size < 500_000
               for name in FIGURES for kind in ("svg", "png"))  # fmt: skip
    assert (folder / "report.html").stat().st_size < 2_000_000


@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium is installed (package chromium)")
def test_the_report_opens_in_a_browser_by_itself(folder, tmp_path):
    with Browser(tmp_path) as browser:
        browser.open(folder / "report.html")
        images = browser.evaluate("[...document.images].map(i => i.complete && i.naturalWidth)")
        texts = browser.evaluate("[...document.querySelectorAll('h2')].map(h => h.innerText)")
        width = browser.evaluate("document.documentElement.scrollWidth - innerWidth")
        assert not browser.complaints
        outside = [url for url in browser.requests if not url.startswith(("file:", "data:"))]
    assert len(images) == len(FIGURES)
    assert min(images) > 500
    assert texts[0] == "Claims of the paper"
    assert width <= 0, "the page is wider than the window"
    assert not outside


def test_panels_say_what_they_show(folder):
    figure = Figure()
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    shown = fig1._panel(lines, "a", "a", "synthetic", "paper")
    figure = fig1.draw_panels([[shown]], "title")
    (axes,) = figure.axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlabel() == "n (pixels of an image)"
    assert axes.get_ylabel() == "arithmetic operations"
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[0].startswith(f"PDASMD: slope {shown.curves[0].fit.slope:.2f}")
    assert len(legend) == 6
    colours = [line.get_color() for line in axes.lines if line.get_linestyle() == "-"]
    assert len(set(colours)) == len(set(colours) - {"k"}) >= 4


# -- tasks -----------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("data", "panel", "letters"),
    [
        (BOTH, (), "abcdefgh"),
        (("mnist",), (), "efgh"),
        (BOTH, ("a", "G"), "ag"),
        (("synthetic",), ("cd",), "cd"),
    ],
)
def test_panels_are_chosen(data, panel, letters):
    assert "".join(chosen_panels(data, panel)) == letters


@pytest.mark.parametrize(
    ("data", "panel", "match"),
    [
        (("mnist",), ("a",), "panel is 'a'; it must be one of e, f, g, h"),
        (BOTH, ("z",), "panel is 'z'"),
        (("mnist", "more.gz"), (), "data names 2 sets of digits"),
        (("nowhere.gz",), (), "data is 'nowhere.gz'; it must be synthetic, mnist or"),
    ],
)
def test_other_panels_are_refused(data, panel, match):
    with pytest.raises(InvalidProblem, match=match):
        chosen_panels(data, panel)


def test_a_quick_run_is_planned_for_minutes_and_a_full_one_for_large_n():
    panels = chosen_panels(BOTH, ())
    quick, full = (list(tasks_of(scale, panels, 5)) for scale in (QUICK, FULL))
    assert sum(task.seconds / (1 if task.is_timed else 2) for task in quick) < 330
    for data, least in (("synthetic", 1024), ("mnist", 784)):
        sizes = {t.side**2 for t in full if t.data == data and t.method == "pdasmd"}
        assert max(sizes) == least
    assert len(quick) == len(set(quick))


# -- claims ----------------------------------------------------------------------------------

GROWTH = {"pdasmd": 4.0, "aam": 1.0, "sinkhorn": 2.0, "stochastic_sinkhorn": 3.0}


def fake(data, stop, n, method, work, B=1, is_timed=False, seconds=1.0, n_iter=10, given=None):
    return {
        "data": data, "stop": stop, "n": n, "method": method, "operations": work, "B": B,
        "certificate_operations": 10**9, "is_timed": is_timed, "seconds": seconds, "eps": 0.05,
        "n_iter": n_iter, "given": given or {}, "has_ended": True, "gap": 0.01,
    }  # fmt: skip


def fake_lines(exponent=2.0, batch=0.5, turn=16, sinkhorn=2.0):
    lines = []
    for data in BOTH:
        for n in (16, 64, 144):
            for method, factor in {**GROWTH, "sinkhorn": sinkhorn}.items():
                lines.append(fake(data, "paper", n, method, factor * n**exponent))
            for B in (1, 2, 4, 8, 16):
                seconds = B**-0.2 if turn >= B else 5.0
                lines.append(
                    fake(data, "paper", n, "pdasmd", n * n * B**batch, B, True, seconds, B**batch)
                )
    return lines


def verdicts(lines):
    found = claims(lines, chosen_panels(BOTH, ()), "paper")
    return {claim.text: claim.verdict for claim in found if claim.where[1] in "abcd"}


HOLDS = {
    "operations of PDASMD grow as n²": "holds",
    "AAM uses fewer operations than PDASMD": "holds",
    "Sinkhorn uses fewer operations than PDASMD": "holds",
    "Stochastic Sinkhorn uses fewer operations than PDASMD": "holds",
    "operations of PDASMD-B grow as √B": "holds",
    "outer loops of PDASMD-B grow as √B": "holds",
    "running time does not fall as 1/√B": "holds",
    "running time falls up to B ≈ 12": "holds",
}


@pytest.mark.parametrize(
    ("change", "failing"),
    [
        ({}, []),
        ({"exponent": 2.2}, ["operations of PDASMD grow as n²"]),
        ({"exponent": 1.8}, ["operations of PDASMD grow as n²"]),
        ({"sinkhorn": 4.5}, ["Sinkhorn uses fewer operations than PDASMD"]),
        (
            {"batch": 0.3},
            ["operations of PDASMD-B grow as √B", "outer loops of PDASMD-B grow as √B"],
        ),
        ({"turn": 4}, ["running time falls up to B ≈ 12"]),
    ],
)
def test_claims_are_judged_by_the_lines(change, failing):
    expected = HOLDS | dict.fromkeys(failing, "does not hold")
    assert verdicts(fake_lines(**change)) == expected


def test_a_claim_without_lines_is_not_judged():
    assert set(verdicts([]).values()) == {"not measured"}


def test_the_tally_names_what_fails():
    panels = chosen_panels(("synthetic",), ("b",))
    assert tally(claims(fake_lines(), panels, "paper")) == "2 of 2 tested claims hold."
    assert tally(claims(fake_lines(exponent=3), panels, "paper")) == (
        "1 of 2 tested claims hold. These do not: operations of PDASMD grow as n² (b) synthetic "
        "images."
    )


def test_the_certificate_pays_for_its_proofs():
    line = fake("mnist", "certificate", 4, "aam", 5)
    assert operations(line) == 5 + 10**9
    assert operations({**line, "stop": "paper"}) == 5
    assert operations({**line, "operations": None}) is None


def test_runs_that_did_not_end_are_reported_and_left_out():
    lines = fake_lines()
    broken = [*lines, {**lines[0], "operations": 1e30, "has_ended": False}]
    assert size_curves(broken, "a", "synthetic", "paper") == size_curves(
        lines, "a", "synthetic", "paper"
    )
    assert f"{len(lines)} of {len(broken)} solves ended" in soundness(broken)
    assert "0.2 ε in the median" in soundness(lines)


def test_the_reference_table_compares_medians():
    (row,) = reference_table([fake("synthetic", "paper", 144, "sinkhorn", 3.8e8)]).rows
    assert row == ("sinkhorn", "144", "3.80e+08", "1.9e+08", "2.00")
    assert math.isclose(float(row[4]), 2)
