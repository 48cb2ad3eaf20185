"""Measure every method on one problem, for the table that ``epsilot methods`` prints.

Median over three pairs of the paper's synthetic images (n = 144) of the operations to a certified
gap of 0.02 max C; methods that need more than a minute are marked.

python -m epsilot_lab registry [--quick] [--out src/epsilot/data/measured.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

import epsilot

from ..instances import images

SIDE, EPS, SEEDS, SECONDS = 12, 0.02, 3, 60


def measure(name: str, side: int, eps: float, n_seeds: int) -> str:
    """Return the operations of a method, or what became of it."""
    counts = []
    for seed in range(n_seeds):
        goal = {"eps": eps, "method": name, "max_seconds": SECONDS, "on_limit": "ignore"}
        result = epsilot.solve(*images(side, seed), **goal)
        if not result.converged:
            return f"> {result.work.operations:.0e}"
        if "pivot" in result.work.units:
            return "not counted"
        counts.append(result.work.operations)
    return f"{median(counts):.1e}"


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="n = 9, to see that all run")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    known = json.loads(options.out.read_text()) if options.out else {}
    found = []
    for method in (method for method in epsilot.methods() if method.costs == "any"):
        size = (3, 0.5, 1) if options.quick else (SIDE, EPS, SEEDS)
        operations = measure(method.name, *size)
        print(f"{method.name:24s} {operations}", flush=True)
        record = {"growth": {}} | known.get(method.name, {}) | {"operations": operations}
        found.append(f'  "{method.name}": {json.dumps(record)}')
    if options.out:
        options.out.write_text("{\n" + ",\n".join(found) + "\n}\n")
