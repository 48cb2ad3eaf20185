"""The table of instances: every solver must certify every row."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
import ot


@dataclass(frozen=True, eq=False)
class Row:
    name: str
    M: np.ndarray
    a: np.ndarray
    b: np.ndarray
    eps: float  # absolute accuracy, in units of M
    round_off: float  # what float64 may add to a comparison of values


def images(side: int):
    """Return two images of the paper: noise with a brighter square, and the l1 pixel distance."""
    rng = np.random.default_rng(side)
    square = round(side * np.sqrt(0.2))

    def image():
        picture = rng.uniform(0, 1, (side, side))
        top, left = rng.integers(0, side - square + 1, 2)
        picture[top : top + square, left : left + square] = rng.uniform(0, 3, (square, square))
        return picture.ravel() / picture.sum()

    pixels = np.indices((side, side)).reshape(2, -1).T
    M = np.abs(pixels[:, None] - pixels[None]).sum(axis=2).astype(float)
    return M / M.max(), image(), image()


def random(n: int, m: int, concentration: float = 5.0, seed: int = 0):
    """Return a uniform cost in [0, 1] and Dirichlet masses, sparser as concentration falls."""
    rng = np.random.default_rng(seed)
    a = rng.dirichlet(np.full(n, concentration))
    b = rng.dirichlet(np.full(m, concentration))
    return rng.uniform(0, 1, (n, m)), a, b


def affine(scale: float, shift: float):
    M, a, b = random(15, 18, seed=2)
    return scale * M + shift, a, b


def points():
    _, a, b = random(24, 20, seed=3)
    rng = np.random.default_rng(3)
    x, y = rng.normal(size=(24, 3)), rng.normal(size=(20, 3)) + 0.5
    return ((x[:, None] - y[None]) ** 2).sum(axis=2), a, b


def clusters():
    _, a, b = random(16, 16, seed=4)
    rng = np.random.default_rng(4)
    x, y = rng.normal(size=(16, 2)), rng.normal(size=(16, 2))
    x[8:] += 100.0
    y[5:] += 100.0
    return np.sqrt(((x[:, None] - y[None]) ** 2).sum(axis=2)), a, b


def zero_masses():
    M, a, b = random(20, 22, seed=5)
    a[::2] = 0.0
    b[1::2] = 0.0
    return M, a / a.sum(), b / b.sum()


def equal_masses():
    M, a, _ = random(18, 18, seed=6)
    M = M + M.T
    np.fill_diagonal(M, 0.0)
    return M, a, a.copy()


def separable():
    _, a, b = random(14, 17, seed=7)
    rng = np.random.default_rng(7)
    return rng.normal(size=(14, 1)) + rng.normal(size=(1, 17)), a, b


def constant():
    _, a, b = random(12, 10, seed=8)
    return np.full((12, 10), 3.0), a, b


def integers():
    _, a, b = random(16, 13, seed=9)
    return np.random.default_rng(9).integers(0, 10, (16, 13)).astype(float), a, b


def row(name: str, instance: tuple[np.ndarray, np.ndarray, np.ndarray]) -> Row:
    M, a, b = instance
    for array in (M, a, b):
        array.setflags(write=False)
    eps = 0.05 * float(np.ptp(M)) or 1e-6
    return Row(name, M, a, b, eps=eps, round_off=1e-9 * float(np.abs(M).max()))


INSTANCES: dict[str, Callable] = {
    "images 5x5": lambda: images(5),
    "images 6x6": lambda: images(6),
    "rectangular": lambda: random(12, 30, seed=1),
    "dirichlet 0.3": lambda: random(30, 30, concentration=0.3),
    "dirichlet 0.1": lambda: random(25, 30, concentration=0.1),
    "squared euclidean": points,
    "far clusters": clusters,
    "half the masses zero": zero_masses,
    "equal masses": equal_masses,
    "separable": separable,
    "constant": constant,
    "integers": integers,
    "negative costs": lambda: affine(2.0, -1.5),
    "no zero cost": lambda: affine(1.0, 10.0),
    "scale 1e9": lambda: affine(1e9, 0.0),
    "scale 1e-9": lambda: affine(1e-9, 0.0),
    "1x1": lambda: random(1, 1),
    "1xm": lambda: random(1, 9),
    "nx1": lambda: random(9, 1),
}

PROBLEMS: list[Row] = [row(name, make()) for name, make in INSTANCES.items()]


def solve_exactly(M: np.ndarray, a: np.ndarray, b: np.ndarray) -> float:
    """Return OT(M, a, b) by POT's network simplex, on a cost shifted and scaled to [0, 1]."""
    if 1 in M.shape:
        return float((M * np.outer(a, b)).sum())
    shift, scale = float(M.min()), float(np.ptp(M)) or 1.0
    return shift + scale * float(ot.emd2(a, b, (M - shift) / scale, numItermax=1_000_000))


@cache
def exact_value(row: Row) -> float:
    return solve_exactly(row.M, row.a, row.b)


def trace(result) -> list[str]:
    """Return a result's history without its clock; the repr of a float is exact."""
    return [
        repr((r.n_iter, r.operations, r.upper, r.lower, r.gap, r.marginal_error, r.reg))
        for r in result.history
    ]


M34 = np.arange(12.0).reshape(3, 4)
A3, B4 = np.full(3, 1 / 3), np.full(4, 1 / 4)


def put(array, value):
    """Return a copy of an array with its first entry replaced."""
    changed = np.array(array, dtype=float)
    changed.flat[0] = value
    return changed


def assert_feasible(result, M, a, b):
    assert result.plan.min() >= 0
    assert np.abs(result.plan.sum(axis=1) - a).sum() <= 1e-12
    assert np.abs(result.plan.sum(axis=0) - b).sum() <= 1e-12
    exact, round_off = solve_exactly(M, a, b), 1e-9 * np.abs(M).max()
    assert result.lower_bound - round_off <= exact <= result.value + round_off
    assert result.gap == result.value - result.lower_bound
