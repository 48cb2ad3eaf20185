"""Compile the rows of :data:`epsilot.metrics.METRICS` into functions that take a metric's code.

Every function compares the code first, outside the loops over points. Kernels call
:func:`check_code` before they use a code from a caller.

The bound of a metric is ``bound(low, size, x, node, axes)``. For a point x and a node of a tree
(:mod:`.tree`) with the box of its points y, the centre c of the box and a slope s, it returns
``low`` plus a lower bound of cost(x, y) - s·(y - c), and ``size`` plus the magnitudes of its terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

from ..metrics import METRICS, Metric
from .compiling import INLINE, njit

# Parts of cached kernels need no cache of their own.
_PART = {**INLINE, "cache": False}
_CODES = tuple(metric.code for metric in METRICS.values())

#: A compiled function.
Function: TypeAlias = Any


@njit(**_PART)
def check_code(metric):
    """Raise ValueError if no metric has this code."""
    if metric not in _CODES:
        raise ValueError("no metric has this code; see epsilot.metrics.METRICS")


def _parts(metric: Metric) -> tuple[Function, Function, Function]:
    """Return term, join and finish, compiled."""
    term, join, finish = (njit(**_PART)(f) for f in (metric.term, metric.join, metric.finish))
    return term, join, finish


def _chain(
    make: Callable[[Metric], Function], link: Callable[[int, Function, Function], Function]
) -> Function:
    """Return a function that dispatches on the code, made of one comparison per metric."""
    functions = {metric.code: make(metric) for metric in METRICS.values()}
    (_, function), *others = reversed(functions.items())
    for code, own in others:
        function = link(code, own, function)
    return function


# The arguments of links are written out, because numba would count references for ``*args``.


def _fill(metric: Metric) -> Function:
    term, join, finish = _parts(metric)

    @njit(**_PART)
    def fill(_, x, Y, row, lo, hi):
        x0, y0 = x[0], Y[0, lo:hi]
        for j in range(row.size):
            row[j] = term(x0, y0[j])
        for k in range(1, x.size):
            xk, y = x[k], Y[k, lo:hi]
            for j in range(row.size):
                row[j] = join(row[j], term(xk, y[j]))
        for j in range(row.size):
            row[j] = finish(row[j])

    return fill


def _fill_link(code: int, own: Function, others: Function) -> Function:
    @njit(**_PART)
    def fill(metric, x, Y, row, lo, hi):
        if metric == code:
            own(metric, x, Y, row, lo, hi)
        else:
            others(metric, x, Y, row, lo, hi)

    return fill


def _cost(metric: Metric) -> Function:
    term, join, finish = _parts(metric)

    @njit(**_PART)
    def cost(_, x, y, axes):
        total = term(x[0], y[0])
        for a in range(1, len(axes)):
            total = join(total, term(x[a], y[a]))
        return finish(total)

    return cost


def _cost_link(code: int, own: Function, others: Function) -> Function:
    @njit(**_PART)
    def cost(metric, x, y, axes):
        if metric == code:
            return own(metric, x, y, axes)
        return others(metric, x, y, axes)

    return cost


def _bound(metric: Metric) -> Function:
    if metric.bound is None:
        return _box_bound(metric)
    own = njit(**_PART)(metric.bound)

    @njit(**_PART)
    def bound(_, low, size, x, node, axes):
        return own(low, size, x, node, axes)

    return bound


def _box_bound(metric: Metric) -> Function:
    """Return a bound by the cost of the box's nearest point, and of -s·(y - c) by its radii."""
    term, join, finish = _parts(metric)

    @njit(**_PART)
    def bound(_, low, size, x, node, axes):
        d = len(axes)
        total = term(max(node[0] - x[0], x[0] - node[d], 0.0), 0.0)
        for a in range(1, d):
            total = join(total, term(max(node[a] - x[a], x[a] - node[d + a], 0.0), 0.0))
        nearest = finish(total)
        size += nearest
        for a in range(d):
            middle, slope = 0.5 * (node[a] + node[d + a]), node[2 * d + a]
            radius = max(node[d + a] - middle, middle - node[a])
            nearest -= abs(slope) * radius
            size += (1 + abs(slope)) * radius
        return low + nearest, size

    return bound


def _bound_link(code: int, own: Function, others: Function) -> Function:
    @njit(**_PART)
    def bound(metric, low, size, x, node, axes):
        if metric == code:
            return own(metric, low, size, x, node, axes)
        return others(metric, low, size, x, node, axes)

    return bound


#: fill_costs(code, x, Y, row, lo, hi): write the costs of x and the targets lo..hi of Y, (d, m).
fill_costs = _chain(_fill, _fill_link)
#: pair_cost(code, x, y, axes): return the cost of two points; ``axes`` has as many entries.
pair_cost = _chain(_cost, _cost_link)
#: node_bound(code, low, size, x, node, axes): see above.
node_bound = _chain(_bound, _bound_link)
