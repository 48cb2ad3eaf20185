import ast
import subprocess
import sys
from collections import Counter
from graphlib import TopologicalSorter
from importlib import import_module
from pathlib import Path

import pytest

from epsilot.geometry import Geometry

SOURCE = Path(__file__).parents[1] / "src" / "epsilot"

# Each line may import from itself and from the lines above it.
LAYERS = [
    {"errors", "version", "_types", "arguments", "labels", "wording", "memory", "metrics"}
    | {"arithmetic", "deadline", "parallel", "processes"},
    {"kernels"},
    {"files"},
    {"geometry"},
    {"distributed"},
    {"problems"},
    {"finite_sum"},
    {"solvers"},
    {"theory", "display"},
    {"engine"},
    {"barycenters", "graphs", "gromov"},
    {"api"},
    {"__init__"},  # the public names, for whatever is built on them
    {"applications"},
    {"frameworks"},
    {"torch", "jax"},  # public names of the adapters among the frameworks
    {"pot", "scipy"},  # names of other libraries
    {"adapters"},  # parts of other libraries that take our solvers
    {"cli", "__main__"},
]
RANK = {name: rank for rank, names in enumerate(LAYERS) for name in names}

MODULES = sorted(path.relative_to(SOURCE) for path in SOURCE.rglob("*.py"))
LAB = SOURCE.parent / "epsilot_lab"
HEAVY = [
    "epsilot_lab",
    "numba",
    "ot",
    "matplotlib",
    "rich",
    "scipy",
    "dask",
    "distributed",
    "torch",
    "jax",
]


def layer(module: Path) -> str:
    """Return the first name below the package: the layer a file belongs to."""
    return module.parts[0].removesuffix(".py")


def is_layer(name: str) -> bool:
    return (SOURCE / f"{name}.py").exists() or (SOURCE / name).is_dir()


def absolute_name(node: ast.ImportFrom, module: Path) -> list[str]:
    """Return the parts of what a from-import imports from, relative dots resolved."""
    name = node.module.split(".") if node.module else []
    if node.level == 0:
        return name
    package = ["epsilot", *module.parts[:-1]]
    return package[: len(package) - node.level + 1] + name


def imports(module: Path, *, for_types: bool = True) -> list[list[str]]:
    """Return the parts of every name that a file imports, anywhere in it.

    With ``for_types=False``, imports that only type checkers see are left out.
    """
    imported: list[list[str]] = []
    tree = ast.parse((SOURCE / module).read_text(encoding="utf-8"))
    if not for_types:
        tree.body = [x for x in tree.body if ast.unparse(x)[:16] != "if TYPE_CHECKING"]
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            imported += [alias.name.split(".") for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            origin = absolute_name(node, module)
            imported += [[*origin, alias.name] for alias in node.names]
    return imported


def imported_layers(module: Path) -> set[str]:
    """Return the layers of epsilot that a file imports, anywhere in it."""
    inside = [parts[1:] for parts in imports(module) if parts[0] == "epsilot"]
    return {parts[0] if parts and is_layer(parts[0]) else "__init__" for parts in inside}


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_imports_only_from_layers_above(module):
    own = layer(module)
    assert own in RANK, f"{module} belongs to no layer: add {own!r} to LAYERS in {__file__}."
    forbidden = {} if own == "__init__" else imported_layers(module) - allowed(own)
    assert not forbidden, (
        f"{module} (layer {own!r}) imports {sorted(forbidden)}; it may import only from its own "
        f"layer and those before it: {sorted(allowed(own))}."
    )


def needed_modules() -> dict[str, set[str]]:
    """Return the modules that each module imports at run time, also inside of functions."""
    names = {".".join(["epsilot", *m.with_suffix("").parts]): m for m in MODULES}
    names = {name.removesuffix(".__init__"): module for name, module in names.items()}
    found: dict[str, set[str]] = {}
    for name, module in names.items():
        dotted = (".".join(parts) for parts in imports(module, for_types=False))
        origins = {x if x in names else x.rpartition(".")[0] for x in dotted}
        found[name] = (origins & names.keys()) - {name}
    return found


def test_no_import_closes_a_cycle():
    TopologicalSorter(needed_modules()).prepare()  # raises CycleError


@pytest.mark.parametrize("module", MODULES, ids=str)
def test_the_library_never_imports_the_laboratory(module):
    assert not [parts for parts in imports(module) if parts[0] == "epsilot_lab"]


def test_a_class_name_has_one_meaning():
    found = Counter(
        node.name
        for package in (SOURCE, LAB)
        for path in package.rglob("*.py")
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.ClassDef)
    )
    assert [name for name, count in found.items() if count > 1] == []


#: Layers that ask a geometry what it can do, and never which one it is.
ASKING = {
    "problems",
    "finite_sum",
    "solvers",
    "theory",
    "display",
    "engine",
    "barycenters",
    "graphs",
    "gromov",
}


