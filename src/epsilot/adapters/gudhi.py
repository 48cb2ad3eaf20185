"""Wasserstein distances of persistence diagrams, with GUDHI's signature.

>>> from epsilot.adapters.gudhi import wasserstein_distance
>>> wasserstein_distance([[2.7, 3.7], [9.6, 14.0]], [[2.8, 4.45], [9.5, 14.1]]).__round__(12)
0.85
"""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from .._types import Index, Matrix
from ..applications.persistence import PersistenceDistance, persistence_distance
from ..errors import InvalidProblem

__all__ = ["wasserstein_distance"]


def wasserstein_distance(
    X: ArrayLike,
    Y: ArrayLike,
    matching: bool = False,
    order: float = 1.0,
    internal_p: float = math.inf,
    enable_autodiff: bool = False,
    keep_essential_parts: bool = True,
) -> Any:
    """Return the Wasserstein distance of two persistence diagrams, exact.

    It replaces ``gudhi.wasserstein.wasserstein_distance``. :func:`persistence_distance` solves, and
    also returns the lower bound.

    Parameters
    ----------
    X, Y : (n, 2) and (m, 2) array-like
        Births and deaths. Points (-inf, -inf) and (inf, inf) are on the diagonal.
    matching : bool
        Return (distance, matching): rows (i, j) of matched points, where -1 is the diagonal.
        Indices are those of X and Y, with essential points too. It is None if the distance is
        infinite.
    order : float
        The order q >= 1: costs are q-th powers, and the distance the q-th root of their sum.
    internal_p : float
        The norm p >= 1 of the plane.
    enable_autodiff : bool
        X and Y are tensors of PyTorch, and so is the distance: the cost of the optimal matching, as
        a function of the finite points.
    keep_essential_parts : bool
        If False, leave out points with infinite coordinates.

    Examples
    --------
    >>> from epsilot.adapters.gudhi import wasserstein_distance
    >>> wasserstein_distance([[0.0, 2.0], [1.0, 1.5]], [[0.0, 2.25]], matching=True, order=2)
    (0.3535533905932738, array([[ 0,  0],
           [ 1, -1]]))
    """
    if enable_autodiff and matching:
        raise InvalidProblem("matching and enable_autodiff are True; at most one of them may be.")
    if enable_autodiff and not (hasattr(X, "detach") and hasattr(Y, "detach")):
        raise InvalidProblem(
            f"X and Y are of type {type(X).__name__} and {type(Y).__name__}; with enable_autodiff, "
            "X and Y must be tensors of PyTorch."
        )
    if enable_autodiff and keep_essential_parts:
        warnings.warn(
            "enable_autodiff=True looks at finite points only: pass keep_essential_parts=False.",
            stacklevel=2,
        )
    diagrams = [_diagram(D, name) for D, name in ((X, "X"), (Y, "Y"))]
    is_finite_only = enable_autodiff or not keep_essential_parts
    kept = [_kept(D, is_finite_only=is_finite_only) for D in diagrams]
    one, two = (D[k] for D, k in zip(diagrams, kept, strict=True))
    found = persistence_distance(one, two, order, internal_p)
    assert isinstance(found, PersistenceDistance)
    if found.matching is None:
        warnings.warn("Cardinality of essential parts differs. Distance is +inf.", stacklevel=2)
        return (math.inf, None) if matching else math.inf
    pairs = np.stack([np.append(k, -1)[found.matching[:, s]] for s, k in enumerate(kept)], axis=1)
    if enable_autodiff:
        return _differentiable((X, Y), diagrams, pairs, order, internal_p)
    if not matching:
        return float(found)
    if not is_finite_only:
        pairs = np.concatenate([pairs, *_on_diagonal(diagrams, kept)])
    return float(found), pairs


def _diagram(D: Any, name: str) -> Matrix:
    """Return births and deaths as an array, of tensors with gradients too."""
    points = np.asarray(D.detach().cpu() if hasattr(D, "detach") else D, np.float64)
    points = points.reshape(0, 2) if points.size == 0 else points
    if points.ndim != 2 or points.shape[1] != 2:
        raise InvalidProblem(f"{name} has shape {points.shape}; a diagram has the shape (n, 2).")
    return points


def _kept(D: Matrix, *, is_finite_only: bool) -> Index:
    """Return the points that are matched: all but those at infinity on the diagonal."""
    births, deaths = D.T
    if is_finite_only:
        return np.flatnonzero(np.isfinite(births) & np.isfinite(deaths))
    return np.flatnonzero(~(np.isinf(births) & (births == deaths)))


def _on_diagonal(diagrams: list[Matrix], kept: list[Index]) -> list[Index]:
    """Return rows of points at infinity on the diagonal, which vanish at no cost."""
    left = [np.setdiff1d(np.arange(len(D)), k) for D, k in zip(diagrams, kept, strict=True)]
    alone = [np.full(i.size, -1) for i in left]
    return [np.stack([left[0], alone[0]], axis=1), np.stack([alone[1], left[1]], axis=1)]


# -- gradients ------------------------------------------------------------------------------------


def _differentiable(
    given: tuple[Any, Any],
    diagrams: list[Matrix],
    pairs: Index,
    order: float,
    internal_p: float,
) -> Any:
    """Return the cost of a matching by operations of PyTorch.

    Pairs of no length are left out: their slopes are no numbers, and 0 is one of them.
    """
    X, Y = given
    x, y = diagrams
    i, j = pairs[(pairs >= 0).all(axis=1)].T
    is_apart = (x[i] != y[j]).any(axis=1)
    i, j = i[is_apart], j[is_apart]
    total = X.sum() * 0 + Y.sum() * 0 if not len(i) else None
    terms = [] if total is not None else [_lengths(X[i] - Y[j], x[i] - y[j], internal_p)]
    for D, points, side in ((X, x, 0), (Y, y, 1)):
        k = pairs[pairs[:, 1 - side] < 0, side]
        k = k[points[k, 0] < points[k, 1]]
        if len(k):
            terms.append((D[k, 1] - D[k, 0]) * 2 ** (1 / internal_p - 1))
    if not terms:
        return total
    sums = [(t**order).sum() for t in terms]
    return sum(sums[1:], sums[0]) ** (1 / order)


def _lengths(steps: Any, values: Matrix, internal_p: float) -> Any:
    """Return the lengths of steps in the internal norm."""
    if internal_p == math.inf:
        return abs(steps[np.arange(len(values)), np.argmax(np.abs(values), axis=1)])
    return (abs(steps) ** internal_p).sum(1) ** (1 / internal_p)
