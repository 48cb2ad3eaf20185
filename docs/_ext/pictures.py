"""Which scripts of the gallery can be drawn here."""

import ast
import re
from importlib.util import find_spec
from pathlib import Path

#: Modules that need an extra of their own: a script that imports one is left out without it.
OPTIONAL = {"torch": "torch", "jax": "jax", "epsilot.torch": "torch", "epsilot.jax": "jax"}


def imported(script: Path) -> set[str]:
    """Return the modules that a script imports."""
    names: set[str] = set()
    for node in ast.walk(ast.parse(script.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            names.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            names.add(node.module)
    return names


def missing(script: Path) -> set[str]:
    """Return what a script needs and is not installed."""
    needed = {OPTIONAL[name] for name in imported(script) & OPTIONAL.keys()}
    return {name for name in needed if find_spec(name) is None}


def missing_scripts(gallery: Path) -> str:
    """Return a pattern of the scripts that cannot run here, which the gallery then leaves out."""
    names = [path.name for path in sorted(gallery.glob("*.py")) if missing(path)]
    return "|".join([r"__init__\.py", *(rf"(^|/){re.escape(name)}$" for name in names)])
