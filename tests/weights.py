"""Laws of weights, of total 1, that tests of points draw from."""

import numpy as np


def even(rng, n):
    return np.full(n, 1 / n)


def random(rng, n):
    return rng.dirichlet(np.ones(n))


def uneven(rng, n):
    weights = 10.0 ** rng.uniform(-12, 0, n)
    return weights / weights.sum()


def sparse(rng, n):
    weights = rng.random(n) * (rng.random(n) < 0.5)
    weights[0] = 1.0
    return weights / weights.sum()
