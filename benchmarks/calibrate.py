"""Fit the cost models behind method="auto" on this machine, and print them as JSON.

python benchmarks/calibrate.py [--quick] [--out src/epsilot/data/cost_models.json]
"""

from __future__ import annotations

import argparse
import json
from functools import partial
from pathlib import Path

import numpy as np
from scipy.optimize import nnls

import epsilot
from epsilot.files.images import synthetic_pair
from epsilot.geometry import Dense, PointCloud
from epsilot.kernels.small_simplex import is_small
from epsilot.studies.lab.instances import clouds, images
from epsilot.studies.lab.timing import repeated

#: Larger problems are too slow for the simplex on all arcs.
LARGEST_EXACT = 2304


def instances(n, seed):
    """Yield an image problem and two point problems of about n sources and targets."""
    M, a, b = images(round(n**0.5), seed)
    yield Dense(M), a, b
    X, Y = clouds(n, np.random.default_rng(seed))
    for metric in ("sqeuclidean", "euclidean"):
        yield Dense(PointCloud(X, Y, metric).block(0, n)), None, None


def seconds(method, problem):
    """Return the median wall time of a solve, over as many as fit into a third of a second."""
    run = partial(epsilot.solve, *problem, rtol=0.01, method=method)
    return repeated(run, 0.3).median.wall


def fitted(entries, times, power):
    """Return overhead, dense and scale of the model, by nonnegative relative least squares."""
    times = np.array(times)
    is_timed = np.isfinite(times)
    x, times = np.array(entries, dtype=float)[is_timed], times[is_timed]
    columns = np.stack([np.ones_like(x), x, (2 * np.sqrt(x)) ** power], axis=1)
    weights = 1 / times
    (overhead, dense, scale), _ = nnls(columns * weights[:, None], np.ones_like(x))
    return {"overhead": overhead, "dense": dense, "scale": scale, "power": power}


def flow_model(sides):
    """Time exact flows between the paper's images; return their cost model."""
    entries, times = [], []
    for side in sides:
        A, B = synthetic_pair(side, seed=0)
        run = partial(epsilot.solve_grid, A, B, rtol=1e-9, method="grid_flow", normalize=True)
        entries.append(A.size * B.size)
        times.append(repeated(run, 0.3).median.wall)
        print(f"{side} x {side}: {times[-1]:.4f} s grid_flow", flush=True)
    return {**fitted(entries, times, 1.6), "dense": 0.0, "bytes": 160}


def models(sizes):
    """Time the methods on all sizes; return their cost models."""
    small, exact, restricted, entries = [], [], [], []
    for n in sizes:
        for problem in instances(n, 0):
            entries.append(problem[0].shape[0] * problem[0].shape[1])
            small.append(seconds("small_simplex", problem) if is_small(n, n) else np.nan)
            exact.append(seconds("exact", problem) if n <= LARGEST_EXACT else np.nan)
            restricted.append(seconds("restricted_simplex", problem))
            print(
                f"n = {n}: {exact[-1]:.4f} s exact, {restricted[-1]:.4f} s restricted", flush=True
            )
    model = fitted(entries, restricted, 1.5)
    dense = 2 * model["dense"]  # of one thread
    return {
        "small_simplex": {**fitted(entries, small, 2.0), "bytes": 8},
        "exact": {**fitted(entries, exact, 2.5), "bytes": 24},
        "restricted_simplex": {**model, "dense": dense, "lazy": 1.6 * dense},
        "grid_flow": flow_model([16, 32, 64, 128, 256] if max(sizes) > 1000 else [16, 32]),
    }


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    sizes = [64, 100, 144, 196, 256, 400, 784, 1024, 1600, 2304, 4096, 6400]
    if options.quick:
        sizes = sizes[1:5]
    for problem in instances(64, 0):  # compile
        for method in ("small_simplex", "exact", "restricted_simplex"):
            seconds(method, problem)

    text = json.dumps(models(sizes), indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")


if __name__ == "__main__":
    main()
