"""Fit the cost models behind method="auto" on this machine, and print them as JSON.

python -m epsilot_lab calibrate [--quick] [--only dense|sparse] [--out FILE]

FILE is src/epsilot/data/cost_models.json for the package. With --only, models of the other kind
stay as they are.
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
from epsilot.geometry import Dense, Grid, PointCloud
from epsilot.kernels.small_simplex import is_small
from epsilot.solvers.cost_models import cost_models

from ..instances import clouds, images
from ..measuring import repeated

#: Larger problems are too slow for the simplex on all arcs.
LARGEST_EXACT = 2304


def instances(n, seed):
    """Yield an image problem and two point problems of about n sources and targets."""
    M, a, b = images(round(n**0.5), seed)
    yield Dense(M), a, b
    X, Y = clouds(n, np.random.default_rng(seed))
    for metric in ("sqeuclidean", "euclidean"):
        yield Dense(PointCloud(X, Y, metric).block(0, n)), None, None


def seconds(method, problem, rtol=0.01):
    """Return the median processor time of a solve, over as many as fit into a third of a second.

    Processor time, as other programs do not change it; passes that threads share count in full.
    """
    run = partial(epsilot.solve, *problem, rtol=rtol, method=method, normalize=True)
    return repeated(run, 0.3).median.processor


def fitted(entries, times, power, *, has_dense=True):
    """Return overhead, dense and scale of the model, by nonnegative relative least squares."""
    times = np.array(times)
    is_timed = np.isfinite(times)
    x, times = np.array(entries, dtype=float)[is_timed], times[is_timed]
    columns = np.stack([np.ones_like(x), has_dense * x, (2 * np.sqrt(x)) ** power], axis=1)
    weights = 1 / times
    (overhead, dense, scale), _ = nnls(columns * weights[:, None], np.ones_like(x))
    return {"overhead": overhead, "dense": dense, "scale": scale, "power": power}


def lines(sizes):
    """Yield uniform points on a line, and squares of such, with random weights."""
    for n in sizes:
        rng = np.random.default_rng(n)
        a, b = rng.dirichlet(np.ones(n), 2)
        yield PointCloud(rng.random(n), rng.random(n) ** 2), a, b


def images_on_grids(sizes, metric):
    """Yield the paper's images of about so many pixels."""
    for n in sizes:
        A, B = synthetic_pair(round(n**0.5), seed=0)
        yield Grid(A.shape, metric=metric), A.ravel(), B.ravel()


def flat_clouds(sizes, metric):
    """Yield uniform and spread clouds in the plane, with equal and with random weights."""
    for n in sizes:
        for law in ("uniform", "spread"):
            rng = np.random.default_rng(n)
            X, Y = clouds(n, rng, law=law)
            yield PointCloud(X, Y, metric), None, None
            yield PointCloud(X, Y, metric), *rng.dirichlet(np.ones(n), 2)


def nodes_model(method, problems, *, power, n_bytes, rtol=0.01):
    """Time a method whose work grows with the points alone; return its cost model."""
    entries, times = [], []
    for problem in problems:
        entries.append(problem[0].shape[0] * problem[0].shape[1])
        seconds(method, problem, rtol)  # compile
        times.append(seconds(method, problem, rtol))
        print(f"{method} on {problem[0]!r}: {times[-1]:.4f} s", flush=True)
    return {**fitted(entries, times, power, has_dense=False), "bytes": n_bytes}


def sparse_models(largest):
    """Return the models of methods that know points or cells, from problems up to a size."""
    sizes = [n for n in (100, 300, 1000, 3000, 10_000) if n <= largest]
    cells = images_on_grids(sizes, "sqeuclidean")
    squares, distances = (flat_clouds(sizes, metric) for metric in ("sqeuclidean", "euclidean"))
    auction = partial(nodes_model, "auction", power=1.3, n_bytes=1200)
    flows = images_on_grids([*sizes, 10 * sizes[-1]], "cityblock")
    return {
        "auction": auction([*squares, *cells]),
        "auction of distances": auction(distances),
        "grid_flow": nodes_model("grid_flow", flows, power=1.6, n_bytes=160, rtol=1e-9),
        "monotone": nodes_model("monotone", lines(sizes), power=1.1, n_bytes=400, rtol=1e-9),
    }


def dense_models(sizes):
    """Time the methods of matrices on all sizes; return their cost models."""
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
    return {
        "small_simplex": {**fitted(entries, small, 2.0), "bytes": 8},
        "exact": {**fitted(entries, exact, 2.5), "bytes": 24},
        "restricted_simplex": {**model, "lazy": 1.6 * model["dense"]},
    }


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=["dense", "sparse"])
    parser.add_argument("--largest", type=int, default=10_000, help="points of sparse problems")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args(arguments)
    sizes = [64, 100, 144, 196, 256, 400, 784, 1024, 1600, 2304, 4096, 6400]
    if options.quick:
        sizes = sizes[1:5]
    models = cost_models()
    if options.only != "sparse":
        for problem in instances(64, 0):  # compile
            for method in ("small_simplex", "exact", "restricted_simplex"):
                seconds(method, problem)
        models = {**models, **dense_models(sizes)}
    if options.only != "dense":
        models = {**models, **sparse_models(100 if options.quick else options.largest)}

    text = json.dumps(models, indent=2)
    print(text)
    if options.out:
        options.out.write_text(text + "\n")
