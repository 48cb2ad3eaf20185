"""A script written for POT runs unchanged but for the import."""

from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
SCRIPT = (Path(__file__).parent / "user_script.py").read_text(encoding="utf-8")


def run(module):
    """Run the script with a module as ``ot``, and return its variables."""
    variables = {}
    exec(f"import {module} as ot\n{SCRIPT}", variables)
    return variables


def test_a_script_runs_unchanged_but_for_the_import():
    theirs, ours = run("ot"), run("epsilot.pot")
    assert ours["log"]["gap"] <= 1e-10
    for name in ("exact", "plan", "entropic", "smooth", "line", "free", "adapted", "mapped"):
        np.testing.assert_allclose(ours[name], theirs[name], atol=1e-6, err_msg=name)
    np.testing.assert_allclose(ours["losses"], theirs["losses"])
    assert ours["losses"][-1] < 0.1 * ours["losses"][0]
    assert ours["matched"].shape == (40, 40)
