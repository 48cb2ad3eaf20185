"""method="auto" beside ot.emd2 on costs and weights that the benchmark's families do not have.

python benchmarks/odd_costs.py [--size 2000] [--seeds 3]

Heavy-tailed weights, outliers, clusters, ties, long and wide matrices: what may surprise a method
that was tuned on clouds and images. Milliseconds of wall time, medians over seeds; every answer is
certified and compared with the exact value.
"""

from __future__ import annotations

import argparse
from statistics import median

import ot

import epsilot
from epsilot_lab import instances
from epsilot_lab.document import markdown_row
from epsilot_lab.instances import ODD_COSTS
from epsilot_lab.measuring import timed

COLUMNS = ("cost", "emd2", "to 1 %", "rounds", "×", "to 1e-6", "rounds", "×")


def measure(M, a, b) -> list[float]:
    """Return milliseconds of emd2, then milliseconds and rounds of ours to each accuracy."""
    theirs, value = timed(lambda: ot.emd2(a, b, M, numItermax=10**8))
    found = [1e3 * theirs.wall]
    for rtol in (1e-2, 1e-6):
        ours, result = timed(lambda: epsilot.solve(M, a, b, rtol=rtol))  # noqa: B023
        assert result.converged
        assert abs(result.value - value) <= max(rtol * abs(value), 1e-11 * M.max())
        found += [1e3 * ours.wall, len(result.history)]
    return found


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--size", type=int, default=2000)
    parser.add_argument("--seeds", type=int, default=3)
    options = parser.parse_args(arguments)
    n = options.size
    for method in ("exact", "restricted_simplex"):  # compile
        epsilot.solve(instances.random(64, 0)[0], method=method)
    print(f"n = {n}\n\n{markdown_row(COLUMNS)}\n" + "|---" * len(COLUMNS) + "|")
    for name, build in ODD_COSTS.items():
        rows = [measure(*build(n, seed)) for seed in range(options.seeds)]
        emd2, loose, rounds, tight, tight_rounds = (median(x) for x in zip(*rows, strict=True))
        cells = [
            name,
            f"{emd2:.0f}",
            f"{loose:.0f}",
            f"{rounds}",
            f"{emd2 / loose:.1f}",
            f"{tight:.0f}",
            f"{tight_rounds}",
            f"{emd2 / tight:.1f}",
        ]
        print(markdown_row(cells), flush=True)


if __name__ == "__main__":
    main()
