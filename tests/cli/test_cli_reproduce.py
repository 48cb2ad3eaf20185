import json

import pytest

from epsilot_lab import commands
from epsilot_lab.paper import ALONE, EXPERIMENTS, fig1
from epsilot_lab.paper.fig1 import Fig1Scale


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(fig1, "QUICK", Fig1Scale((2, 3), (3,), (1,), seeds=1, eps=0.5))


def test_a_panel_is_made_where_it_was_asked_for(run, folder):
    own = ("--protocol", "extended", "--quick", "--panel", "a", "--out", "here", "--jobs", "1")
    done = run("reproduce", "fig1", *own)
    assert done.code == 0, done.err
    made = sorted(path.name for path in (folder / "here" / "fig1").iterdir())
    pictures = [f"figure1.{kind}" for kind in ("png", "svg")]
    assert made == [*pictures, "report.html", "solves.jsonl", "summary.md"]
    assert done.out.splitlines() == [f"here/fig1/{name}" for name in made]
    assert (
        "epsilot reproduce fig1 --protocol extended --quick --panel a"
        in (folder / "here/fig1/summary.md").read_text()
    )


def test_the_authors_protocol_is_the_default_and_can_be_changed(run, folder):
    own = ("--data", "synthetic", "--sizes", "9", "--batches", "2", "--pairs", "1", "--eps", "0.5")
    done = run("reproduce", "fig1", *own, "--jobs", "1")
    assert done.code == 0, done.err
    texts = (folder / "results/fig1/solves.jsonl").read_text().splitlines()
    lines = [json.loads(text) for text in texts]
    assert len(lines) == 8
    assert {(x["data"], x["n"], x["eps"], x["seed"]) for x in lines} == {
        ("authors-synthetic", 9, 0.5, 0)
    }
    assert [x["given"]["inner_loops"] for x in lines if x["B"] == 2] == [4, 4]
    summary = (folder / "results/fig1/summary.md").read_text()
    assert "--protocol authors --quick --data synthetic --eps 0.5 --sizes 9" in summary
    assert "YilingXie27/PDASMD" in summary
    assert (folder / "results/fig1/figure1.svg").exists()


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig9",), "experiment 'fig9' is unknown; it must be one of fig1, table1"),
        (("fig1", "--panel", "q"), "panel is 'q'"),
        (("fig1", "--data", "none.gz"), "data is 'none.gz'"),
        (("table1", "--panel", "x"), "panel is 'x'; it must be n or eps"),
        (("fig1", "--data", "one.png"), "is not a complete IDX file"),
        (("fig1", "--protocol", "ours"), "--protocol is 'ours'; it must be authors or extended"),
        (("fig1", "--sizes", "10"), "sizes names 10; sizes are numbers of pixels of square"),
        (("fig1", "--eps", "0.1,0.2"), "eps names 2 accuracies; Figure 1 has one"),
        (("table1", "--batches", "2"), "--batches was given, but table1 has no choice of batches"),
        (("table2", "--batches", "2"), "no choice of batches: the plan of an η is unique"),
        (("table2", "--eps", "0.1,0.2"), "--eps names 2 values; this experiment has one"),
        (("two-moons", "--sizes", "9,8"), "--sizes names 2 values; this experiment has one"),
        (("two-moons", "--pairs", "2"), "--pairs 2 was given, but two-moons has no repetitions"),
        (("color-transfer", "--pairs", "3"), "there is one pair of photographs"),
        (("color-transfer", "--protocol", "extended", "--eps", "0.1"), "goes with --protocol auth"),
    ],
)
def test_bad_choices_are_refused_in_one_sentence(run, arguments, message):
    done = run("reproduce", *arguments)
    assert done.code == 2
    assert message in done.err
    assert done.err.count("\n") == 1


def test_a_choice_that_an_experiment_does_not_have_is_refused(run, monkeypatch):
    monkeypatch.setitem(EXPERIMENTS, "other", "table2:run")
    done = run("reproduce", "other", "--data", "mnist")
    assert done.code == 2
    assert "other has no choice of data" in done.err


def test_all_experiments_make_one_report(run, folder, monkeypatch):
    monkeypatch.setattr(commands, "EXPERIMENTS", {"fig1": EXPERIMENTS["fig1"]})
    own = ("--panel", "a", "--data", "synthetic", "--protocol", "extended", "--jobs", "1")
    done = run("reproduce", "all", "--quick", *own)
    assert done.code == 0, done.err
    assert "3 claims of the paper" in (folder / "results" / "claims.md").read_text()
    assert "Figure 1 of the paper" in (folder / "results" / "report.html").read_text()


def test_an_interrupted_run_says_how_to_continue(run, monkeypatch):
    def interrupt(*arguments, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr("epsilot_lab.paper.fig1.run", interrupt)
    done = run("reproduce", "fig1")
    assert done.code == 1
    assert "the same command continues" in done.err


@pytest.mark.parametrize(
    ("experiment", "module", "words"),
    [
        ("section6", "methods", ["section6", "--jobs", "1", "--seeds", "2", "--toy"]),
        ("barycenters", "barycenters", ["--toy"]),
    ],
)
def test_studies_of_section_6_are_experiments_too(run, monkeypatch, experiment, module, words):
    pairs = ("--pairs", "2") if "--seeds" in words else ()
    seen = []

    def main(given):
        seen.extend(given)
        print("a table")

    monkeypatch.setattr(f"epsilot_lab.studies.{module}.main", main)
    done = run("reproduce", experiment, "--quick", *pairs, "--jobs", "1")
    assert done.code == 0, done.err
    assert [word for word in seen if word not in ("--out", f"results/{experiment}")] == words
    assert "a table" not in done.out


def test_all_leaves_the_map_out():
    assert set(EXPERIMENTS) - ALONE >= {"fig1", "table1", "section6", "barycenters", "ablation"}
    assert "map" in ALONE
