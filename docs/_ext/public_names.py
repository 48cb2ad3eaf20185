"""The API reference, from the public names themselves: ``api/index.rst`` and a page for each."""

import inspect
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import ModuleType

from sphinx.application import Sphinx
from sphinx.config import Config

import epsilot

#: Modules that are public as such, what they need, and the page that explains them.
MODULES = {
    "epsilot.torch": ("torch", "gradients"),
    "epsilot.jax": ("jax", "gradients"),
    "epsilot.distributed": ("distributed", "cluster"),
    "epsilot.adapters.torchcfm": ("torch", "adapters"),
    "epsilot.adapters.gudhi": ("", "adapters"),
    "epsilot.adapters.ott": ("ott", "adapters"),
    "epsilot.finite_sum": ("", "finite_sum"),
    "epsilot.theory": ("", "theory"),
}
#: Names by task. Public names in no list form the sections of other functions and classes.
TASKS = {
    "Solve one problem": (
        "solve",
        "solve_sample",
        "solve_grid",
        "solve_graph",
        "solve_gromov",
        "exact",
    ),
    "Distances": ("wasserstein", "wasserstein_1d", "wasserstein_grid", "Distance"),
    "Many problems": ("solve_batch", "solve_sample_batch", "pairwise"),
    "Barycentres": ("barycenter", "barycenter_grid", "barycenter_sample"),
    "Check and compare": ("certify", "round_plan", "gromov_bounds", "methods"),
    "Prepare": ("warmup",),
    "scikit-learn estimators": (
        "ColorTransfer",
        "DomainAdapter",
        "PairwiseTransport",
        "ShapeMatcher",
    ),
    "Costs": ("Geometry", "Dense", "PointCloud", "Grid", "Sparse"),
}
#: Classes of answers whose names do not end so.
RESULTS = ("Certificate", "Plan", "Record", "Status")
TEMPLATE = """{title}
{line}

{text}

.. {directive}:: {module}

.. autosummary::
   :toctree: .

{names}

"""


def section(title: str, text: str, module: str, names: list[str], *, is_first: bool) -> str:
    """Return a heading and a table of names; the first table of a module declares it."""
    lines = "\n".join(f"   {name}" for name in names)
    return TEMPLATE.format(
        title=title,
        line="-" * len(title),
        text=text,
        module=module,
        directive="module" if is_first else "currentmodule",
        names=lines,
    )


def tasks(names: list[str]) -> dict[str, list[str]]:
    """Return the names of the package itself by task, then results, errors and all others."""
    found = {title: [name for name in wanted if name in names] for title, wanted in TASKS.items()}
    rest: dict[str, list[str]] = {
        "Results": [],
        "Other functions": [],
        "Other classes": [],
        "Errors and warnings": [],
    }
    listed = {name for wanted in TASKS.values() for name in wanted}
    for name in names:
        value = getattr(epsilot, name)
        if name in listed or isinstance(value, (ModuleType, str)):
            continue
        if not inspect.isclass(value):
            rest["Other functions"].append(name)
        elif issubclass(value, BaseException):
            rest["Errors and warnings"].append(name)
        else:
            is_result = name.endswith("Result") or name in RESULTS
            rest["Results" if is_result else "Other classes"].append(name)
    return {title: listed for title, listed in {**found, **rest}.items() if listed}


def write(app: Sphinx, _: Config) -> None:
    """Write the index, before anybody looks for pages."""
    text = ".. _api:\n\nAPI reference\n=============\n\n"
    text += (
        "All public names, by task. Modules that are not listed here may change without notice.\n\n"
    )
    sections = tasks([name for name in dir(epsilot) if name[0] != "_"])
    for k, (title, names) in enumerate(sections.items()):
        text += section(title, "", "epsilot", names, is_first=k == 0)
    described: set[object] = set()  # classes that two modules share have one page
    for module, (needed, page) in MODULES.items():
        explained = f"Explained on its page: :doc:`/{page}`."
        if needed and find_spec(needed) is None:
            text += f"{module}\n{'-' * len(module)}\n\nNot installed here. {explained}\n\n"
            continue
        public = {
            name: getattr(import_module(module), name) for name in import_module(module).__all__
        }
        names = [name for name, value in public.items() if value not in described]
        described |= {value for value in public.values() if inspect.isclass(value)}
        text += section(module, explained, module, names, is_first=True)
    index = Path(app.srcdir) / "api" / "index.rst"
    index.parent.mkdir(exist_ok=True)
    if not index.is_file() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")


def is_foreign(
    app: Sphinx, what: str, name: str, thing: object, skip: bool, _: object
) -> bool | None:
    """Leave out what a class inherits from other packages, whose documentation it is."""
    module = getattr(getattr(thing, "func", thing), "__module__", None)  # of a cached property
    return True if isinstance(module, str) and not module.startswith("epsilot") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the index as soon as the configuration is known."""
    app.connect("config-inited", write)
    app.connect("autodoc-skip-member", is_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
