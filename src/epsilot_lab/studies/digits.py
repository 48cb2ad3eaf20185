"""Time the nearest neighbours of scikit-learn's digits by transport, the example of docs/batch.md.

python -m epsilot_lab digits [--train 500] [--test 500]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Sequence

import numpy as np
from sklearn.datasets import load_digits
from sklearn.neighbors import KNeighborsClassifier

import epsilot


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--train", type=int, default=500)
    parser.add_argument("--test", type=int, default=500)
    options = parser.parse_args(argv)
    images, labels = load_digits(return_X_y=True)
    pixels = np.indices((8, 8)).reshape(2, -1).T
    M = np.minimum(np.linalg.norm(pixels[:, None] - pixels, axis=2), 3.0)
    H = images / images.sum(axis=1, keepdims=True)
    n = options.train
    train, test = slice(n), slice(n, n + options.test)
    epsilot.pairwise(H[:3], M)  # compiled before the clock starts
    began = time.process_time()
    near = epsilot.pairwise(H[train], M).to_matrix()
    far = epsilot.pairwise(H[test], M, H[train]).to_matrix()
    spent = time.process_time() - began
    count = n * (n - 1) // 2 + n * options.test
    print(
        f"{count:,} distances: {spent:.1f} s of processor time, {1e6 * spent / count:.0f} µs each"
    )
    model = KNeighborsClassifier(n_neighbors=1, metric="precomputed").fit(near, labels[train])
    plain = KNeighborsClassifier(n_neighbors=1).fit(images[train], labels[train])
    print(f"right by transport: {model.score(far, labels[test]):.3f}")
    print(f"right by Euclidean distance: {plain.score(images[test], labels[test]):.3f}")
