"""Dataset of benchmark_ot: clusters of points in any dimension, with unequal weights."""

import numpy as np
from benchopt import BaseDataset


class Dataset(BaseDataset):
    """Two clouds of as many points, around five centres each."""

    name = "Clusters"
    parameters = {  # noqa: RUF012
        "n_samples": [1000, 4000],
        "dimension": [2, 10],
        "random_state": [27],
    }
    test_parameters = {"n_samples": [20]}  # noqa: RUF012

    def get_data(self):
        """Return points and weights of total 1."""
        rng = np.random.default_rng(self.random_state)
        (x, a), (y, b) = (self._cloud(rng) for _ in range(2))
        return {"x": x, "a": a, "y": y, "b": b}

    def _cloud(self, rng):
        """Return points and their weights."""
        centres = 4 * rng.standard_normal((5, self.dimension))
        points = centres[rng.integers(5, size=self.n_samples)]
        points = points + rng.standard_normal(points.shape)
        weights = rng.exponential(size=self.n_samples)
        return points, weights / weights.sum()
