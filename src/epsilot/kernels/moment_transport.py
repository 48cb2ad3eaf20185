"""Transport with the cost M_ij - <u_i, w_j>: the linear problems of Gromov-Wasserstein bounds.

Both clouds are centred. For a dx x dy matrix c, u_i = (4|x_i|², 16 cᵀx_i) and w_j = (|y_j|², y_j),
so that the cost is linear in c. The columns of ``W`` are the w_j, padded with zeros to a multiple
of ``WIDTH``; M, which may be empty, is padded alike.
"""

from __future__ import annotations

import numpy as np

from .arrays import copy_to, empty
from .assignment import assign_from, cost_row
from .compiling import KERNEL, njit
from .simd8 import WIDTH, least_of_row
from .small import below, dual_value, optimum
from .small_simplex import padded, zero_tree
from .sums import l1, total


@njit(**KERNEL)
def factor(X, x2, c, U):
    """Write u_i = (4|x_i|², 16 cᵀx_i)."""
    dy = U.shape[1] - 1
    for i in range(X.shape[0]):
        U[i, 0] = 4.0 * x2[i]
        for b in range(dy):
            t = 0.0
            for a in range(X.shape[1]):
                t += X[i, a] * c[a * dy + b]
            U[i, 1 + b] = 16.0 * t


@njit(**KERNEL)
def _cost(X, x2, W, M, c):
    """Return the cost as ``cost_row`` reads it."""
    U = empty((X.shape[0], W.shape[0]))
    factor(X, x2, c, U)
    return M, U, W, empty(W.shape[1])


@njit(**KERNEL)
def fill(X, x2, W, M, c, C, start, stop):
    """Write rows of the cost matrix C."""
    cost = _cost(X, x2, W, M, c)
    for i in range(start, stop):
        copy_to(cost_row(cost, i), C[i])


@njit(**KERNEL)
def moment(X, W, i, j, flow, Z):
    """Write Z = Σ flow x_i y_jᵀ over arcs."""
    dx, dy = X.shape[1], W.shape[0] - 1
    terms = empty(flow.size)
    for a in range(dx):
        for b in range(dy):
            for k in range(flow.size):
                terms[k] = flow[k] * X[i[k], a] * W[1 + b, j[k]]
            Z[a * dy + b] = total(terms)


@njit(**KERNEL)
def linear_part(x2, W, M, i, j, flow):
    """Return Σ flow (M_ij - 4 |x_i|² |y_j|²) over arcs."""
    terms = empty(flow.size)
    for k in range(flow.size):
        cost = -4.0 * x2[i[k]] * W[0, j[k]]
        if M.shape[0] > 0:
            cost += M[i[k], j[k]]
        terms[k] = flow[k] * cost
    return total(terms)


@njit(**KERNEL)
def _bound(cost, p, q, v):
    """Return the bound that prices of the columns prove, and the size of its terms."""
    m = q.size
    terms, others = empty(p.size), empty(m)
    for i in range(p.size):
        terms[i] = p[i] * below(least_of_row(cost_row(cost, i), v)[0])
    for j in range(m):
        others[j] = q[j] * v[j]
    return total(terms) + total(others), l1(terms) + l1(others)


@njit(**KERNEL)
def bound_of_prices(X, x2, W, M, p, q, c, v):
    """Return the lower bound of the transport that prices of the columns prove, and its size."""
    prices = empty(W.shape[1])
    prices[:] = -np.inf
    for j in range(q.size):
        prices[j] = v[j]
    return _bound(_cost(X, x2, W, M, c), p, q, prices)


@njit(**KERNEL)
def extend(X, x2, W, M, c, v, columns, coarse, v_out):
    """Write prices of all columns: the least C_ij - f_i over the rows of a coarse problem.

    Row k of the coarse problem is row ``coarse[k]``, matched to its column ``columns[k]`` with the
    price ``v[k]``.
    """
    cost = _cost(X, x2, W, M, c)
    v_out[:] = np.inf
    for k in range(coarse.size):
        row = cost_row(cost, coarse[k])
        f = row[columns[k]] - v[k]
        for j in range(v_out.size):
            v_out[j] = min(v_out[j], row[j] - f)


