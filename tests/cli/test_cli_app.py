import subprocess
import sys

import pytest

import epsilot


def test_version_and_help(run):
    assert run("--version").out.strip() == epsilot.__version__
    assert run("--help").code == 0
    for command in ("demo", "solve", "certify", "methods", "compare"):
        assert command in run("--help").out
        assert run(command, "--help").code == 0


def test_help_does_not_load_the_solvers():
    code = (
        "import sys\nfrom epsilot.cli import main\nsys.argv = ['epsilot', 'solve', '--help']\n"
        "try:\n    main()\nexcept SystemExit:\n    pass\n"
        "heavy = {'numba', 'scipy', 'ot', 'matplotlib', 'epsilot_lab'} & set(sys.modules)\n"
        "sys.exit(f'loaded: {heavy}' if heavy else 0)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_lab_commands_are_listed_if_the_lab_is_installed(run, monkeypatch):
    shown = run("--help").out
    assert "reproduce" in shown
    assert "bench" in shown
    assert "--images" in run("bench", "--help").out
    monkeypatch.setattr(sys.modules["epsilot.cli.app"], "find_spec", lambda name: None)
    assert "reproduce" not in run("--help").out
    assert run("bench").code == 2


def test_methods(run):
    names = [entry.name for entry in epsilot.methods()]
    found = run("methods", "--json")
    assert found.code == 0
    assert [entry["name"] for entry in found.json["methods"]] == names
    table = [line.split("\t") for line in run("methods").out.splitlines()]
    assert table[0][:2] == ["year", "name"]
    assert sorted(line[1] for line in table[1:]) == sorted(names)
    assert len({len(line) for line in table}) == 1


@pytest.mark.parametrize("width", ["70", "200"])
def test_a_terminal_gets_panels_and_tables(run, monkeypatch, width):
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("COLUMNS", width)
    assert "╭─" in run("solve", "--cost", "M.npy").out
    assert "sinkhorn" in run("methods").out
    assert "┃" in run("methods").out
