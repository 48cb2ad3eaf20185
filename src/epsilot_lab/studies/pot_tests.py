"""Run the tests of POT, or of SciPy, on our functions, and count those that pass.

    python -m epsilot_lab pot-tests pot-0.9.7.post1/test repository/test   # folders of POT's tests
    python -m epsilot_lab pot-tests pot-0.9.7.post1/test --files test_ot.py unbalanced
    python -m epsilot_lab pot-tests --scipy                                # needs SciPy with tests

Unpack POT's source distribution; its tests of unbalanced, gromov and batch are in the repository
only. A file that several folders have is taken from the first. Every file runs in a process of its
own, after ``epsilot.pot.install()``, on a copy outside the folders, so that the installed POT is
imported. JAX and TensorFlow are left out unless ``--backends`` names them. With ``--plain``, POT's
own functions run, to see which tests fail without us.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import shutil
import subprocess
import sys
import tempfile
import xml.etree.ElementTree as ElementTree
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

import ot

from ..document import Block, Command, Paragraph, Table, environment_table, to_markdown, write_text
from ..environment import machine, versions

#: Files and folders of POT's tests whose functions we replace, or that call them.
FILES = (
    "test_ot.py", "test_solvers.py", "test_partial.py", "unbalanced", "test_1d_solver.py",
    "test_bregman.py", "test_da.py", "test_optim.py", "gromov", "batch",
)  # fmt: skip
#: POT's switches of backends, by name.
SWITCHES = {name: f"POT_BACKEND_DISABLE_{name.upper()}" for name in ("jax", "tensorflow", "cupy")}
SCIPY_TESTS = "scipy.stats.tests.test_stats"
SCIPY_CLASSES = ("TestWassersteinDistance", "TestWassersteinDistanceND")
RUN_POT = "import epsilot.pot as p, pytest, sys; p.install(); sys.exit(pytest.main(sys.argv[1:]))"
RUN_PLAIN = "import pytest, sys; sys.exit(pytest.main(sys.argv[1:]))"
RUN_SCIPY = (
    "import scipy.stats as s, epsilot.scipy as e, pytest, sys\n"
    "for name in e.__all__:\n"
    "    for module in (s, s._stats_py):\n"
    "        setattr(module, name, getattr(e, name))\n"
    "sys.exit(pytest.main(sys.argv[1:]))"
)


class Counts(NamedTuple):
    """Numbers of tests, and the names of those that failed with their messages."""

    n_passed: int
    n_skipped: int
    n_expected: int  # failures that the tests expect
    failures: tuple[tuple[str, str], ...]

    @property
    def cells(self) -> tuple[str, str]:
        """How many of the tests that ran passed, and the names of the others."""
        n_run = self.n_passed + len(self.failures)
        names = sorted({name for name, _ in self.failures})
        return f"{self.n_passed} of {n_run}", ", ".join(f"`{name}`" for name in names)


def counted(report: Path) -> Counts:
    """Read the report of a run of pytest."""
    n_passed = n_skipped = n_expected = 0
    failures = []
    for case in ElementTree.parse(report).iter("testcase"):
        wrong = [x for kind in ("failure", "error") for x in case.findall(kind)]
        skipped = case.find("skipped")
        if wrong:
            failures.append((case.get("name", ""), wrong[0].get("message", "")))
        elif skipped is None:
            n_passed += 1
        elif skipped.get("type") == "pytest.xfail":
            n_expected += 1
        else:
            n_skipped += 1
    return Counts(n_passed, n_skipped, n_expected, tuple(failures))


def run(script: str, arguments: Sequence[str], folder: Path, backends: Sequence[str]) -> Counts:
    """Run pytest in a process of its own, in a folder."""
    environment = {**os.environ, "PYTHONWARNINGS": "ignore"}
    environment |= {switch: "1" for name, switch in SWITCHES.items() if name not in backends}
    report = folder / "report.xml"
    report.unlink(missing_ok=True)
    options = ["-q", "-p", "no:cacheprovider", "--tb=no", f"--junitxml={report}", "--rootdir=."]
    words = [sys.executable, "-P", "-c", script, *options, *arguments]
    subprocess.run(words, cwd=folder, env=environment, stdout=subprocess.DEVNULL, check=False)
    if not report.exists():
        raise SystemExit(f"pytest wrote no report of {' '.join(arguments)}; run it by hand.")
    return counted(report)


def copied(folders: Sequence[Path], into: Path) -> None:
    """Copy folders of tests into one; the first folder that has a file wins."""
    for folder in reversed(folders):
        if not (folder / "test_ot.py").exists():
            raise SystemExit(f"{folder} does not hold POT's tests: test_ot.py is missing there.")
        shutil.copytree(folder, into, dirs_exist_ok=True)


def pot_rows(
    folders: Sequence[Path], files: Sequence[str], backends: Sequence[str], script: str
) -> Iterator[tuple[str, Counts]]:
    """Yield the counts of each file of POT's tests that the folders have."""
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        copied(folders, place)
        for file in files:
            if (place / file).exists():
                yield file, run(script, [file], place, backends)