@njit(**KERNEL)
def unclaimed(X, x2, W, M, c, v):
    """Return the number of columns that are the cheapest, at prices v, of no row."""
    cost = _cost(X, x2, W, M, c)
    prices, is_claimed = empty(W.shape[1]), empty(v.size, np.bool_)
    prices[:] = -np.inf
    for j in range(v.size):
        prices[j], is_claimed[j] = v[j], False
    n_left = v.size
    for i in range(X.shape[0]):
        j = least_of_row(cost_row(cost, i), prices)[1]
        if not is_claimed[j]:
            is_claimed[j] = True
            n_left -= 1
    return n_left


@njit(**KERNEL)
def match(X, x2, W, M, p, q, c, v, Z, columns):
    """Solve an assignment with equal masses, from prices v of the columns, which it improves.

    Row i goes to ``columns[i]``, and Z gets the cross moment. Return the proved lower bound, the
    size of its terms and the linear part of the objective.
    """
    n, size = p.size, W.shape[1]
    cost = _cost(X, x2, W, M, c)
    prices = empty(size)
    prices[:] = -np.inf  # the reduced costs of the padding are infinite
    for j in range(n):
        prices[j] = v[j]
    ints = empty((5, size), np.int64)
    assign_from(cost, n, prices, ints[0], ints[1], ints[2], ints[3], ints[4], empty((4, size)))
    copy_to(ints[0], columns)
    middle = total(prices[:n]) / n
    for j in range(n):
        prices[j] -= middle
        v[j] = prices[j]
    lower, largest = _bound(cost, p, q, prices)
    rows = empty(n, np.int64)
    for i in range(n):
        rows[i] = i
    moment(X, W, rows, columns, p, Z)
    return lower, largest, linear_part(x2, W, M, rows, columns, p)


@njit(**KERNEL)
def match_all(X, x2, W, M, p, q, centres, prices, Z, columns, numbers, start, stop):
    """Solve assignments ``start:stop``, each from its own prices; ``numbers`` gets what is proved.

    Each result depends on its own row only.
    """
    for k in range(start, stop):
        found = match(X, x2, W, M, p, q, centres[k], prices[k], Z[k], columns[k])
        numbers[k, 0], numbers[k, 1], numbers[k, 2] = found


@njit(**KERNEL)
def flow_on_tree(X, x2, W, M, p, q, c, v, Z, arcs, flow):
    """Solve a small problem with any masses by pivots; return the number of arcs, 0 if it failed.

    ``v`` gets prices of the columns. The other three numbers are those of ``match``.
    """
    n, m = padded(p.size, q.size)
    cost = _cost(X, x2, W, M, c)
    n_nodes = n + m + WIDTH
    C, ints, reals = empty((n, m)), empty((5, n_nodes), np.int64), empty((6, n_nodes))
    C[:] = np.inf
    low = np.inf
    for i in range(p.size):
        row = cost_row(cost, i)
        for j in range(q.size):
            C[i, j] = row[j]
            low = min(low, row[j])
    largest = 0.0
    for i in range(p.size):
        for j in range(q.size):
            C[i, j] -= low
            largest = max(largest, C[i, j])
    f, g = reals[4, : p.size], reals[5, :m]
    tree = zero_tree(n_nodes)
    n_arcs = optimum(C, p, q, largest, f, g, arcs[0], arcs[1], flow, tree, ints, reals)
    if n_arcs == 0:
        return 0, 0.0, 0.0, 0.0
    dual_value(C, p, q, f, g)
    prices = empty(W.shape[1])
    prices[:] = -np.inf
    for j in range(q.size):
        prices[j], v[j] = g[j], g[j]
    lower, size = _bound(cost, p, q, prices)
    i, j = arcs[0, :n_arcs], arcs[1, :n_arcs]
    moment(X, W, i, j, flow[:n_arcs], Z)
    return n_arcs, lower, size, linear_part(x2, W, M, i, j, flow[:n_arcs])


@njit(**KERNEL)
def flow_on_trees(
    X, x2, W, M, p, q, centres, prices, Z, arcs, flow, n_arcs, numbers, start, stop
):  # fmt: skip
    """Solve small problems ``start:stop`` with any masses."""
    for k in range(start, stop):
        found = flow_on_tree(X, x2, W, M, p, q, centres[k], prices[k], Z[k], arcs[k], flow[k])
        n_arcs[k], numbers[k, 0], numbers[k, 1], numbers[k, 2] = found
