"""What a release says of itself is the same everywhere, and its archives hold what tests read."""

import json
import re
import tomllib
from pathlib import Path

import pytest

import epsilot

ROOT = Path(__file__).parents[1]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))


def test_the_version_is_said_once_and_repeated_truly():
    assert "version" in PROJECT["project"]["dynamic"]
    path = ROOT / PROJECT["tool"]["hatch"]["version"]["path"]
    assert f'__version__ = "{epsilot.__version__}"' in path.read_text(encoding="utf-8")
    cited = re.search(r"^version: (.+)$", (ROOT / "CITATION.cff").read_text(), re.MULTILINE)[1]
    changes = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    released = re.findall(r"^## \[(\d.*?)\] - \d{4}-\d{2}-\d{2}$", changes, re.MULTILINE)
    assert cited == released[0] == epsilot.__version__
    listed = json.loads((ROOT / "docs" / "versions.json").read_text(encoding="utf-8"))
    assert [version["version"] for version in listed] == released


def test_every_dependency_has_a_lower_bound():
    extras = PROJECT["project"]["optional-dependencies"].values()
    for text in [*PROJECT["project"]["dependencies"], *(name for some in extras for name in some)]:
        assert text.startswith("epsilot[") or re.search(r">=\d", text), text


@pytest.mark.parametrize("folder", ["src", "tests", "benchmarks", "docs", "Makefile", "LICENSE"])
def test_the_sdist_holds_what_tests_read(folder):
    assert folder in PROJECT["tool"]["hatch"]["build"]["targets"]["sdist"]["include"]
    assert (ROOT / folder).exists()


def test_it_is_typed():
    assert (ROOT / "src" / "epsilot" / "py.typed").exists()
    assert "Typing :: Typed" in PROJECT["project"]["classifiers"]
