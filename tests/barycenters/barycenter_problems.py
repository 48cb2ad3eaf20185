"""Small barycentre problems, and their linear programs as a reference."""

from dataclasses import dataclass

import numpy as np
from scipy.optimize import linprog

from linear_programs import marginal_rows


@dataclass(frozen=True)
class Case:
    """Histograms with one cost each, and weights."""

    A: list
    M: list
    weights: np.ndarray

    @property
    def args(self):
        return self.A, self.M, self.weights


def line(n: int, m: int, power: int) -> np.ndarray:
    return np.abs(np.subtract.outer(np.linspace(0, 1, n), np.linspace(0, 1, m))) ** power


def masses(rng, k: int, n: int, *, zeros: float = 0.0, ties: bool = False) -> list:
    """Return histograms of total 1, some with empty entries, some with equal ones."""
    A = rng.integers(1, 3, (k, n)).astype(float) if ties else rng.random((k, n)) + 0.01
    A[rng.random((k, n)) < zeros] = 0.0
    A[:, 0] += 0.1
    return list(A / A.sum(axis=1, keepdims=True))


def make(name: str) -> Case:
    """Return the problem of a name."""
    rng = np.random.default_rng(sum(map(ord, name)))
    uniform = [np.full(k, 1 / k) for k in range(1, 6)]
    grid = np.abs(np.indices((5, 5)).reshape(2, -1, 1) - np.indices((5, 5)).reshape(2, 1, -1))
    match name:
        case "l1":
            return Case(masses(rng, 3, 12), [line(12, 12, 1)] * 3, uniform[2])
        case "squared":
            return Case(masses(rng, 4, 15), [line(15, 15, 2)] * 4, np.array([0.4, 0.3, 0.2, 0.1]))
        case "images":
            return Case(masses(rng, 3, 25, zeros=0.5), [grid.sum(axis=0) / 8.0] * 3, uniform[2])
        case "random":
            return Case(masses(rng, 2, 30), [rng.random((30, 30))] * 2, np.array([0.3, 0.7]))
        case "ties":
            M = rng.integers(0, 4, (10, 10)).astype(float)
            return Case(masses(rng, 3, 10, ties=True), [M] * 3, uniform[2])
        case "zeros":
            return Case(masses(rng, 4, 14, zeros=0.8), [line(14, 14, 2)] * 4, uniform[3])
        case "ragged":
            sizes = (5, 9, 14)
            A = [masses(rng, 1, n, zeros=0.2)[0] for n in sizes]
            return Case(A, [line(n, 8, 1) for n in sizes], np.array([0.5, 0.25, 0.25]))
        case "rectangular":
            return Case(masses(rng, 3, 7), [rng.random((7, 20))] * 3, uniform[2])
        case "negative":
            M = rng.normal(size=(8, 8))
            return Case(masses(rng, 2, 8), [M] * 2, uniform[1])
        case "without weight":
            return Case(masses(rng, 3, 9), [line(9, 9, 2)] * 3, np.array([0.5, 0.0, 0.5]))
        case "one":
            return Case(masses(rng, 1, 6), [rng.random((6, 6)) + 1], uniform[0])
        case "one place":
            return Case(masses(rng, 2, 6), [rng.random((6, 1)) + 1] * 2, uniform[1])
        case "equal":
            return Case(masses(rng, 1, 9) * 3, [line(9, 9, 1)] * 3, uniform[2])
    raise KeyError(name)


NAMES = [
    *("l1", "squared", "images", "random", "ties", "zeros", "ragged", "rectangular", "negative"),
    *("without weight", "one", "one place", "equal"),
]


def optimum(case: Case) -> float:
    """Return the optimal value by HiGHS, from all arcs."""
    shapes = [M.shape for M in case.M]
    m = shapes[0][1]
    n_rows = sum(n + m for n, _ in shapes)
    n_arcs = sum(n * m for n, _ in shapes)
    A = np.zeros((n_rows, n_arcs + m))
    b = np.zeros(n_rows)
    row = arc = 0
    for (n, _), a in zip(shapes, case.A, strict=True):
        A[row : row + n + m, arc : arc + n * m] = marginal_rows(n, m)
        A[row + n : row + n + m, n_arcs:] = -np.eye(m)
        b[row : row + n] = a
        row, arc = row + n + m, arc + n * m
    costs = [w * M.ravel() for w, M in zip(case.weights, case.M, strict=True)]
    return linprog(np.concatenate([*costs, np.zeros(m)]), A_eq=A, b_eq=b).fun
