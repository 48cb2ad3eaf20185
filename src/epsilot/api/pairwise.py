"""Transport costs between all pairs of many histograms."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import sparray

from .._types import Index, Matrix
from ..arguments import check_flag, cost_matrix, numeric
from ..engine.batch.engine import run_batch
from ..engine.batch.problems import HistogramPairs, rows_of
from ..engine.batch.result import BatchResult, Pairing
from ..errors import InvalidProblem
from .batch import make_config


def pairwise(
    H: ArrayLike | sparray,
    M: ArrayLike,
    H2: ArrayLike | sparray | None = None,
    *,
    pairs: ArrayLike | None = None,
    normalize: bool = False,
    **keywords: Any,
) -> BatchResult:
    """Solve transport between the histograms of one or two collections, with one cost.

    Parameters
    ----------
    H : (N, n) array-like or SciPy sparse matrix
        Histograms as rows. Their zeros are dropped once, so sparse histograms are small problems.
    M : (n, m) array-like
        The cost. Without ``H2`` it must be symmetric with a zero diagonal and no negative entry, so
        that one problem serves both config of a pair.
    H2 : (N2, m) array-like or SciPy sparse matrix, optional
        The other histograms, for all pairs (i, j) in the order of a matrix's rows. Without it, the
        pairs i < j of H, as SciPy's ``squareform`` config them.
    pairs : (k, 2) array-like of integers, optional
        Only these pairs (i, j), in this order.
    normalize, **keywords
        As in :func:`solve_batch`.

    Returns
    -------
    BatchResult
        ``to_matrix()`` is the matrix of costs.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> M = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> epsilot.pairwise(np.eye(3), M).to_matrix()
    array([[0., 1., 2.],
           [1., 0., 1.],
           [2., 1., 0.]])
    """
    check_flag("normalize", normalize)
    C = np.ascontiguousarray(cost_matrix(M))
    is_symmetric = H2 is None
    if is_symmetric:
        _check_symmetric(C)
    sources = rows_of(H, "H", C.shape[0], normalize)
    targets = sources if H2 is None else rows_of(H2, "H2", C.shape[1], normalize)
    shape = len(sources), len(targets)
    chosen = _all_pairs(shape, is_symmetric) if pairs is None else _checked(pairs, shape)
    config = make_config(
        normalize=normalize, pairing=Pairing(shape, chosen, is_symmetric), **keywords
    )
    return run_batch(HistogramPairs(C, sources, targets, chosen, normalize), config)


def _check_symmetric(C: Matrix) -> None:
    """Refuse a cost by which the two config of a pair, or a histogram and itself, differ."""
    n, m = C.shape
    if n != m or not np.array_equal(C, C.T):
        what = f"has shape {C.shape}" if n != m else "is not symmetric"
    elif np.diagonal(C).any() or C.min() < 0:
        what = "has a diagonal that is not zero" if np.diagonal(C).any() else "has negative entries"
    else:
        return
    raise InvalidProblem(
        f"M {what}; without H2 it must be symmetric with a zero diagonal and no negative entry "
        "(pass H2=H to solve every ordered pair)."
    )


def _all_pairs(shape: tuple[int, int], is_symmetric: bool) -> Index:
    """Return every pair of a matrix, or those above its diagonal."""
    if is_symmetric:
        return np.stack(np.triu_indices(shape[0], 1), axis=1)
    return np.stack(np.divmod(np.arange(shape[0] * shape[1]), max(shape[1], 1)), axis=1)


def _checked(pairs: ArrayLike, shape: tuple[int, int]) -> Index:
    """Return pairs of indices, or say what is wrong with them."""
    given = numeric(pairs, "pairs")
    if given.ndim != 2 or given.shape[1] != 2:
        raise InvalidProblem(
            f"pairs has shape {given.shape}; it must have shape (k, 2), one pair (i, j) a row."
        )
    is_good = (given >= 0) & (given < np.array(shape)) & (given % 1 == 0)
    if not is_good.all():
        k = int(np.argmin(is_good.all(axis=1)))
        raise InvalidProblem(
            f"pair {k} is ({given[k, 0]:g}, {given[k, 1]:g}); it must name histograms, from 0 to "
            f"{shape[0] - 1} and from 0 to {shape[1] - 1}."
        )
    return given.astype(np.int64)
