"""The map of the code in CONTRIBUTING.md names files that exist, in the order of the layers."""

import re
from pathlib import Path

from test_layers import RANK

ROOT = Path(__file__).parents[1]
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
#: Files that the build makes.
BUILT = {"docs/_build/html"}


def tree():
    """Yield the folder and the names of each line of the tree."""
    block = re.search(r"```text\nsrc/epsilot/\n(.*?)\n```", PAGE, re.DOTALL)[1]
    folder = Path("src/epsilot")
    for line in block.splitlines():
        names = re.match(r"\s+((?:[\w./]+(?:, )?)+)", line)[1].strip(", ").split(", ")
        depth = (len(line) - len(line.lstrip())) // 2
        parent = Path(*folder.parts[: 1 + depth])
        yield parent, names
        folder = parent / names[0] if names[0].endswith("/") else parent


def test_the_tree_names_existing_files():
    lines = list(tree())
    assert len(lines) > 20
    paths = [folder / name for folder, names in lines for name in names]
    missing = [str(path) for path in paths if not (ROOT / path).exists()]
    assert not missing, "correct the tree in CONTRIBUTING.md"


def test_the_tree_lists_every_folder_in_the_order_of_the_layers():
    top = [name for folder, names in tree() if folder == Path("src/epsilot") for name in names]
    folders = [name.rstrip("/") for name in top if name.endswith("/")]
    found = {path.parent.name for path in (ROOT / "src/epsilot").glob("*/__init__.py")}
    assert set(folders) == found
    ranks = [RANK[name.removesuffix(".py").rstrip("/")] for name in top]
    assert ranks == sorted(ranks)


def test_paths_in_the_text_exist():
    roots = [ROOT, ROOT / "src", ROOT / "src/epsilot", ROOT / "src/epsilot_lab"]
    paths = set(re.findall(r"`((?:\w+/)+[\w.]*)`", PAGE)) - BUILT
    assert len(paths) > 40
    missing = [path for path in sorted(paths) if not exists(path, roots)]
    assert not missing, "correct the paths in CONTRIBUTING.md"


def exists(path, roots):
    """Tell whether a path exists below one of the roots, or the module of a name in it."""
    module = f"{path.partition('.')[0]}.py"
    return any((root / path).exists() or (root / module).exists() for root in roots)