def scipy_rows() -> Iterator[tuple[str, Counts]]:
    """Yield the counts of SciPy's tests of Wasserstein distances."""
    found = importlib.util.find_spec(SCIPY_TESTS)
    if found is None or found.origin is None:
        raise SystemExit(f"{SCIPY_TESTS} is not installed; use a SciPy with its tests.")
    with tempfile.TemporaryDirectory() as name:
        place = Path(name)
        text = Path(found.origin).read_text(encoding="utf-8")
        package = SCIPY_TESTS.rpartition(".")[0]
        (place / "test_stats.py").write_text(
            text.replace("\nfrom .", f"\nfrom {package}."), encoding="utf-8"
        )
        for group in SCIPY_CLASSES:
            yield group, run(RUN_SCIPY, [f"test_stats.py::{group}"], place, ())


def main(argv: Sequence[str] | None = None) -> None:
    """Run the tests and print the counts."""
    parser = argparse.ArgumentParser(
        prog="python -m epsilot_lab pot-tests", description="Run POT's tests on our functions."
    )
    parser.add_argument("folders", nargs="*", type=Path, help="folders of POT's tests")
    parser.add_argument("--files", nargs="+", default=FILES)
    parser.add_argument("--backends", nargs="*", default=(), choices=list(SWITCHES))
    parser.add_argument("--plain", action="store_true", help="run POT's own functions")
    parser.add_argument("--scipy", action="store_true", help="run SciPy's tests, too")
    parser.add_argument("--out", type=Path, help="folder of summary.md")
    options = parser.parse_args(argv)
    rows: list[tuple[str, Counts]] = []
    if options.folders:
        script = RUN_PLAIN if options.plain else RUN_POT
        for row in pot_rows(options.folders, options.files, options.backends, script):
            print(row[0], *row[1].cells, flush=True)
            rows.append(row)
    if options.scipy:
        rows += scipy_rows()
    cells = [(name, *x.cells, f"{x.n_expected}", f"{x.n_skipped}") for name, x in rows]
    columns = "tests", "passed", "failed", "expected to fail", "skipped"
    blocks: list[Block] = [
        Command("python -m epsilot_lab pot-tests FOLDER ..."),
        Table(columns, tuple(cells), f"Tests of POT {ot.__version__} on our functions"),
    ]
    for name, x in rows:
        blocks += [Paragraph(f"{name}: {test}: {message[:200]}") for test, message in x.failures]
    blocks.append(environment_table([{"versions": versions(), "machine": machine()}]))
    text = to_markdown("Tests of POT", blocks)
    print(text)
    if options.out is not None:
        options.out.mkdir(parents=True, exist_ok=True)
        write_text(options.out / "summary.md", text)
