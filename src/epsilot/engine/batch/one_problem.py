"""Solve one small problem by the compiled code of batches, with little overhead per call."""

from __future__ import annotations

from functools import lru_cache
from typing import NamedTuple

import numpy as np

from ..._types import Index, Matrix, Vector
from ...kernels import small
from ...problems import support
from ..tuning import TUNING
from .problems import flat


class SmallOptimum(NamedTuple):
    """A certified plan of few entries, in the caller's units."""

    value: float
    lower: float
    i: Index
    j: Index
    flow: Vector
    f: Vector
    g: Vector


class _Layout(NamedTuple):
    """Index arrays of one problem of a shape."""

    starts: Index
    rows: tuple[Index, Index]  # where the weights begin and end, and their number
    cols: tuple[Index, Index]
    of: Index
    at: Index


@lru_cache(TUNING.max_shapes)
def _layout(n: int, m: int) -> _Layout:
    """Return the index arrays of one n x m problem; nothing writes to them."""
    rows, cols = ((np.array([0, size]), np.array([size])) for size in (n, m))
    at = np.array([[0, n + m], [0, n], [0, m]])
    return _Layout(np.array([0, n * m]), rows, cols, np.zeros((1, 3), np.int64), at)


def solve_one_small(
    M: Matrix, a: Vector, b: Vector, *, rtol: float, totals_rtol: float
) -> SmallOptimum | None:
    """Solve and prove one problem of float64 arrays; return None if compiled code refuses it.

    The answer has the bits of a batch with this problem.
    """
    n, m = M.shape
    layout = _layout(n, m)
    sources, targets = (
        small.without_zeros(flat(w), *ends, support.NEGLIGIBLE_MASS)
        for w, ends in ((a, layout.rows), (b, layout.cols))
    )
    problems = small.Problems(flat(M), layout.starts, sources, targets, layout.of)
    answers = small.Answers(
        np.zeros(1, np.int64), np.full((1, len(small.NUMBERS)), np.nan), layout.at,
        np.empty((2, n + m), np.int64), np.empty(n + m), np.full(n, np.nan), np.full(m, np.nan),
    )  # fmt: skip
    small.solve_all(problems, small.SmallGoal(0.0, rtol, totals_rtol), answers, True)
    size = int(answers.n_arcs[0])
    if size == 0:
        return None
    small.extend_potentials(problems, answers)
    f, g = np.empty(n), np.empty(m)
    small.potentials_to_user(answers, f, g)
    value, lower, _, mass = answers.numbers[0, :4].tolist()
    i, j = answers.arcs[:, :size]
    return SmallOptimum(value, lower, i, j, answers.flow[:size] * mass, f, g)