#: Geometries that a file makes itself: no user's, and never asked for.
MADE = {
    "problems/objective.py": {"ConstantCost"},  # the cost that is the least one everywhere
    "engine/saved_result.py": {"UnsavedCost"},  # the place of the costs, which are not saved
    "problems/relative.py": {"Tilted"},  # a cost plus the logarithms of the weights
}


def geometries() -> set[str]:
    """Return the names of all geometries."""
    for path in (SOURCE / "geometry").glob("*.py"):
        import_module(f"epsilot.geometry.{path.stem}")
    found = [Geometry]
    for cls in found:
        found += [sub for sub in cls.__subclasses__() if sub.__module__.startswith("epsilot.")]
    return {cls.__name__ for cls in found} - {"Geometry"}


#: Modules beside solvers that take steps, and why. One of them has the loop of every run.
STEPPING = {
    "engine/driver.py": "the loop of a run",
    "engine/warming.py": "compiles a method on a tiny problem",
    "engine/one_line.py": "takes the one step of a problem on a line",
    "barycenters/column_generation.py": "a solver that starts by the steps of another one",
}


def test_one_loop_takes_the_steps_of_every_solver():
    found = set()
    for module in (m for m in MODULES if layer(m) not in ("solvers", "finite_sum")):
        for node in ast.walk(ast.parse((SOURCE / module).read_text(encoding="utf-8"))):
            is_call = isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute)
            if is_call and node.func.attr == "step":
                found.add(module.as_posix())
    assert "engine/driver.py" in found
    assert found <= STEPPING.keys(), "let engine/driver run the solver"


@pytest.mark.parametrize("module", [m for m in MODULES if layer(m) in ASKING], ids=str)
def test_no_solver_and_no_driver_names_a_geometry(module):
    named = {
        parts[-1] for parts in imports(module) if parts[1:2] in (["geometry"], ["distributed"])
    }
    assert not named & geometries() - MADE.get(module.as_posix(), set()), (
        "ask a method of the protocol (geometry/base.py)"
    )


@pytest.mark.parametrize("module", [m for m in MODULES if layer(m) in ASKING], ids=str)
def test_no_solver_and_no_driver_computes_all_rows_as_one_block(module):
    for node in ast.walk(ast.parse((SOURCE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.args:
            is_first = isinstance(node.args[0], ast.Constant) and node.args[0].value == 0
            assert not (node.func.attr == "block" and is_first), "use matrix() or sweep()"


def test_geometries_are_found():
    assert {
        "Dense",
        "PointCloud",
        "StoredCloud",
        "Grid",
        "Extended",
        "ConstantCost",
    } <= geometries()


def allowed(own: str) -> set[str]:
    return {name for name, rank in RANK.items() if rank <= RANK[own]}


@pytest.mark.parametrize(
    ("module", "source", "expected"),
    [
        ("driver.py", "import epsilot.cli.main", {"cli"}),
        ("driver.py", "from epsilot import kernels, solve", {"kernels", "__init__"}),
        ("driver.py", "from .solvers import sinkhorn", {"solvers"}),
        ("solvers/sinkhorn.py", "from ..work import Work", {"work"}),
        ("solvers/sinkhorn.py", "from .. import work", {"work"}),
        ("solvers/sinkhorn.py", "from . import registry", {"solvers"}),
        ("solvers/sinkhorn.py", "def f():\n    from epsilot.driver import drive", {"driver"}),
        ("driver.py", "import numpy\nfrom scipy import special", set()),
    ],
)
def test_every_form_of_import_is_seen(module, source, expected, tmp_path, monkeypatch):
    for name in ["kernels", "solvers", "cli"]:
        (tmp_path / name).mkdir()
    for name in ["work", "driver"]:
        (tmp_path / f"{name}.py").touch()
    (tmp_path / module).write_text(source)
    monkeypatch.setitem(globals(), "SOURCE", tmp_path)
    assert imported_layers(Path(module)) == expected


@pytest.mark.parametrize("module", [m for m in MODULES if m.parts[0] != "kernels"], ids=str)
def test_constructors_of_many_values_are_called_by_name(module):
    for node in ast.walk(ast.parse((SOURCE / module).read_text(encoding="utf-8"))):
        if isinstance(node, ast.Call):
            name = ast.unparse(node.func).rpartition(".")[2]
            is_constructor = name[:1].isupper() and not name.isupper()
            assert not is_constructor or len(node.args) <= 7, (
                f"{module}:{node.lineno}: {name} takes {len(node.args)} values; name them."
            )


def test_import_is_light():
    script = f"import sys, epsilot; print([name for name in {HEAVY} if name in sys.modules])"
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=True
    )
    assert done.stdout.strip() == "[]", f"import epsilot must not import {done.stdout.strip()}."
