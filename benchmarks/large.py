"""Large problems, exactly and to 1 %: processor and wall seconds, peak memory, certified gap.

    python benchmarks/large.py OUT.jsonl            # what is missing of the table
    python benchmarks/large.py OUT.jsonl --show     # the medians of what is there

Every solve is a process of its own, whose kernels are compiled before the clock starts; a line of
the file is one solve, and lines that are there are not run again.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import Any

import numpy as np

import epsilot

#: name -> kind, points (or pixels a side), dimension, metric, whether weights are random
CASES: dict[str, tuple[str, int, int, str, bool]] = {
    "2-d squared, uniform": ("points", 100_000, 2, "sqeuclidean", False),
    "2-d squared, random weights": ("points", 100_000, 2, "sqeuclidean", True),
    "2-d Euclidean, uniform": ("points", 100_000, 2, "euclidean", False),
    "3-d squared, random weights": ("points", 100_000, 3, "sqeuclidean", True),
    "white noise 64 x 64, squared": ("image", 64, 2, "sqeuclidean", True),
    "white noise 128 x 128, squared": ("image", 128, 2, "sqeuclidean", True),
    "white noise 256 x 256, squared": ("image", 256, 2, "sqeuclidean", True),
    "2-d squared, uniform, a million": ("points", 1_000_000, 2, "sqeuclidean", False),
}
TARGETS = (1e-2, 1e-9)
N_SEEDS = 3


def solve(case: str, seed: int, rtol: float, scale: float) -> epsilot.Result:
    """Solve one instance, of a share of its size."""
    kind, size, d, metric, has_weights = CASES[case]
    size = max(2, round(scale * size))
    rng = np.random.default_rng([seed, size, d])
    keywords = {"metric": metric, "rtol": rtol, "method": "auction", "on_limit": "ignore"}
    if kind == "image":
        return epsilot.solve_grid(*(_unit(rng.random((size, size))) for _ in "ab"), **keywords)
    X, Y = rng.random((2, size, d))
    a, b = (_unit(rng.random(size) + 0.01) if has_weights else None for _ in "ab")
    return epsilot.solve_sample(X, Y, a, b, lazy=True, **keywords)


def _unit(x: Any) -> Any:
    return x / x.sum()


def child(case: str, seed: int, rtol: float, scale: float) -> None:
    """Print what one solve took, as a line of JSON."""
    _, _, d, metric, _ = CASES[case]
    small = np.random.default_rng(0).random((2, 400, d))
    epsilot.solve_sample(*small, metric=metric, lazy=True, method="auction")
    epsilot.solve_grid(np.ones((4, 4)), np.ones((4, 4)), metric="sqeuclidean", method="auction")
    cpu, wall = time.process_time(), time.perf_counter()
    result = solve(case, seed, rtol, scale)
    line = {
        "case": case, "seed": seed, "rtol": rtol, "gap": result.gap / result.value,
        "cpu": time.process_time() - cpu, "wall": time.perf_counter() - wall,
        "MiB": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024,
        "converged": result.converged, "value": result.value,
    }  # fmt: skip
    print(json.dumps(line))


def read(path: Path) -> list[dict[str, Any]]:
    """Return the solves of a file."""
    return [json.loads(x) for x in path.read_text().splitlines()] if path.exists() else []


def run(path: Path, names: list[str], n_seeds: int, scale: float) -> None:
    """Run what is missing, one process a solve."""
    done = {(x["case"], x["seed"], x["rtol"]) for x in read(path)}
    for seed in range(n_seeds):
        for case in names:
            for rtol in TARGETS:
                if (case, seed, rtol) in done:
                    continue
                numbers = map(str, (seed, rtol, scale))
                command = [sys.executable, __file__, "--child", case, *numbers]
                made = subprocess.run(command, capture_output=True, text=True, check=True)
                with path.open("a") as file:
                    file.write(made.stdout.splitlines()[-1] + "\n")
                print(made.stdout.splitlines()[-1], flush=True)


def show(path: Path) -> None:
    """Print the medians as a table."""
    print("| problem | to | processor s | wall s | peak MiB | largest gap | runs |")
    print("|---|---|---|---|---|---|---|")
    lines = read(path)
    for case in CASES:
        for rtol in TARGETS:
            mine = [x for x in lines if (x["case"], x["rtol"]) == (case, rtol)]
            if mine:
                cpu, wall, size = (median(x[key] for x in mine) for key in ("cpu", "wall", "MiB"))
                gap = max(x["gap"] for x in mine)
                print(
                    f"| {case} | {rtol:g} | {cpu:.2f} | {wall:.2f} | {size:.0f} | {gap:.0e} "
                    f"| {len(mine)} |"
                )


def main(argv: Sequence[str] | None = None) -> None:
    """Run, show, or be the process of one solve."""
    argv = sys.argv[1:] if argv is None else argv
    if argv[:1] == ["--child"]:
        child(argv[1], int(argv[2]), float(argv[3]), float(argv[4]))
        return
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("path", type=Path)
    parser.add_argument("--cases", nargs="*", default=list(CASES), choices=list(CASES))
    parser.add_argument("--seeds", type=int, default=N_SEEDS)
    parser.add_argument("--scale", type=float, default=1.0, help="share of the sizes, for a trial")
    parser.add_argument("--show", action="store_true")
    options = parser.parse_args(argv)
    if not options.show:
        run(options.path, options.cases, options.seeds, options.scale)
    show(options.path)


if __name__ == "__main__":
    main()
