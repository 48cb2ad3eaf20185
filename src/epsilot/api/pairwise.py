"""Solve transport between all pairs of many histograms."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.sparse import sparray

from .._types import Index, Matrix
from ..arguments import check_flag, cost_matrix, numeric
from ..engine.batch.engine import run_batch
from ..engine.batch.problems import PairSource, rows_of
from ..engine.batch.result import BatchResult, Pairing
from ..errors import InvalidProblem
from ..labels import columns_as, labels_of
from ..problems.kinds import Kind
from ..wording import shown
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
        that one problem serves both orders of a pair.
    H2 : (N2, m) array-like or SciPy sparse matrix, optional
        The other histograms, for all pairs (i, j) in the order of a matrix's rows. Without it, the
        pairs i < j of H, in the order of SciPy's ``squareform``. With ``reg`` the pairs i <= j,
        since the entropic cost between a histogram and itself is not 0.
    pairs : (k, 2) array-like of integers, optional
        Only these pairs (i, j), in this order.
    normalize, **keywords
        As in :func:`solve_batch`, ``mass``, ``unbalanced`` and ``reg`` among them.

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
    H = columns_as(H, labels_of(getattr(M, "index", None)), "H", "the rows of M have")
    H2 = columns_as(H2, labels_of(getattr(M, "columns", None)), "H2", "the columns of M have")
    is_symmetric = H2 is None
    config = make_config(normalize=normalize, **keywords)
    if is_symmetric:
        _check_symmetric(C)
        _check_symmetric_kind(config.request.kind)
    # A histogram and itself: nothing moves, at no cost, unless an entropy is charged.
    has_zero_diagonal = is_symmetric and config.request.reg is None
    sources = rows_of(H, "H", C.shape[0], normalize)
    targets = sources if H2 is None else rows_of(H2, "H2", C.shape[1], normalize)
    shape = len(sources), len(targets)
    if pairs is not None:
        chosen = _checked(pairs, shape)
    elif is_symmetric:
        chosen = np.stack(np.triu_indices(shape[0], int(has_zero_diagonal)), axis=1)
    else:
        chosen = np.stack(np.divmod(np.arange(shape[0] * shape[1]), max(shape[1], 1)), axis=1)
    pairing = Pairing(shape, chosen, is_symmetric, has_zero_diagonal)
    problems = PairSource(C, sources, targets, chosen, normalize)
    return run_batch(problems, replace(config, pairing=pairing))


def _check_symmetric(C: Matrix) -> None:
    """Reject costs that are not symmetric, or not zero on the diagonal."""
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


def _check_symmetric_kind(kind: Kind) -> None:
    """Reject marginal penalties by which (i, j) and (j, i) have different costs."""
    penalties = kind.keywords.get("unbalanced")
    if isinstance(penalties, tuple) and not np.array_equal(*penalties):
        raise InvalidProblem(
            f"unbalanced is {shown(penalties)}; without H2 both penalties must be equal, so that "
            "the costs of (i, j) and (j, i) are (pass H2=H to solve every ordered pair)."
        )


def _checked(pairs: ArrayLike, shape: tuple[int, int]) -> Index:
    """Check pairs of indices."""
    given = numeric(pairs, "pairs")
    if given.ndim != 2 or given.shape[1] != 2:
        raise InvalidProblem(
            f"pairs has shape {given.shape}; it must have shape (k, 2), one pair (i, j) per row."
        )
    is_good = (given >= 0) & (given < np.array(shape)) & (given % 1 == 0)
    if not is_good.all():
        k = int(np.argmin(is_good.all(axis=1)))
        raise InvalidProblem(
            f"pair {k} is ({given[k, 0]:g}, {given[k, 1]:g}); it must name histograms, from 0 to "
            f"{shape[0] - 1} and from 0 to {shape[1] - 1}."
        )
    return given.astype(np.int64)
