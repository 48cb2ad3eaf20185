"""List the versions and numerics that produced the results of a folder.

    python -m epsilot_lab results docs/results

A folder is current if all its lines carry the fingerprint of the installed code
(``environment.numerics``). Other folders may differ in their last bits, operations or times.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator, Sequence
from pathlib import Path

from ..document import markdown_row
from ..environment import numerics

UNKNOWN = "–"


def stamps(folder: Path) -> Iterator[tuple[str, str]]:
    """Yield version and fingerprint of every line, or of the run's environment file."""
    environment = folder / "environment.json"
    if environment.exists():
        versions = json.loads(environment.read_text(encoding="utf-8"))["versions"]
        yield versions["epsilot"], versions.get("numerics", UNKNOWN)
        return
    for path in sorted(folder.glob("*.jsonl")):
        for text in path.read_text(encoding="utf-8").splitlines():
            line = json.loads(text)
            versions = line.get("versions", {})
            version = versions.get("epsilot") or line.get("version") or UNKNOWN
            yield version, versions.get("numerics", UNKNOWN)


def row(folder: Path) -> tuple[str, ...]:
    """Return the cells of a folder."""
    found = list(stamps(folder))
    columns = list(zip(*found, strict=True)) or [(UNKNOWN,), (UNKNOWN,)]
    is_current = set(columns[1]) == {numerics()}
    texts = (", ".join(sorted(set(column))) for column in columns)
    return folder.name, *texts, "yes" if is_current else "no"


def main(argv: Sequence[str] | None = None) -> None:
    """Print one row per folder."""
    parser = argparse.ArgumentParser(prog="python -m epsilot_lab results")
    parser.add_argument("folder", type=Path, nargs="?", default=Path("docs/results"))
    options = parser.parse_args(argv)
    print(markdown_row(("folder", "epsilot", "numerics", "current")))
    print(markdown_row(("---",) * 4))
    for folder in sorted(path for path in options.folder.iterdir() if path.is_dir()):
        print(markdown_row(row(folder)))
