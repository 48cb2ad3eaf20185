"""Figure 1 at toy size: solves, figures, claims and verdicts."""

import json
import math
import shutil

import pytest
from rich.console import Console

from browser import EXECUTABLE, Browser
from epsilot.errors import InvalidProblem
from epsilot.solvers import appendix_c
from epsilot_lab.judging import count
from epsilot_lab.paper import fig1
from epsilot_lab.paper.fig1 import (
    FULL,
    ONE_CRITERION,
    OWN_RULES,
    QUICK,
    Fig1Scale,
    chosen_panels,
    crossover,
    directions,
    operations_against_B,
    size_curves,
    slope_table,
    statements,
    tasks_of,
)
from epsilot_lab.paper.image_tasks import operations, soundness
from epsilot_lab.paper.numpy_pdasmd import NAME
from epsilot_lab.runner import ExperimentSetup

TOY = Fig1Scale((2, 3), (4,), (1, 2, 4), (4,), seeds=1, eps=0.5)
BOTH = ("synthetic", "mnist")
CONSOLE = Console(stderr=True, force_terminal=False)
FIGURES = ["figure1"]
VERDICTS = ("holds |", "does not hold |", "undecided |")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A toy-size run of every panel."""
    out = tmp_path_factory.mktemp("fig1")
    fig1.run(ExperimentSetup(out, True, None, 1, CONSOLE), protocol="extended", scale=TOY)
    return out


def test_every_panel_is_solved_drawn_and_judged(folder):
    names = {path.name for path in folder.iterdir()}
    pictures = {f"{name}.{kind}" for name in (*FIGURES, "crossover") for kind in ("svg", "png")}
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
    assert "of 8 claims of the paper hold in every test" in summary
    assert "not measured" not in summary
    judged = [row for row in summary.splitlines() if row.endswith(VERDICTS)]
    assert len(judged) > 50
    for part in ("L̄ = 5/η, one criterion", "L̄ = 1/η, own rule", "NumPy"):
        assert any(part in row for row in judged), part
    slopes = summary.partition("## Slopes of all methods")[2].partition("##")[0]
    for series in ONE_CRITERION["a"] + ONE_CRITERION["b"]:
        assert f"| {series.label} |" in slopes
    assert "epsilot reproduce fig1 --protocol extended --quick" in summary


@pytest.mark.parametrize(
    ("panel", "places"),
    [
        ((), "abstract|a, b, e, f|a, e|a, e|b, f|c, g|d, h|d, h"),
        (("b", "c"), "abstract|a, b, e, f|b, f|c, g"),
        (("h",), "d, h|d, h"),
    ],
)
def test_panels_test_the_claims_that_they_show(folder, panel, places):
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    found = statements(lines, chosen_panels(BOTH, panel))
    wanted = [
        f"Figure 1 {p}" if p != "abstract" else "abstract, Theorem 2" for p in places.split("|")
    ]
    assert [s.where for s in found] == wanted
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
    fig1.run(
        ExperimentSetup(tmp_path, True, None, 1, CONSOLE),
        panel=("c",),
        protocol="extended",
        scale=TOY,
    )
    assert (tmp_path / "figure1.svg").exists()
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
    assert len(images) == len(FIGURES) + 1
    assert min(images) > 500
    assert texts[0] == "Claims of the paper"
    assert width <= 0, "the page is wider than the window"
    assert not outside


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
    for data, least in (("synthetic", 2304), ("mnist", 784)):
        sizes = {t.side**2 for t in full if t.data == data and "pdasmd" in t.label}
        assert max(sizes) == least
    assert len(quick) == len(set(quick))


BOTH_PANELS = ("synthetic", "mnist")
PANELS = chosen_panels(BOTH_PANELS, ())
SEEDS = range(5)
SHARP = {"smoothness": "sharp"}

#: Operations of every series, in units of PDASMD with L̄ = 1/η.
LEVELS = {"aam": 0.2, "sinkhorn": 0.5, "stochastic_sinkhorn": 0.7, "apdagd": 1.5}
LEVELS |= {"pdasgd": 0.9, "apdrcd": 10.0}


def fake(data, stop, n, method, work, seed=0, **fields):
    return {
        "data": data,
        "stop": stop,
        "n": n,
        "seed": seed,
        "method": method,
        "operations": work,
        "B": 1,
        "certificate_operations": 10**9,
        "is_timed": False,
        "seconds": 1.0,
        "eps": 0.05,
        "n_iter": 10,
        "given": {},
        "has_ended": True,
        "gap": 0.01,
        "value": 0.1,
        **fields,
    }


def sized(data, exponent, levels):
    """Yield solves against n: every method, both constants, both rules."""
    shown = ONE_CRITERION["a"] + ONE_CRITERION["b"] + OWN_RULES
    for series in dict.fromkeys(shown):
        given = dict(series.options)
        level = levels.get(series.method, 1.0 if given else math.sqrt(5))
        for n in (16, 64, 144):
            for seed in SEEDS:
                work = level * 1e3 * n**exponent * (1 + 0.01 * seed)
                loops = 1000 * (levels.get("linf", 1.0) if given == SHARP else 1.0) + seed
                yield fake(data, "paper", n, series.method, work, seed, given=given, n_iter=loops)


def batched(data, batch, turn):
    """Yield timed solves against B: both constants, and NumPy."""
    codes = [("pdasmd", {}, 0.5), ("pdasmd", SHARP, 0.5), (NAME, SHARP, -0.2)]
    for method, given, slope in codes:
        for n in (16, 64):
            for B in (1, 2, 4, 8, 16):
                for seed in SEEDS:
                    yield fake(
                        data,
                        "paper",
                        n,
                        method,
                        n * n * B**batch * (1 + seed),
                        seed,
                        B=B,
                        is_timed=True,
                        given={"batch_size": B, **given},
                        n_iter=B**batch,
                        seconds=B**slope if turn >= B else 5.0,
                    )


def fake_lines(exponent=2.0, batch=0.5, turn=16, **levels):
    lines = []
    for data in BOTH_PANELS:
        lines += sized(data, exponent, LEVELS | levels)
        lines += batched(data, batch, turn)
    return lines


def verdicts(lines):
    return {statement.text: statement.verdict for statement in statements(lines, PANELS)}


HOLDS = {fig1.HEADLINE: "does not hold"} | dict.fromkeys(
    [
        "operations of PDASMD grow as n²",
        "AAM uses fewer operations than PDASMD",
        "Sinkhorn uses fewer operations than PDASMD",
        "Stochastic Sinkhorn uses fewer operations than PDASMD",
        fig1.ROOT_OF_B,
        "running time does not fall as 1/√B",
        "running time falls up to B ≈ 12",
    ],
    "holds",
)


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        ({}, {}),
        ({"linf": 0.5}, {fig1.HEADLINE: "holds"}),
        ({"linf": 2.0}, {fig1.HEADLINE: "does not hold"}),
        ({"exponent": 2.2}, {"operations of PDASMD grow as n²": "does not hold"}),
        ({"exponent": 1.8}, {"operations of PDASMD grow as n²": "does not hold"}),
        ({"sinkhorn": 4.5}, {"Sinkhorn uses fewer operations than PDASMD": "does not hold"}),
        # between the two constants: refuted by one of them
        ({"sinkhorn": 1.5}, {"Sinkhorn uses fewer operations than PDASMD": "does not hold"}),
        ({"batch": 0.3}, {fig1.ROOT_OF_B: "does not hold"}),
        ({"turn": 4}, {"running time falls up to B ≈ 12": "does not hold"}),
    ],
)
def test_claims_are_judged_by_the_lines(change, expected):
    assert verdicts(fake_lines(**change)) == HOLDS | expected


def test_a_claim_without_lines_is_not_judged():
    assert set(verdicts([]).values()) == {"not measured yet"}
    missing = [line for line in fake_lines() if line["given"] != SHARP]
    judged = verdicts(missing)
    assert judged["AAM uses fewer operations than PDASMD"] == "not measured yet"
    assert judged[fig1.ROOT_OF_B] == "holds"


def test_operations_are_fitted_from_one_row_and_from_two():
    table = operations_against_B(fake_lines(batch=0.4), PANELS)
    assert table.columns[1:] == ("from B = 1 on", "from B = 2 on")
    assert [row[1] for row in table.rows] == [row[2] for row in table.rows]
    assert "slope 0.40" in table.rows[0][1]


def test_sizes_beyond_the_paper_are_shown_and_not_judged():
    large = [
        fake("synthetic", "paper", 4096, method, work, seed, given=given)
        for seed in SEEDS
        for method, given, work in (
            ("stochastic_sinkhorn", {}, 9e9 + seed),
            ("pdasmd", SHARP, 3e9),
            ("pdasmd", {}, 6e9),
        )
    ]
    lines = fake_lines() + large
    assert verdicts(lines)["Stochastic Sinkhorn uses fewer operations than PDASMD"] == "holds"
    rows = [row for row in crossover(lines, ("synthetic",)).rows if row[2] == "4096"]
    assert [(row[1], row[3][:1], row[4]) for row in rows] == [
        ("L̄ = 5/η", "1", "0 of 5"),
        ("L̄ = 1/η", "3", "0 of 5"),
    ]


def test_the_tally_counts_a_claim_once():
    panels = chosen_panels(("synthetic",), ("b",))
    assert count(statements(fake_lines(), panels)) == (
        "2 of 3 claims of the paper hold in every test. Does not hold (1): "
        "the l∞ norm takes less work than l2, by √n."
    )
    assert count(statements(fake_lines(exponent=3), panels)) == (
        "1 of 3 claims of the paper hold in every test. Does not hold (2): the l∞ norm takes less "
        "work than l2, by √n; operations of PDASMD grow as n²."
    )


def test_other_methods_have_a_direction():
    found = {(c.text.split()[0], c.where): c.verdict for c in directions(fake_lines(), PANELS)}
    one = "synthetic images, L̄ = {}/η, one criterion, n ≤ 144"
    assert found["APDAGD", one.format(5)] == "holds"
    assert found["APDAGD", one.format(1)] == "does not hold"
    assert found["PDASGD", one.format(1)] == "holds"
    assert found["APDRCD", one.format(5)] == "does not hold"
    assert ("APDAGD", "MNIST digits, L̄ = 5/η, own rule, n ≤ 144") in found


def test_slopes_are_tabulated_under_both_rules():
    rows = {row[0]: row[1:] for row in slope_table(fake_lines(), PANELS).rows}
    assert rows["AAM"][:2] == ("2.00 [1.99, 2.01]",) * 2
    assert len(rows["AAM"]) == 4


def test_the_certificate_pays_for_its_proofs():
    line = fake("mnist", "certificate", 4, "aam", 5)
    assert operations(line) == 5 + 10**9
    assert operations({**line, "stop": "paper"}) == 5
    assert operations({**line, "operations": None}) is None


def test_runs_that_did_not_end_are_reported_and_left_out():
    lines = fake_lines()
    broken = [*lines, {**lines[0], "operations": 1e30, "has_ended": False}]
    shown = ONE_CRITERION["a"], "synthetic"
    assert size_curves(broken, *shown) == size_curves(lines, *shown)
    assert f"{len(lines)} of {len(broken)} solves ended" in soundness(broken)


def test_the_crossover_is_where_the_fitted_ratio_passes_one():
    """Ratios (n / 900)^0.3, each pair above or below by the same factor."""
    spread = (0.5, 1.0, 2.0)
    ratios = {n: tuple((n / 900) ** 0.3 * x for x in spread) for n in (49, 100, 400, 1024, 4096)}
    fit, place = fig1.crossing(ratios, draws=200)
    assert fit.slope == pytest.approx(0.3)
    assert place.mean == pytest.approx(900)
    assert place.low < 900 < place.high


def test_the_crossover_has_as_many_pairs_as_its_scale_says(folder):
    scale = Fig1Scale((2,), (4,), (1,), seeds=1, crossover=((3, 2), (4, 1)))
    made = list(fig1.crossover_tasks(scale))
    assert [(t.side, t.seed, t.method) for t in made] == [
        (side, seed, method)
        for side, seed in ((3, 0), (3, 1), (4, 0))
        for method in ("pdasmd", "stochastic_sinkhorn")
    ]
    panels = chosen_panels(("synthetic",), ("b",))
    assert set(made) <= set(tasks_of(scale, panels, 1))
    lines = [json.loads(text) for text in (folder / "solves.jsonl").read_text().splitlines()]
    found = fig1.crossover_pairs(lines, "synthetic")
    assert {n: len(group) for n, group in found.items()} == {4: 1, 9: 1}
