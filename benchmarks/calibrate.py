"""Fit the cost models behind method="auto" on this machine, and print them as JSON.

python benchmarks/calibrate.py [--quick] [--out src/epsilot/data/cost_models.json]
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

import epsilot
from epsilot.geometry import Dense, PointCloud
from epsilot.images import grid_cost, synthetic_pair


def instances(n, seed):
    """Yield an image problem and two point problems of about n sources and targets."""
    rng = np.random.default_rng(seed)
    side = round(n**0.5)
    A, B = synthetic_pair(side, seed)
    yield Dense(grid_cost((side, side))), A.ravel(), B.ravel()
    X, Y = rng.random((2, n, 2))
    for metric in ("sqeuclidean", "euclidean"):
        yield Dense(PointCloud(X, Y, metric).block(0, n)), None, None


def seconds(method, problem, rtol=0.01):
    """Return the median wall time of a solve, over as many as fit into a third of a second."""
    times = []
    while not times or (sum(times) < 0.3 and len(times) < 25):
        began = time.perf_counter()
        epsilot.solve(*problem, rtol=rtol, method=method)
        times.append(time.perf_counter() - began)
    return float(np.median(times))


def fitted(entries, times, power):
    """Return overhead, dense and scale of the model, by nonnegative relative least squares."""
    x = np.array(entries, dtype=float)
    columns = np.stack([np.ones_like(x), x, (2 * np.sqrt(x)) ** power], axis=1)
    weights = 1 / np.array(times)
    (overhead, dense, scale), _ = nnls(columns * weights[:, None], np.ones_like(x))
    return {"overhead": overhead, "dense": dense, "scale": scale, "power": power}


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    sizes = (256, 400) if options.quick else (256, 324, 400, 529, 784, 1024, 1600, 2304)
    for problem in instances(64, 0):  # compile
        for method in ("exact", "restricted_simplex"):
            seconds(method, problem)

    exact, restricted, fine, entries = [], [], [], []
    for n in sizes:
        for problem in instances(n, 0):
            entries.append(problem[0].shape[0] * problem[0].shape[1])
            exact.append(seconds("exact", problem))
            restricted.append(seconds("restricted_simplex", problem))
            fine.append(seconds("restricted_simplex", problem, 1e-6))
            print(
                f"n = {n}: exact {exact[-1]:.4f} s, restricted {restricted[-1]:.4f} s "
                f"(to 1e-6 {fine[-1]:.4f} s)", flush=True,
            )  # fmt: skip
    model = fitted(entries, restricted, 1.5)
    dense = 2 * model["dense"]  # of one thread
    models = {
        "exact": {**fitted(entries, exact, 2.5), "bytes": 24},
        "restricted_simplex": {
            **model, "dense": dense, "lazy": 1.6 * dense,
            "fine": float(np.mean(np.array(fine) / restricted)),
        },
    }  # fmt: skip
    text = json.dumps(models, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
