r"""Slopes of transport costs in points and in weights, from a plan and potentials.

The value is a minimum over plans, so its slope in whatever the cost depends on is that of the cost
at the optimal plan (Danskin 1967); in the weights it is the potentials. With a plan that is optimal
within ε, these are the slopes of an upper and of a lower bound that differ by ε.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from functools import cache
from typing import TypeAlias

import numpy as np

from .._types import Index, Matrix, Vector
from ..geometry import PointCloud
from ..kernels.forest import binned_rows
from ..kernels.products import product
from ..metrics import METRICS
from ..problems.duals import centred
from ..problems.plan import Arcs, Plan

#: A plan, or a part of its rows: what simplex methods find has few arcs, entropic plans have all.
Flow: TypeAlias = Arcs | Matrix


# -- points --------------------------------------------------------------------------------------


def point_slopes(plan: Plan | Arcs, x: Matrix, y: Matrix, metric: str) -> tuple[Matrix, Matrix]:
    r"""Return the slopes of <C(x, y), X> in both clouds.

    .. math:: \partial_{x_i} = \sum_j X_{ij} \nabla_x c(x_i, y_j)

    Where a metric has a kink (coincident points, or coordinates for the city block) the slope of
    the pair is taken to be 0, which is one of its subgradients.

    Parameters
    ----------
    plan : Plan or Arcs
    x, y : (n, d), (m, d) arrays
    metric : str
        A name of ``epsilot.metrics.POINT_METRICS``.
    """
    row = METRICS[metric]
    middle = np.zeros(x.shape[1]) if row.degree == 0 else x.mean(axis=0)
    x, y = x - middle, y - middle  # digits that points far from the origin would lose
    dx, dy = np.empty_like(x), np.zeros_like(y)
    for start, X in _parts(plan):
        rows = slice(start, start + X.shape[0])
        dx[rows], more = _slopes(X, x[rows], y, metric)
        dy += more
    return dx, dy


def _parts(plan: Plan | Arcs) -> Iterator[tuple[int, Flow]]:
    """Yield (first row, rows) of a plan: all at once if it has few arcs, else in blocks."""
    if isinstance(plan, Plan):
        yield from plan.blocks()
    else:
        yield 0, plan


def _slopes(X: Flow, x: Matrix, y: Matrix, metric: str) -> tuple[Matrix, Matrix]:
    """Return the slopes of some rows, and what they add to those of the columns."""

    @cache
    def cost() -> Matrix:
        cloud = PointCloud(x, y, metric)
        return cloud.matrix() if isinstance(X, np.ndarray) else cloud.entries(X.i, X.j)

    tension, slope = METRICS[metric].tension, METRICS[metric].slope
    if tension is not None:
        return _by_differences(_with_flow(X, lambda flow: tension(flow, cost)), x, y)
    if slope is not None:
        return _by_axes(X, x, y, lambda difference: slope(difference, cost))
    return _by_angles(X, x, y)


def _with_flow(X: Flow, change: Callable[[Matrix], Matrix]) -> Flow:
    """Return a plan with its entries changed."""
    return change(X) if isinstance(X, np.ndarray) else replace(X, flow=change(X.flow))


def _by_differences(W: Flow, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
    """Return Σ_j W_ij (x_i - y_j), and its negative over i."""
    r, c = (W.sum(axis=1), W.sum(axis=0)) if isinstance(W, np.ndarray) else W.marginals()
    return r[:, None] * x - _rows(W, y), c[:, None] * y - _cols(W, x)


def _by_angles(X: Flow, x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
    """Return the slopes of 1 - cos: minus what is across the own direction, by the own length."""
    (u, r), (v, s) = _polar(x), _polar(y)
    return _across(_rows(X, v), u) / -r, _across(_cols(X, u), v) / -s


def _across(p: Matrix, unit: Matrix) -> Matrix:
    """Return what each vector has across a direction of its own."""
    return np.asarray(p - (p * unit).sum(axis=1, keepdims=True) * unit)


def _polar(x: Matrix) -> tuple[Matrix, Matrix]:
    """Return directions and lengths."""
    length = np.sqrt((x * x).sum(axis=1, keepdims=True))
    return x / length, length


def _by_axes(
    X: Flow, x: Matrix, y: Matrix, slope: Callable[[Matrix], Matrix]
) -> tuple[Matrix, Matrix]:
    """Return Σ_j X_ij slope(x_i - y_j), axis by axis, and its negative over i."""
    dx, dy = np.empty_like(x), np.empty_like(y)
    for k in range(x.shape[1]):
        if isinstance(X, np.ndarray):
            signed = X * slope(x[:, k, None] - y[:, k])
            dx[:, k], dy[:, k] = signed.sum(axis=1), -signed.sum(axis=0)
        else:
            pulled = replace(X, flow=X.flow * slope(x[X.i, k] - y[X.j, k]))
            dx[:, k], back = pulled.marginals()
            dy[:, k] = -back
    return dx, dy


def _rows(W: Flow, V: Matrix) -> Matrix:
    """Return W V."""
    if isinstance(W, np.ndarray):
        return product(np.ascontiguousarray(W), np.ascontiguousarray(V))
    return _carried(W.i, W.flow, W.j, V, W.shape[0])


def _cols(W: Flow, U: Matrix) -> Matrix:
    """Return Wᵀ U."""
    if isinstance(W, np.ndarray):
        return product(np.ascontiguousarray(W.T), np.ascontiguousarray(U))
    return _carried(W.j, W.flow, W.i, U, W.shape[1])


def _carried(places: Index, flow: Vector, others: Index, X: Matrix, size: int) -> Matrix:
    """Return what arcs bring to each place of the rows of X."""
    out = np.empty((size, X.shape[1]))
    binned_rows(places, flow, others, np.ascontiguousarray(X), out)
    return out


# -- weights -------------------------------------------------------------------------------------


def weight_slopes(
    f: Vector, g: Vector, reg: float, *, are_given: tuple[bool, bool]
) -> tuple[Vector, Vector]:
    """Return the slopes of the value in both weights, wherever they may go together.

    They are the potentials up to a constant, which only counts where the common total changes:
    then value must grow by f + g (with ``reg``: + reg, as X log X has the slope log X + 1). Both
    slopes have half of the constant; weights that were not given are uniform of the other total, so
    that the given ones bear all of it.

    Parameters
    ----------
    f, g : (n,), (m,) arrays
        Potentials; -inf in empty places of an entropic problem, which get the mean slope.
    """
    (f, mean_f), (g, mean_g) = centred(f), centred(g)
    price = mean_f + mean_g + reg
    shares = {(True, False): (price, 0.0), (False, True): (0.0, price)}
    to_f, to_g = shares.get(are_given, (price / 2, price / 2))
    return f + to_f, g + to_g
