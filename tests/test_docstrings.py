"""The examples of docstrings run, and what users call has one."""

import doctest
import importlib
import inspect
import pkgutil

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
}
NEEDS |= {"epsilot.applications.color_transfer": "sklearn"}
NEEDS |= {"epsilot.frameworks.torch": "torch", "epsilot.frameworks.jax": "jax"}
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
