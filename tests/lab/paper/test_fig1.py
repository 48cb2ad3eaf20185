import json
import shutil

import pytest
from matplotlib.figure import Figure
from rich.console import Console

from browser import EXECUTABLE, Browser
from epsilot.errors import InvalidProblem
from epsilot.solvers import appendix_c
from epsilot_lab.paper import fig1
from epsilot_lab.paper.fig1_claims import statements
from epsilot_lab.paper.fig1_panels import (
    FULL,
    ONE_CRITERION,
    OWN_RULES,
    QUICK,
    Scale,
    chosen_panels,
    tasks_of,
)
from epsilot_lab.paper.numpy_pdasmd import NAME

TOY = Scale((2, 3), (4,), (1, 2, 4), (4,), seeds=1, eps=0.5, certified_eps=(0.3, 0.2))
BOTH = ("synthetic", "mnist")
CONSOLE = Console(stderr=True, force_terminal=False)
FIGURES = [f"fig1-{data}-{what}" for data in BOTH for what in ("n", "B", "certificate")]
VERDICTS = ("holds |", "does not hold |", "undecided |", "holds in part |")


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
        "pdasmd",
        "pdasgd",
        "apdagd",
        "apdrcd",
        "aam",
        "sinkhorn",
        "stochastic_sinkhorn",
        NAME,
    }
    assert all(line["has_ended"] and line["is_certified"] for line in lines)
    assert {line["B"] for line in lines if line["is_timed"]} == {1, 2, 4}
    summary = (folder / "summary.md").read_text()
    assert "of 7 claims of the paper hold in every test" in summary
    assert "not measured" not in summary
    judged = [row for row in summary.splitlines() if row.endswith(VERDICTS)]
    assert len(judged) > 50
    for part in ("L̄ = 5/η, one criterion", "L̄ = 1/η, own rule", "NumPy", "from B = 2 on"):
        assert any(part in row for row in judged), part
    slopes = summary.partition("## Slopes of all methods")[2].partition("##")[0]
    for series in ONE_CRITERION["a"] + ONE_CRITERION["b"]:
        assert f"| {series.label} |" in slopes
    assert "epsilot reproduce fig1 --quick" in summary


@pytest.mark.parametrize(
    ("panel", "places"),
    [
        ((), "a, b, e, f|a, e|a, e|b, f|c, g|d, h|d, h"),
        (("b", "c"), "a, b, e, f|b, f|c, g"),
        (("h",), "d, h|d, h"),
    ],
)
def test_panels_test_the_claims_that_they_show(folder, panel, places):
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    found = statements(lines, chosen_panels(BOTH, panel))
    assert [s.where for s in found] == [f"Figure 1 {place}" for place in places.split("|")]
    assert len({statement.text for statement in found}) == len(found)


def test_one_criterion_is_appendix_c_for_every_method():
    for series in ONE_CRITERION["a"] + ONE_CRITERION["b"]:
        rule = {k: v for k, v in series.options if k == "rule"}
        assert rule == appendix_c(series.method)
    differing = [s.label for s, own in zip(ONE_CRITERION["a"], OWN_RULES, strict=True) if s != own]
    assert differing == ["APDAGD", "AAM"]


def test_drawing_reads_lines_and_never_solves(folder, tmp_path, monkeypatch):
    monkeypatch.delattr("epsilot_lab.paper.image_tasks.solve")
    shutil.copy(folder / "solves.jsonl", tmp_path)
    fig1.run(tmp_path, True, None, 1, CONSOLE, panel=("c",), scale=TOY)
    assert (tmp_path / "fig1-synthetic-B.svg").exists()
    assert (tmp_path / "solves.jsonl").stat().st_size == (folder / "solves.jsonl").stat().st_size


def test_figures_are_small_enough_to_be_kept(folder):
    assert all(
        (folder / f"{name}.{kind}").stat().st_size < 500_000
        for name in FIGURES
        for kind in ("svg", "png")
    )
    assert (folder / "report.html").stat().st_size < 3_000_000


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
    shown = fig1.size_panels(lines, "synthetic", {"a"})[0][0]
    figure = fig1.draw_panels([[shown]], "title")
    (axes,) = figure.axes
    assert axes.get_xscale() == axes.get_yscale() == "log"
    assert axes.get_xlabel() == "n (pixels of an image)"
    assert axes.get_ylabel() == "arithmetic operations"
    legend = [text.get_text() for text in axes.get_legend().get_texts()]
    assert legend[0].startswith(f"PDASMD, L̄ = 5/η: slope {shown.curves[0].fit.slope:.2f}")
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
        sizes = {t.side**2 for t in full if t.data == data and "pdasmd" in t.label}
        assert max(sizes) == least
    assert len(quick) == len(set(quick))
