"""Fit the cost models behind method="auto" on this machine, and print them as JSON.

python benchmarks/calibrate.py [--quick] [--out src/epsilot/data/cost_models.json]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np

import epsilot
from epsilot.geometry import Dense, PointCloud
from epsilot.images import grid_cost, synthetic_pair


def instances(n, seed):
    """Yield an image problem and a point problem of about n sources and targets."""
    rng = np.random.default_rng(seed)
    side = round(n**0.5)
    A, B = synthetic_pair(side, seed)
    yield Dense(grid_cost((side, side))), A.ravel(), B.ravel()
    cloud = PointCloud(rng.random((n, 2)), rng.random((n, 2)))
    yield Dense(cloud.block(0, n)), None, None


def seconds(method, *problem, repeats=3):
    """Return the least wall time of a solve to 1 %."""
    best = float("inf")
    for _ in range(repeats):
        began = time.perf_counter()
        epsilot.solve(*problem, rtol=0.01, method=method)
        best = min(best, time.perf_counter() - began)
    return best


def power_law(x, t):
    """Return scale and power of the least-squares fit in logarithms."""
    power, scale = np.polyfit(np.log(x), np.log(t), 1)
    return float(np.exp(scale)), float(power)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sizes = (256, 400, 784) if options.quick else (256, 400, 784, 1024, 1600, 2304)
    for problem in instances(64, 0):  # compile
        for method in ("exact", "restricted_simplex"):
            seconds(method, *problem, repeats=1)

    exact, restricted, entries = [], [], []
    for n in sizes:
        for problem in instances(n, 0):
            entries.append(problem[0].shape[0] * problem[0].shape[1])
            exact.append(seconds("exact", *problem))
            restricted.append(seconds("restricted_simplex", *problem))
            print(
                f"n = {n}: exact {exact[-1]:.4f} s, restricted {restricted[-1]:.4f} s", flush=True
            )
    scale, power = power_law(entries, exact)

    # restricted = overhead + dense nm / 2 + scale (n + m)^1.5, nonnegative least squares
    from scipy.optimize import nnls

    x = np.array(entries, dtype=float)
    columns = np.stack([np.ones_like(x), x / 2, (2 * np.sqrt(x)) ** 1.5], axis=1)
    weights = 1 / np.array(restricted)
    (overhead, dense, simplex), _ = nnls(columns * weights[:, None], np.ones_like(x))
    models = {
        "exact": {"scale": scale, "power": power, "bytes": 24},
        "restricted_simplex": {
            "dense": dense, "lazy": 1.6 * dense, "scale": simplex, "power": 1.5,
            "overhead": overhead,
        },
    }  # fmt: skip
    text = json.dumps(models, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
