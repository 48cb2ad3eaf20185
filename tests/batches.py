"""Small problems of every kind that batches meet."""

import numpy as np

COSTS = {
    "random": lambda rng, n, m: rng.random((n, m)),
    "ties": lambda rng, n, m: rng.integers(0, 4, (n, m)).astype(float),
    "line": lambda rng, n, m: np.abs(np.subtract.outer(np.arange(n), np.arange(m))) * 1.0,
    "zero": lambda rng, n, m: np.zeros((n, m)),
    "constant": lambda rng, n, m: np.full((n, m), -2.5),
    "points": lambda rng, n, m: ((rng.random((n, 1, 2)) - rng.random((1, m, 2))) ** 2).sum(-1),
    "any sign": lambda rng, n, m: rng.normal(size=(n, m)),
    "mixed scales": lambda rng, n, m: 10.0 ** rng.uniform(-12, 0, (n, m)),
    "tiny": lambda rng, n, m: 1e-30 * rng.random((n, m)),
    "huge": lambda rng, n, m: 1e40 * rng.random((n, m)),
    "far from zero": lambda rng, n, m: 1e4 + rng.random((n, m)),
}

WEIGHTS = {
    "uniform": lambda rng, n: np.full(n, 1.0 / n),
    "random": lambda rng, n: rng.dirichlet(np.ones(n)),
    "counts": lambda rng, n: rng.multinomial(2 * n, np.full(n, 1 / n)) / (2 * n),
    "zeros": lambda rng, n: _unit(np.where(rng.random(n) < 0.5, 0.0, rng.random(n))),
    "tiny masses": lambda rng, n: _unit(10.0 ** -rng.integers(0, 16, n)),
    "next to nothing": lambda rng, n: _unit(10.0 ** rng.uniform(-300, 0, n)),
}


def _unit(x):
    x = x if x.sum() > 0 else np.ones_like(x)
    return x / x.sum()


def problem(rng, largest=24):
    """Return a cost and weights of kinds that are drawn."""
    n, m = rng.integers(1, largest + 1, 2)
    if rng.random() < 0.2:
        m = n
    cost = rng.choice(list(COSTS))
    a, b = (WEIGHTS[rng.choice(list(WEIGHTS))](rng, size) for size in (n, m))
    return COSTS[cost](rng, n, m), a, b


def problems(rng, size, largest=24):
    """Return lists of costs and weights."""
    return tuple(map(list, zip(*(problem(rng, largest) for _ in range(size)), strict=True)))


def assert_proved(batch, M, a, b):
    """Check every answer by its plan and its potentials, with nothing but NumPy."""
    for k, (C, p, q) in enumerate(zip(M, a, b, strict=True)):
        X, (f, g) = batch.plans[k].toarray(), batch.potentials[k]
        size = np.abs(C).max()
        assert (X >= 0).all()
        assert np.abs(X.sum(1) - p).sum() + np.abs(X.sum(0) - q).sum() <= 1e-12
        assert np.count_nonzero(X) <= sum(C.shape) - 1
        assert (f[:, None] + g <= C).all()
        assert abs((C * X).sum() - batch.value[k]) <= 1e-12 * size
        assert abs(p @ f + q @ g - batch.lower_bound[k]) <= 1e-11 * size
        assert -1e-13 * size <= batch.gap[k] <= 1e-12 * size
