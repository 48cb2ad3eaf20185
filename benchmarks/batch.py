"""What batches cost and what they save: operations and seconds against B, for several n.

    python benchmarks/batch.py            # n = 400, 1024 and 2304
    python benchmarks/batch.py --quick    # n = 400

Corollary 1: batches cost √B more operations, which parallel rows must earn back. Each run is
solved to the same certified gap on one thread and on all of them; the times are the least of
several repeats on the solver's clock (rounds are interleaved, certificates are off the clock).
"""

from __future__ import annotations

import argparse
import math
import os

import numpy as np

import epsilot
from epsilot import parallel
from epsilot_lab.instances import images


def measure(n, batches, repeats, eps):
    """Print one table; return operations and seconds for each batch size."""
    side = math.isqrt(n)
    problem = images(side, 0)
    counts = (1, parallel.available())
    seconds = {(b, k): np.inf for b in batches for k in counts}
    runs = {}
    for _ in range(repeats):
        for b, k in seconds:
            runs[b] = epsilot.solve(
                *problem, eps=eps, method="pdasmd", batch_size=b, n_threads=k, seed=0
            )
            seconds[b, k] = min(seconds[b, k], runs[b].seconds)
    print(f"\nn = {side**2}, eps = {eps} of max C")
    print("     B  outer loops  operations  ms, 1 thread  ms, all threads  against B = 1")
    first = seconds[batches[0], counts[1]]
    for b in batches:
        run, one, many = runs[b], seconds[b, counts[0]], seconds[b, counts[1]]
        print(
            f"{b:6d}  {run.n_iter:11d}  {run.work.operations:10.3g}  {1e3 * one:12.2f}  "
            f"{1e3 * many:15.2f}  {many / first:13.2f}"
        )
    return {b: (runs[b].work.operations, seconds[b, counts[1]]) for b in batches}


def main(arguments=None):
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--quick", action="store_true", help="n = 400 only")
    parser.add_argument("--sizes", type=int, nargs="+", default=[400, 1024, 2304])
    parser.add_argument("--batches", type=int, nargs="+", default=[1, 2, 4, 8, 12, 16, 32])
    parser.add_argument("--repeats", type=int, default=5)
    parser.add_argument("--eps", type=float, default=0.02)
    chosen = parser.parse_args(arguments)
    load = os.getloadavg()[0] if hasattr(os, "getloadavg") else math.nan
    print(f"load of the machine: {load:.1f} (above its cores, batches keep to one thread)")
    sizes = [400] if chosen.quick else chosen.sizes
    return {n: measure(n, chosen.batches, chosen.repeats, chosen.eps) for n in sizes}


if __name__ == "__main__":
    main()
