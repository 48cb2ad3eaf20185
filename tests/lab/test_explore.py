"""`make explore` on toy tests: examples that fail or hang are printed, ready to be kept."""

import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

SCRIPT = Path(__file__).parents[2] / "benchmarks" / "explore.py"
TOY = """
import time
import numpy as np
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

@given(arrays(float, 2, elements=st.floats(0, 1)), st.integers(0, 9))
def test_toy(x, k):
    {body}
"""


@pytest.fixture
def explore(tmp_path, capsys):
    shutil.copy(Path(__file__).parents[1] / "conftest.py", tmp_path)

    def run(body, *arguments):
        (tmp_path / "test_toy.py").write_text(TOY.format(body=body))
        tests = ["--tests", str(tmp_path / "test_toy.py"), "--examples", "60"]
        code = runpy.run_path(str(SCRIPT))["main"]([*tests, *arguments])
        return code, capsys.readouterr().out

    return run


def test_rounds_have_seeds_of_their_own_and_end(explore):
    code, out = explore("pass", "--rounds", "2", "--seed", "5")
    assert code == 0
    assert [line.split(":")[0] for line in out.splitlines()] == ["seed 5", "seed 6"]
    assert explore("pass", "--minutes", "0")[1].count("seed") == 1


def test_a_failing_example_is_printed_with_every_digit(explore):
    code, out = explore("assert not (k > 3 and 0.1 < x[1] < 0.9)", "--seed", "1")
    assert code == 1
    assert "@example(\n    x=np.array([" in out
    assert "k=4,\n)" in out.rsplit("@example", 1)[1]
    assert explore("assert not (k > 3 and 0.1 < x[1] < 0.9)", "--seed", "1")[1].endswith(
        out.rsplit("@example", 1)[1]
    )


def test_a_hang_is_a_failure_and_its_example_is_printed(explore):
    code, out = explore("time.sleep(60 * (k > 3))", "--hang", "5")
    assert code == 1
    assert 'test_toy.py", line' in out
    assert "@example(\n    x=np.array([" in out


def test_the_tests_of_the_project_are_collected_without_xdist():
    grouped = Path(__file__).parents[1] / "cluster" / "test_cluster_docs.py"
    command = [sys.executable, "-m", "pytest", "--collect-only", "-q", "-p", "no:xdist"]
    done = subprocess.run([*command, str(grouped)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout
