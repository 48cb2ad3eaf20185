import pytest
from PIL import Image
from rich.console import Console

from epsilot.errors import InvalidProblem
from epsilot_lab.paper import color_transfer
from epsilot_lab.runner import ExperimentSetup
from epsilot_lab.store import read_lines


def test_color_transfer_at_toy_size(tmp_path):
    tasks = [color_transfer.TransferTask(m, 60, 0.01, True) for m in color_transfer.METHODS]
    lines = [task.line() for task in tasks]
    for line in lines:
        assert line["is_certified"]
        for after in line["after"]:
            assert after < (1 - color_transfer.FALL) * line["before"]
    drawn = color_transfer.draw({task.method: task for task in tasks})
    drawn.savefig(tmp_path / color_transfer.FIGURE)
    color_transfer.write(tmp_path, lines, "epsilot reproduce color-transfer")
    assert "pdasmd | A → B" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    with Image.open(tmp_path / color_transfer.FIGURE) as image:
        assert min(image.size) > 500


def test_the_authors_script_at_toy_size(tmp_path):
    task = color_transfer.ScriptTask(n_colors=40, is_small=True)
    line = task.line()
    assert line["method"] == color_transfer.SCRIPT
    assert all(after < 0.5 * line["before"] for after in line["after"])
    (claim,) = color_transfer.statements([line])
    assert [test.where.rpartition(", ")[2] for test in claim.tests] == ["A → B", "B → A"]
    figure = color_transfer.draw_script(task)
    assert len(figure.axes) == 4


def test_settings_of_the_script_can_be_chosen(tmp_path, monkeypatch):
    """η, colours and batches; a line says which of them are not the script's."""
    monkeypatch.setattr(color_transfer, "_save", lambda figure, path: None)
    setup = ExperimentSetup(tmp_path, True, None, 1, Console(stderr=True))
    color_transfer.run(setup, eps=(0.05,), sizes=(30,), batches=(3,))
    (line,) = read_lines(tmp_path / "solves.jsonl")
    assert line["method"] == f"{color_transfer.SCRIPT}, η = 0.05, B = 3"
    assert line["n_colors"] == 30
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "--protocol authors --quick --eps 0.05 --sizes 30 --batches 3" in text
    with pytest.raises(InvalidProblem, match="--batches was given with --protocol extended"):
        color_transfer.run(setup, protocol="extended", batches=(3,))
