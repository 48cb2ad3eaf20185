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
    "epsilot.finite_sum": ("", "finite_sum"),
    "epsilot.theory": ("", "theory"),
}
#: Tables of a module that has one already.
AGAIN = ("Classes", "Errors and warnings")
TEMPLATE = """{title}
{line}

{text}

.. {directive}:: {module}

.. autosummary::
   :toctree: .

{names}

"""


def section(title: str, text: str, module: str, names: list[str]) -> str:
    """Return a heading and a table of names."""
    lines = "\n".join(f"   {name}" for name in names)
    return TEMPLATE.format(
        title=title,
        line="-" * len(title),
        text=text,
        module=module,
        directive="currentmodule" if title in AGAIN else "module",
        names=lines,
    )


def kinds(names: list[str]) -> dict[str, list[str]]:
    """Return the names of the package itself by what they are."""
    found: dict[str, list[str]] = {"Functions": [], "Classes": [], "Errors and warnings": []}
    for name in names:
        value = getattr(epsilot, name)
        if inspect.isclass(value):
            is_error = issubclass(value, Exception)
            found["Errors and warnings" if is_error else "Classes"].append(name)
        elif not isinstance(value, (ModuleType, str)):
            found["Functions"].append(name)
    return found


def write(app: Sphinx, _: Config) -> None:
    """Write the index, before anybody looks for pages."""
    text = ".. _api:\n\nAPI reference\n=============\n\n"
    text += "All that is public, as its docstrings have it. Other modules may change any day.\n\n"
    for title, names in kinds([name for name in dir(epsilot) if name[0] != "_"]).items():
        text += section(title, "", "epsilot", names)
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
        text += section(module, explained, module, names)
    index = Path(app.srcdir) / "api" / "index.rst"
    index.parent.mkdir(exist_ok=True)
    if not index.is_file() or index.read_text(encoding="utf-8") != text:
        index.write_text(text, encoding="utf-8")


def is_foreign(
    app: Sphinx, what: str, name: str, thing: object, skip: bool, _: object
) -> bool | None:
    """Leave out what a class inherits from other packages, whose documentation it is."""
    module = getattr(thing, "__module__", None)
    return True if isinstance(module, str) and not module.startswith("epsilot") else None


def setup(app: Sphinx) -> dict[str, bool]:
    """Write the index as soon as the configuration is known."""
    app.connect("config-inited", write)
    app.connect("autodoc-skip-member", is_foreign)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
