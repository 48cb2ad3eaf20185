"""The suite draws the same examples and data in every run, in whatever order."""

import ast
import os
import re
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

#: Calls of generators that belong to the process or have no seed.
GLOBAL = re.compile(
    r"(np\.)?random\.((?!default_rng|Generator|Random|seed\(\d)\w+\(.*\)|default_rng\(\)|Random\(\))"
)


def draws():
    """Return what a property test of this suite would be given."""
    found = []

    @given(st.floats(-1, 1), st.integers(0, 10**6))
    def collect(x, k):
        found.append((x, k))

    collect()
    return found


def test_examples_do_not_depend_on_modules_that_are_loaded(tmp_path, monkeypatch):
    before = draws()
    constants = [float(f"0.{k}1234567") for k in range(100)]
    (tmp_path / "module_with_constants.py").write_text(f"A = {constants}\nB = 654321\n")
    monkeypatch.syspath_prepend(tmp_path)
    import_module("module_with_constants")
    assert draws() == before


def random_state(tree):
    """Return names of generators that functions of a module share, and calls without a seed."""
    calls = [x for x in ast.walk(tree) if isinstance(x, ast.Call)]
    unseeded = [x for x in calls if GLOBAL.fullmatch(ast.unparse(x))]
    made = [x for x in tree.body if isinstance(x, ast.Assign) and isinstance(x.value, ast.Call)]
    own = [x for x in made if ast.unparse(x.value.func).endswith((".default_rng", ".Random"))]
    names = {target.id for assigned in own for target in assigned.targets}
    functions = [x for x in ast.walk(tree) if isinstance(x, ast.FunctionDef | ast.Lambda)]
    inside = {x.id for f in functions for x in ast.walk(f) if isinstance(x, ast.Name)}
    return names & inside | {ast.unparse(call) for call in unseeded}


def test_data_depends_neither_on_the_order_of_tests_nor_on_the_run():
    """A generator that tests share gives each of them what those before it have left."""
    files = Path(__file__).parent.rglob("*.py")
    found = {str(f): random_state(ast.parse(f.read_text(encoding="utf-8"))) for f in files}
    assert not {file: names for file, names in found.items() if names}


@pytest.mark.parametrize(
    "line",
    [
        "G = np.random.default_rng(0)\ndef test(): G.random()",
        "def test(): np.random.default_rng().random()",
        "X = np.random.rand(3)",
        "X = random.random()",
    ],
)
def test_shared_and_unseeded_generators_are_found(line):
    assert random_state(ast.parse(line))


@pytest.mark.parametrize("has_ci", [False, True])
def test_the_default_profile_is_the_same_with_and_without_ci(has_ci):
    environment = {k: x for k, x in os.environ.items() if k != "CI" and "PYTEST" not in k}
    script = "import conftest; from hypothesis import settings; print(repr(settings()))"
    done = subprocess.run(
        [sys.executable, "-c", script],
        capture_output=True,
        text=True,
        cwd=Path(__file__).parent,
        env=environment | ({"CI": "1"} if has_ci else {}),
        check=True,
    )
    assert done.stdout.strip() == repr(settings())
    assert settings().derandomize
    assert settings().database is None
    assert settings().deadline is None
