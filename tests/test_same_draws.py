"""The suite draws the same examples in every run, whatever else was run or is set."""

import os
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st


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
