"""What the end of a small solve proves: a plan, feasible potentials, and their two values.

The compiled twin of :mod:`epsilot.problems.objective`, for problems of which there are too many
to be proved one by one in Python. Nothing here looks at what a solver believed: the flow of a tree
is found again from the masses, potentials are c-transforms, and both are priced from scratch.
"""

from __future__ import annotations

import numpy as np

from .compiling import njit
from .dense import SUM
from .forest import take
from .simd8 import least_of_row, lower_to


@njit(**SUM)
def settle(C, closed, p, q, parents, left, rest, flow):
    """Write the flow on the arcs of a tree that the masses determine.

    Nodes are listed before their parents: each sends (or gets) through the arc to its parent all
    that is left of its mass.
    """
    m = C.shape[1]
    for j in range(q.size):
        left[j], rest[j] = q[j], 0.0
    for i in range(p.size):
        left[m + i], rest[m + i] = p[i], 0.0
    for u in closed[:-1]:
        v = parents[u]
        flow[u] = max(left[u] + rest[u], 0.0)
        left[v], rest[v] = take(left[v], rest[v], flow[u])


@njit(**SUM)
def tree_arcs(m, closed, parents, flow, arcs_i, arcs_j, arcs_flow):
    """List the arcs of a tree that carry flow; return how many."""
    size = 0
    for u in closed[:-1]:
        if flow[u] > 0:
            v = parents[u]
            arcs_i[size], arcs_j[size] = (u - m, v) if u >= m else (v - m, u)
            arcs_flow[size] = flow[u]
            size += 1
    return size


@njit(**SUM)
def plan_value(C, p, q, i, j, flow, sums):
    """Return the cost of a plan on arcs, and the l1 distance from its marginals."""
    m = C.shape[1]
    sums[:] = 0.0
    cost = 0.0
    for k in range(flow.size):
        cost += flow[k] * C[i[k], j[k]]
        sums[m + i[k]] += flow[k]
        sums[j[k]] += flow[k]
    error = 0.0
    for k in range(p.size):
        error += abs(sums[m + k] - p[k])
    for k in range(q.size):
        error += abs(sums[k] - q[k])
    return cost, error


@njit(**SUM)
def below(x):
    """Return a number below those that x was rounded from; a difference of 0 is exact."""
    return 0.0 if x == 0 else np.nextafter(x, -np.inf)


@njit(**SUM)
def dual_value(C, p, q, f, g):
    """Replace a row potential by its c-transforms, f_i + g_j <= C_ij in floating point.

    Return <p, f> + <q, g>. A constant that f carries would cost digits and is taken off.
    """
    top = f[0]
    for i in range(1, p.size):
        top = max(top, f[i])
    g[:] = np.inf
    for i in range(p.size):
        lower_to(C[i], f[i] - top, g)
    g[q.size :] = 0.0
    value = 0.0
    for i in range(p.size):
        f[i] = below(least_of_row(C[i], g)[0])
        value += p[i] * f[i]
    for j in range(q.size):
        value += q[j] * g[j]
    return value
