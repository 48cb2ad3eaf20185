"""Costs and weights of many problems, packed side by side for the compiled solver."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from ..._types import Array, Index, Matrix, Vector
from ...arguments import numeric
from ...errors import InvalidProblem
from ...geometry import Geometry
from ...kernels import histograms
from ...kernels.histograms import Histograms
from ...kernels.small import Problems
from ...transport import support
from .source import Given


def flat(x: Array) -> Vector:
    """Return the entries one after the other, read-only: kernels then compile for one type only."""
    x = np.require(x, np.float64, ("C", "A")).reshape(-1).view()
    x.flags.writeable = False
    return np.asarray(x)


def places(sizes: Index) -> Index:
    """Return where each of some pieces begins, and where the last ends."""
    return np.concatenate((np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)))


def own(size: int) -> Index:
    """Return the numbers of problems that share nothing."""
    return np.repeat(np.arange(size)[:, None], 3, axis=1)


def masses(weights: Array, starts: Index, normalize: bool) -> Histograms:
    """Return histograms from weights one after the other."""
    kept = histograms.kept(flat(weights), starts, np.diff(starts), support.EMPTY)
    return normalized(kept) if normalize else kept


def normalized(side: Histograms) -> Histograms:
    """Return histograms whose totals count as 1."""
    return side._replace(totals=np.where(side.totals > 0, 1.0, side.totals))


_REAL = np.dtype(np.float64)


def as_matrix(M: object) -> Matrix | None:
    """Return a cost as an array, or None for what the ordinary path has to look at."""
    if type(M) is np.ndarray and M.dtype == _REAL and M.ndim == 2 and M.size:
        return M
    try:
        C = None if isinstance(M, Geometry) else numeric(M, "M")
    except InvalidProblem:
        return None
    return None if C is None or C.ndim != 2 or C.size == 0 else C


def as_weights(w: object, size: int) -> Vector | None:
    """Return weights as a vector of some size; None if there are none, or none that fit."""
    if type(w) is np.ndarray and w.dtype == _REAL and w.shape == (size,):
        return w
    try:
        x = None if w is None else numeric(w, "weights")
    except InvalidProblem:
        return None
    return None if x is None or x.shape != (size,) else x


#: A cost and weights that no kernel takes.
_NO_COST, _NO_WEIGHTS = np.full((1, 1), np.nan), np.full(1, np.nan)


def pack(costs: list[Matrix | None], problems: Sequence[Given], normalize: bool) -> Problems:
    """Pack the costs and the weights of problems; what cannot be packed is packed as no problem."""
    kept = [_together(C, x.a, x.b) for C, x in zip(costs, problems, strict=True)]
    sizes = np.array([C.shape for C, _, _ in kept], np.int64)
    entries = np.concatenate([C.ravel() for C, _, _ in kept])
    sides = [_side([x[c] for x in kept], sizes[:, c - 1], normalize) for c in (1, 2)]
    return Problems(
        flat(entries), places(sizes[:, 0] * sizes[:, 1]), sides[0], sides[1], own(len(kept))
    )


def _together(
    C: Matrix | None, a: object, b: object
) -> tuple[Matrix, Vector | None, Vector | None]:
    """Return a cost and weights that fit each other, or a cost and weights that no kernel takes."""
    if C is not None:
        x, y = as_weights(a, C.shape[0]), as_weights(b, C.shape[1])
        if (x is None) == (a is None) and (y is None) == (b is None):
            return C, x, y
    return _NO_COST, _NO_WEIGHTS, _NO_WEIGHTS


def _side(weights: list[Vector | None], sizes: Index, normalize: bool) -> Histograms:
    """Return the histograms of one side, those that are None being uniform."""
    is_given = np.array([w is not None for w in weights])
    if not is_given.any():
        return histograms.uniform(sizes)
    filled = [np.ones(n) if w is None else w for w, n in zip(weights, sizes, strict=True)]
    side = masses(np.concatenate(filled), places(sizes), normalize)
    return side._replace(totals=np.where(is_given, side.totals, 0.0))
