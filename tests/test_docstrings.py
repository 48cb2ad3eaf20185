"""The examples of docstrings run, and what users call has one."""

import dataclasses
import doctest
import functools
import importlib
import inspect
import pkgutil
import re

import pytest

import epsilot
import epsilot_lab

MODULES = [
    info.name
    for package in (epsilot, epsilot_lab)
    for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}.")
    if not info.name.endswith("__main__")
]
# Frameworks that may not be installed, by the modules that need them.
NEEDS = {"epsilot.torch": "torch", "epsilot.jax": "jax", "epsilot.distributed": "distributed"}
NEEDS |= {
    "epsilot.applications.domain_adaptation": "sklearn",
    "epsilot.engine.result": "matplotlib",
    "epsilot.display.results": "matplotlib",
}
NEEDS |= {"epsilot.applications.color_transfer": "sklearn"}
NEEDS |= {"epsilot.frameworks.torch": "torch", "epsilot.frameworks.jax": "jax"}
NEEDS |= {"epsilot.adapters.torchcfm": "torch", "epsilot.adapters.ott": "ott"}
NEEDS |= {"epsilot.frameworks.front": "torch"}  # its examples are in PyTorch
# Examples whose first line connects to workers; tests/cluster has clusters of its own.
ELSEWHERE = "epsilot.distributed"


def examples(name):
    """Return the docstrings of a module that hold examples."""
    for module, needed in NEEDS.items():
        if name == module or name.startswith(f"{module}."):
            pytest.importorskip(needed)
    found = doctest.DocTestFinder(exclude_empty=True).find(importlib.import_module(name), name)
    return [test for test in found if test.examples]


@pytest.mark.parametrize("name", [m for m in MODULES if not m.startswith(ELSEWHERE)])
def test_examples_of_docstrings(name, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    runner = doctest.DocTestRunner(optionflags=doctest.NORMALIZE_WHITESPACE)
    report = []
    for test in examples(name):
        runner.run(test, out=report.append)
    assert not runner.failures, "".join(report)


RESULTS = [
    "Certificate",
    "Distance",
    "Record",
    *(x for x in epsilot.__all__ if x.endswith("Result")),
]
RESULTS += ["Certificate", "Distance", "GromovBounds", "Record"]
# What a batch needs to solve a problem again.
INTERNAL = {"codes", "pairing", "digest", "saved_keywords", "source", "request", "first_solved"}
INTERNAL |= {"runs", "solve_again"}


@pytest.mark.parametrize("name", RESULTS)
def test_every_field_of_a_result_is_documented(name):
    """Fields are in the section Attributes, which API pages show; properties have docstrings."""
    cls = getattr(epsilot, name)
    section = inspect.getdoc(cls).partition("Attributes\n----------\n")[2]
    listed = re.findall(r"^(\w+(?:, \w+)*)(?: : .*)?$", section, re.MULTILINE)
    documented = {field for names in listed for field in names.split(", ")}
    fields = {f.name for f in dataclasses.fields(cls)} if dataclasses.is_dataclass(cls) else set()
    fields |= {field for field in inspect.get_annotations(cls) if not field.startswith("_")}
    assert fields - INTERNAL <= documented
    for field, value in vars(cls).items():
        if isinstance(value, property | functools.cached_property):
            assert value.__doc__, field


PUBLIC = [name for name in epsilot.__all__ if inspect.isroutine(getattr(epsilot, name))]
METHODS = [
    f"{owner}.{name}"
    for owner in ("Result", "BatchResult")
    for name, value in vars(getattr(epsilot, owner)).items()
    if inspect.isfunction(value) and not name.startswith("_")
]


@pytest.mark.parametrize("name", [*PUBLIC, *METHODS])
def test_what_users_call_has_an_example(name):
    owner, _, method = name.rpartition(".")
    value = getattr(getattr(epsilot, owner) if owner else epsilot, method)
    assert ">>> " in inspect.getdoc(value)
