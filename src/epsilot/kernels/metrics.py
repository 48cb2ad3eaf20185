"""Compile the rows of :data:`epsilot.metrics.METRICS` into functions that take a metric's key.

The type of a key names the metric and tells whether it has exponents
(:data:`epsilot.metrics.MetricKey`). Every kernel is compiled for one metric, on its first use.

The bound of a metric is ``bound(weight, low, size, x, node, axes)``. For a point x and a node of a
tree (:mod:`.tree`) with the box of its points y, the centre c of the box and a slope s, it returns
``low`` plus a lower bound of weight cost(x, y) - s·(y - c), without the exponent of the cost, and
``size`` plus the magnitudes of its terms.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numba.extending import overload

from ..metrics import METRICS, Metric
from .compiling import INLINE, njit
from .exp_log import power
from .llvm_ops import IS_PLAIN

# Parts of cached kernels need no cache of their own.
_PART = {**INLINE, "cache": False}
_OPTIONS = {"forceinline": True, "error_model": INLINE["error_model"]}
_ROWS = {metric.code: metric for metric in METRICS.values()}

#: A compiled function.
Function: TypeAlias = Any


class Form(NamedTuple):
    """A row of the table, and whether its terms and its cost have exponents."""

    metric: Metric
    has_inner: bool
    has_outer: bool
    has_boundary: bool

    @classmethod
    def of(cls, key: Any) -> Form:
        """Return the form of a key, or of the type of one."""
        code, inner, outer, *boundary = map(len, key)
        if code not in _ROWS:
            raise ValueError(f"no metric has the code {code}; see epsilot.metrics.METRICS.")
        return cls(_ROWS[code], inner > 0, outer > 0, len(boundary) > 0)

    def parts(self) -> tuple[Function, Function, Function]:
        """Return term(key, x, y), join(total, term) and finish(key, total), compiled."""
        row = self.metric
        term, join, finish = (njit(**_PART)(f) for f in (row.term, row.join, row.finish))

        def own_term(key, x, y):
            return term(x, y)

        def power_term(key, x, y):
            return power(term(x, y), key[1][0])

        def own_finish(key, total):
            return finish(total)

        def power_finish(key, total):
            t, exponent = finish(total), key[2][0]
            return key[2][1] * (t * t if exponent == 2 else power(t, exponent))

        return (
            njit(**_PART)(power_term if self.has_inner else own_term),
            join,
            njit(**_PART)(power_finish if self.has_outer else own_finish),
        )


def _fill(form: Form) -> Function:
    """Return the function that fills a row of costs."""
    term, join, finish = form.parts()
    has_boundary = form.has_boundary

    def fill(key, x, Y, row, lo, hi):
        x0, y0 = x[0], Y[0, lo:hi]
        for j in range(row.size):
            row[j] = term(key, x0, y0[j])
        for k in range(1, x.size):
            xk, y = x[k], Y[k, lo:hi]
            for j in range(row.size):
                row[j] = join(row[j], term(key, xk, y[j]))
        for j in range(row.size):
            row[j] = finish(key, row[j])
        if has_boundary:
            for j in range(row.size):
                if min(x0, y0[j]) < 0:
                    row[j] = finish(key, term(key, max(x0, y0[j], 0.0), 0.0))

    return fill


def _cost(form: Form) -> Function:
    """Return the cost of two points."""
    term, join, finish = form.parts()

    def cost(key, x, y, axes):
        total = term(key, x[0], y[0])
        for a in range(1, len(axes)):
            total = join(total, term(key, x[a], y[a]))
        return finish(key, total)

    if not form.has_boundary:
        return cost
    between = njit(**_PART)(cost)

    def boundary_cost(key, x, y, axes):
        if min(x[0], y[0]) >= 0:
            return between(key, x, y, axes)
        return finish(key, term(key, max(x[0], y[0], 0.0), 0.0))

    return boundary_cost


def _bound(form: Form) -> Function:
    """Return the bound of a metric, also where points or boxes may stand for the boundary."""
    own = _own_bound(form)
    if not form.has_boundary:
        return own
    own = njit(**_PART)(own)
    term, _, finish = form.parts()

    def bound(key, low, size, x, node, axes):
        d = len(axes)
        held = np.inf, 0.0
        if x[0] >= 0:
            held = own(key, low, size, x, node, axes)
            if node[0] >= 0:
                return held
        # Points on both sides of the boundary cost at least what the nearer one does.
        away = max(node[0], 0.0) if x[0] < 0 else x[0]
        nearest = finish(key, term(key, away, 0.0))
        size += nearest
        for a in range(d):
            middle, slope = 0.5 * (node[a] + node[d + a]), node[2 * d + a]
            radius = max(node[d + a] - middle, middle - node[a])
            nearest -= abs(slope) * radius
            size += (1 + abs(slope)) * radius
        return min(held[0], low + nearest), max(held[1], size)

    return bound


def _own_bound(form: Form) -> Function:
    """Return the metric's own bound, or one by the box."""
    if form.metric.bound is None or form.has_inner:
        return _box_bound(form)
    own, by_box = (njit(**_PART)(f) for f in (form.metric.bound, _box_bound(form)))
    term, join, finish = form._replace(has_outer=False).parts()

    def bound(key, low, size, x, node, axes):
        return own(1.0, low, size, x, node, axes)

    def power_bound(key, low, size, x, node, axes):
        # A power p >= 1 of the distance t is above its tangent at the centre of the box.
        at_box, box_size = by_box(key, low, size, x, node, axes)
        d, (p, factor) = len(axes), key[2]
        total = term(key, 0.5 * (node[0] + node[d]), x[0])
        for a in range(1, d):
            total = join(total, term(key, 0.5 * (node[a] + node[d + a]), x[a]))
        t = finish(key, total)
        if p < 1 or not t > 0:
            return at_box, box_size
        cost = factor * (t * t if p == 2 else power(t, p))
        weight = p * cost / t
        value, own_size = own(weight, (1 - p) * cost, p * cost, x, node, axes)
        return max(at_box, low + value), max(box_size, size + (1 + p) * own_size)

    return power_bound if form.has_outer else bound


