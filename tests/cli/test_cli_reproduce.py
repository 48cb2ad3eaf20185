import pytest

from epsilot_lab import commands
from epsilot_lab.paper import EXPERIMENTS, fig1
from epsilot_lab.paper.fig1 import Fig1Scale


@pytest.fixture(autouse=True)
def toy(monkeypatch):
    monkeypatch.setattr(
        fig1, "QUICK", Fig1Scale((2, 3), (3,), (1,), seeds=1, eps=0.5, certified_eps=(0.3,))
    )


def test_a_panel_is_made_where_it_was_asked_for(run, folder):
    done = run("reproduce", "fig1", "--quick", "--panel", "a", "--out", "here", "--jobs", "1")
    assert done.code == 0, done.err
    made = sorted(path.name for path in (folder / "here" / "fig1").iterdir())
    names = ("fig1-synthetic-certificate", "fig1-synthetic-n")
    pictures = [f"{name}.{kind}" for name in names for kind in ("png", "svg")]
    assert made == [*pictures, "report.html", "solves.jsonl", "summary.md"]
    assert done.out.splitlines() == [f"here/fig1/{name}" for name in made]
    assert (
        "epsilot reproduce fig1 --quick --panel a" in (folder / "here/fig1/summary.md").read_text()
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("fig9",), "experiment 'fig9' is unknown; it must be one of fig1, table1"),
        (("fig1", "--panel", "q"), "panel is 'q'"),
        (("fig1", "--data", "none.gz"), "data is 'none.gz'"),
        (("table1", "--panel", "x"), "panel is 'x'; it must be n or eps"),
        (("fig1", "--data", "one.png"), "is not a complete IDX file"),
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
    done = run("reproduce", "all", "--quick", "--panel", "a", "--data", "synthetic", "--jobs", "1")
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
