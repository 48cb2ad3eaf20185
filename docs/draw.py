"""Run a script of the gallery and keep its last picture.

    python docs/draw.py docs/gallery/first_certificate.py docs/pictures/certificate.png
    python docs/draw.py docs/gallery/large_clouds.py /tmp/small.png N=2000

``NAME=VALUE`` replaces a number that the script gives a name in capital letters.
"""

from __future__ import annotations

import argparse
import ast
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

import matplotlib

matplotlib.use("Agg")
from matplotlib import pyplot as plt
from matplotlib.figure import Figure


def resized(tree: ast.Module, sizes: Mapping[str, object]) -> ast.Module:
    """Return a script with other values for some of its constants."""
    left = dict(sizes)
    for node in tree.body:
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
            name = node.targets[0].id
            if name in left:
                node.value = ast.parse(repr(left.pop(name)), mode="eval").body
    if left:
        raise KeyError(f"the script has no constant {sorted(left)}")
    return ast.fix_missing_locations(tree)


def run(
    script: Path, sizes: Mapping[str, object] | None = None
) -> tuple[Figure, dict[str, object]]:
    """Run a script as ``python script`` does; return its last figure, and its variables."""
    plt.close("all")
    tree = resized(ast.parse(script.read_text(encoding="utf-8")), sizes or {})
    folder, arguments = str(script.parent), sys.argv
    names: dict[str, object] = {"__name__": "__main__", "__file__": str(script)}
    sys.path.insert(0, folder)
    sys.argv = [str(script)]
    try:
        exec(compile(tree, str(script), "exec"), names)
    finally:
        sys.path.remove(folder)
        sys.argv = arguments
    return plt.figure(plt.get_fignums()[-1]), names


def main(argv: Sequence[str] | None = None) -> None:
    """Draw."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("script", type=Path)
    parser.add_argument("picture", type=Path)
    parser.add_argument("sizes", nargs="*", metavar="NAME=VALUE")
    options = parser.parse_args(argv)
    sizes = {name: ast.literal_eval(value) for name, value in (x.split("=") for x in options.sizes)}
    run(options.script, sizes)[0].savefig(options.picture, dpi=110)


if __name__ == "__main__":
    main()