def _box_bound(form: Form) -> Function:
    """Return a bound by the cost of the box's nearest point, and of -s·(y - c) by its radii."""
    term, join, finish = form.parts()
    has_inner, has_outer = form.has_inner, form.has_outer

    def bound(key, low, size, x, node, axes):
        d = len(axes)
        total = term(key, max(node[0] - x[0], x[0] - node[d], 0.0), 0.0)
        for a in range(1, d):
            total = join(total, term(key, max(node[a] - x[a], x[a] - node[d + a], 0.0), 0.0))
        nearest = finish(key, total)
        size += nearest
        if has_inner:  # roundings of a power grow with its exponent
            size += key[1][0] * nearest
        if has_outer:
            size += key[2][0] * nearest
        for a in range(d):
            middle, slope = 0.5 * (node[a] + node[d + a]), node[2 * d + a]
            radius = max(node[d + a] - middle, middle - node[a])
            nearest -= abs(slope) * radius
            size += (1 + abs(slope)) * radius
        return low + nearest, size

    return bound


# numba compiles these functions for the type of the key; without JIT they run as they are.

_made: dict[object, Function] = {}


def _chosen(make: Callable[[Form], Function], key: Any) -> Function:
    """Return the function of a key, made once."""
    name = make, *map(len, key)
    if name not in _made:
        _made[name] = make(Form.of(key))
    return _made[name]


def fill_costs(key, x, Y, row, lo, hi):
    """Write the costs of x and the targets lo..hi of Y, (d, m)."""
    return _chosen(_fill, key)(key, x, Y, row, lo, hi)


def pair_cost(key, x, y, axes):
    """Return the cost of two points; ``axes`` has as many entries."""
    return _chosen(_cost, key)(key, x, y, axes)


def node_bound(key, low, size, x, node, axes):
    """Return a lower bound over a node of a tree: see above."""
    return _chosen(_bound, key)(key, low, size, x, node, axes)


if not IS_PLAIN:

    @overload(fill_costs, jit_options=_OPTIONS)
    def _fill_costs(key, x, Y, row, lo, hi):
        return _chosen(_fill, key)

    @overload(pair_cost, jit_options=_OPTIONS)
    def _pair_cost(key, x, y, axes):
        return _chosen(_cost, key)

    @overload(node_bound, jit_options=_OPTIONS)
    def _node_bound(key, low, size, x, node, axes):
        return _chosen(_bound, key)
