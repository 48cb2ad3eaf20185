"""Measure every method on one problem, for the table that ``epsilot methods`` prints.

Median over three pairs of the paper's synthetic images (n = 144) of the operations to a certified
gap of 0.02 max C; methods that need more than a minute are marked.

python benchmarks/methods.py [--out src/epsilot/data/measured.json]
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from statistics import median

import epsilot
from epsilot.files.images import grid_cost, synthetic_pair

SIDE, EPS, SEEDS, SECONDS = 12, 0.02, 3, 60


def measure(name: str) -> str:
    """Return the operations of a method, or what became of it."""
    M, counts = grid_cost((SIDE, SIDE)), []
    for seed in range(SEEDS):
        A, B = synthetic_pair(SIDE, seed)
        result = epsilot.solve(
            M, A.ravel(), B.ravel(), eps=EPS, method=name, max_seconds=SECONDS, on_limit="ignore"
        )
        if not result.converged:
            return f"> {result.work.operations:.0e}"
        if "pivot" in result.work.units:
            return "not counted"
        counts.append(result.work.operations)
    return f"{median(counts):.1e}"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    known = json.loads(options.out.read_text()) if options.out else {}
    found = []
    for method in epsilot.methods():
        operations = measure(method.name)
        print(f"{method.name:24s} {operations}", flush=True)
        record = {"growth": {}} | known.get(method.name, {}) | {"operations": operations}
        found.append(f'  "{method.name}": {json.dumps(record)}')
    if options.out:
        options.out.write_text("{\n" + ",\n".join(found) + "\n}\n")


if __name__ == "__main__":
    main()
