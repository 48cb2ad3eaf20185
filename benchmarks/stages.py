"""Where the time of method="auto" goes, stage by stage, beside ot.emd2.

python benchmarks/stages.py [--problems points2] [--sizes 256 4096] [--rtol 1e-2 1e-6] [--seeds 2]

Milliseconds of wall time, medians over repeated solves of each seed; "other" is what remains:
checks of the input, the driver, the result.
"""

from __future__ import annotations

import argparse
import statistics
import time
from collections import Counter
from collections.abc import Callable
from typing import Any

import epsilot
from epsilot.run import driver
from epsilot.solvers import exact, restricted_simplex
from epsilot.studies.peers.problems import FAMILIES
from timing import repeated

STAGES: dict[str, list[tuple[Any, str]]] = {
    "sweeps": [(restricted_simplex.RestrictedSimplex, "_sweep")],
    "arcs": [(restricted_simplex.RestrictedSimplex, "_open")],
    "simplex": [(restricted_simplex.RestrictedSimplex, "_pivots"), (exact, "simplex")],
    "certificates": [(driver.Driver, "_evaluate")],
}
COLUMNS = ["n", "problem", "rtol", "emd2", "ours", "times faster", "rounds", *STAGES, "other"]


def watched(spent: Counter[str]) -> None:
    """Wrap the functions of each stage so that they add their seconds to ``spent``."""
    for stage, places in STAGES.items():
        for owner, name in places:
            setattr(owner, name, _timed(getattr(owner, name), stage, spent))


def _timed(function: Callable[..., Any], stage: str, spent: Counter[str]) -> Callable[..., Any]:
    def timed(*arguments: Any) -> Any:
        began = time.perf_counter()
        found = function(*arguments)
        spent[stage] += time.perf_counter() - began
        spent[f"calls of {stage}"] += 1
        return found

    return timed


def row(family: str, size: int, rtol: float, seeds: int, spent: Counter[str], budget: float) -> str:
    """Return one line of the table."""
    import ot

    samples: dict[str, list[float]] = {name: [] for name in (*STAGES, "ours", "emd2", "rounds")}
    for seed in range(seeds):
        M, a, b = FAMILIES[family].build(size, seed)

        def ours(M: Any = M, a: Any = a, b: Any = b) -> None:
            spent.clear()
            result = epsilot.solve(M, a, b, rtol=rtol)
            assert result.converged
            for stage in STAGES:
                samples[stage].append(spent[stage])
            samples["rounds"].append(max(spent["calls of certificates"], 1))

        samples["emd2"] += repeated(
            lambda M=M, a=a, b=b: ot.emd2(a, b, M, numItermax=10**8), budget
        )
        samples["ours"] += repeated(ours, budget, 2)
    median = {name: statistics.median(values) for name, values in samples.items()}
    other = median["ours"] - sum(median[stage] for stage in STAGES)
    cells = [
        str(FAMILIES[family].n_points(size)), FAMILIES[family].label, f"{rtol:g}",
        *(f"{1e3 * median[name]:.3g}" for name in ("emd2", "ours")),
        f"{median['emd2'] / median['ours']:.2f}", f"{median['rounds']:.0f}",
        *(f"{1e3 * x:.3g}" for x in (*(median[stage] for stage in STAGES), other)),
    ]  # fmt: skip
    return "| " + " | ".join(cells) + " |"


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--problems", nargs="+", default=["images", "points2-squared", "points2"])
    parser.add_argument("--sizes", nargs="+", type=int, default=[256, 1024, 4096, 8192])
    parser.add_argument("--rtol", nargs="+", type=float, default=[1e-2, 1e-6])
    parser.add_argument("--seeds", type=int, default=2)
    parser.add_argument("--budget", type=float, default=0.5, help="seconds a problem is repeated")
    options = parser.parse_args()
    spent: Counter[str] = Counter()
    watched(spent)
    for method in ("exact", "restricted_simplex"):  # compile
        epsilot.solve(*FAMILIES["points2"].build(64, 0), method=method)
    print("| " + " | ".join(COLUMNS) + " |\n" + "|---" * len(COLUMNS) + "|")
    for size in options.sizes:
        for family in options.problems:
            for rtol in options.rtol:
                print(row(family, size, rtol, options.seeds, spent, options.budget), flush=True)


if __name__ == "__main__":
    main()
