"""Solve many small transport problems, from costs and weights to proven bounds, in compiled code.

A problem is a cost, a source and a target histogram; problems may share any of them. Problems that
are refused here (invalid input, too large, badly scaled for float64, or a gap above the target) are
marked, and the general path solves them or reports the error.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np

from .._types import Index, Matrix, Vector
from . import proof
from .arrays import copy_to, empty
from .assignment import assign
from .compiling import EXTREMUM, KERNEL, njit
from .exp_log import larger, wide_vectors
from .forest import MAX_UNSETTLED_MASS, both_sums, row_costs, settle, take
from .proof import FEASIBLE
from .simd8 import WIDTH, add_to, least_of_row, lower_to
from .small_simplex import MAX_NODES, close, greedy, padded, pivots, price, sort_rows, zero_tree
from .sums import total
from .vectors import distance_of, finite_dot_of, shrink


class Histograms(NamedTuple):
    """Histogram h has the masses ``weights[starts[h] : starts[h + 1]]`` of total 1 at ``places``.

    ``totals`` are the sums of the given weights: NaN if these are invalid, and 0 for uniform
    weights, which take the total of the other side. ``sizes`` count all places, empty ones
    included.
    """

    starts: Index
    places: Index
    weights: Vector
    totals: Vector
    sizes: Index


@njit(**KERNEL)
def _keep(given, starts, empty, kept, places, weights, totals):
    """Copy the weights of each histogram that are above ``empty`` times their total."""
    size = 0
    kept[0] = 0
    for h in range(starts.size - 1):
        total, is_good = 0.0, True
        for k in range(starts[h], starts[h + 1]):
            is_good &= 0 <= given[k] < np.inf
            total += given[k]
        is_good &= 0 < total < np.inf
        totals[h] = total if is_good else np.nan
        if is_good:
            first, held = size, 0.0
            for k in range(starts[h], starts[h + 1]):
                if given[k] > empty * total:
                    places[size], weights[size] = k - starts[h], given[k]
                    held += given[k]
                    size += 1
            for k in range(first, size):
                weights[k] /= held
        kept[h + 1] = size


def without_zeros(given: Vector, starts: Index, sizes: Index, empty: float) -> Histograms:
    """Return histograms without empty places, from concatenated weights."""
    n = starts.size - 1
    begins, totals = np.empty(n + 1, np.int64), np.empty(n)
    places, weights = np.empty(given.size, np.int64), np.empty(given.size)
    _keep(given, starts, empty, begins, places, weights, totals)
    return Histograms(begins, places, weights, totals, sizes)


def uniform_histograms(sizes: Index) -> Histograms:
    """Return uniform weights on ``sizes`` places, with the total of the other side."""
    sizes = np.ascontiguousarray(sizes)
    starts = np.concatenate(([0], np.cumsum(sizes)))
    places = np.arange(starts[-1]) - np.repeat(starts[:-1], sizes)
    return Histograms(starts, places, np.repeat(1.0 / sizes, sizes), np.zeros(sizes.size), sizes)


# -- certificates ----------------------------------------------------------------------------------
#
# The compiled counterpart of :mod:`epsilot.problems.objective`. It does not trust the solver: the
# flow of a tree is computed again from the masses, potentials are c-transforms, and both are priced
# again.


@njit(**KERNEL)
def tree_flow(C, closed, p, q, parents, left, rest, flow):
    """Write the flow on the arcs of a tree that the masses determine.

    Nodes are listed before their parents. The arc of a node to its parent carries all of the node's
    remaining mass.
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


@njit(**KERNEL)
def tree_arcs(m, closed, parents, flow, arcs_i, arcs_j, arcs_flow):
    """List the arcs of a tree that carry flow; return their number."""
    size = 0
    for u in closed[:-1]:
        if flow[u] > 0:
            v = parents[u]
            arcs_i[size], arcs_j[size] = (u - m, v) if u >= m else (v - m, u)
            arcs_flow[size] = flow[u]
            size += 1
    return size


@njit(**KERNEL)
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


@njit(**KERNEL)
def below(x):
    """Return a number below every number that rounds to x; a difference of 0 is exact."""
    return 0.0 if x == 0 else np.nextafter(x, -np.inf)


@njit(**KERNEL)
def dual_value(C, p, q, f, g):
    """Replace a row potential by its c-transforms, f_i + g_j <= C_ij in floating point.

    Return <p, f> + <q, g>. The largest entry of f is subtracted first, to keep digits.
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


# -- problems --------------------------------------------------------------------------------------

# The formulas of the general path, compiled.
are_held = njit(**KERNEL)(proof.are_held)
scaling_power = njit(**KERNEL)(proof.scaling_power)
cost_offset = njit(**KERNEL)(proof.cost_offset)
least_gap = njit(**KERNEL)(proof.least_gap)
relative_gap = njit(**KERNEL)(proof.relative_gap)
conversion_slack = njit(**KERNEL)(proof.conversion_slack)
is_within = njit(**KERNEL)(proof.is_within)
are_consistent = njit(**KERNEL)(proof.are_consistent)
to_user = njit(**KERNEL)(proof.to_user)

#: Largest violation of reduced costs after pivots, as a fraction of the largest cost: in the first
#: round, and after prices have been computed again.
FIRST_TOLERANCE, FINAL_TOLERANCE = 1e-11, 2e-14
#: Most rounds of recomputed prices, and most pivots per round and node.
MAX_ROUNDS, MAX_PIVOTS_PER_NODE = 6, 50
#: Columns of ``Answers.numbers``: four in the user's units, then three in internal units.
NUMBERS = "value", "lower", "error", "mass", "offset", "unit", "largest"
#: Largest cost or mass whose prices, sums along a tree, cannot overflow.
MAX_INPUT = 1e300
#: Most rows of a problem that prices two blocks of rows per pivot.
MAX_TWO_BLOCK_ROWS = 64


class SmallGoal(NamedTuple):
    """The target gap: ``eps``, or if that is 0 the fraction ``rtol`` of the lower bound."""

    eps: float
    rtol: float
    totals: float  # largest relative difference of totals that counts as round-off


class Problems(NamedTuple):
    """Problem k is the cost ``of[k, 0]`` with the histograms ``of[k, 1]`` and ``of[k, 2]``.

    ``costs`` holds one (n, m) matrix after the other; matrix c begins at ``starts[c]``.
    """

    costs: Vector
    starts: Index
    sources: Histograms
    targets: Histograms
    of: Index


class Answers(NamedTuple):
    """The certified results of each problem; the columns of ``numbers`` are ``NUMBERS``.

    Problem k's plan has ``n_arcs[k]`` arcs (i, j), none if it was refused; they begin at
    ``at[0, k]``. Its potentials begin at ``at[1, k]`` of f and ``at[2, k]`` of g; they are in
    internal units, and NaN at empty places.
    """

    n_arcs: Index
    numbers: Matrix
    at: Index
    arcs: Index
    flow: Vector
    f: Vector
    g: Vector


def have_equal_masses(problems: Problems) -> bool:
    """Tell whether all masses of all problems are the same: then each is an assignment."""
    sides = problems.sources.weights, problems.targets.weights
    if not all(w.size for w in sides):
        return False
    ends = {float(x) for w in sides for x in (w.min(), w.max())}
    return len(ends) == 1 and not np.isnan(ends.pop())


@njit(**EXTREMUM)
def _largest(x):
    """Return the largest of numbers, none of which is NaN."""
    wide_vectors()
    best = x[0]
    for k in range(1, x.size):
        best = larger(x[k], best)
    return best


@njit(**EXTREMUM)
def _extent(x):
    """Return the least and the largest of numbers, none of which is NaN."""
    wide_vectors()
    low, high = -x[0], x[0]
    for k in range(1, x.size):
        low, high = larger(-x[k], low), larger(x[k], high)
    return -low, high


@njit(**KERNEL)
def _bounds(x):
    """Return the least and the largest number, or NaN twice if any is not finite."""
    are_finite = x.size > 0
    for k in range(x.size):
        are_finite &= abs(x[k]) < np.inf
    return _extent(x) if are_finite else (np.nan, np.nan)


@njit(**KERNEL)
def _frame(low, high, mass):
    """Return offset, unit and scale of a cost with these bounds, and whether float64 holds it."""
    size = max(abs(low), abs(high))
    if not (are_held(size, mass) and high - low < np.inf):
        return 0.0, 1.0, 1.0, False
    power = scaling_power(size)
    scale, unit = math.ldexp(1.0, -power), math.ldexp(1.0, power)
    return cost_offset(low * scale, high * scale), unit, scale, scale < np.inf


@njit(**KERNEL)
def _gather(M, rows, cols, scale, offset, C):
    """Copy the costs of the kept rows and columns, shifted and scaled; return the largest."""
    n, m = rows.size, cols.size
    C[:] = np.inf
    for i in range(n):
        row, out = M[rows[i]], C[i]
        if m == M.shape[1]:
            for j in range(m):
                out[j] = row[j] * scale - offset
        else:
            for j in range(m):
                out[j] = row[cols[j]] * scale - offset
    largest = 0.0
    for i in range(n):
        largest = max(largest, _largest(C[i, :m]))
    return largest


@njit(**KERNEL)
def _are_usable(x):
    """Tell whether all numbers are in [0, MAX_INPUT]; NaN is not."""
    are_all = True
    for k in range(x.size):
        are_all &= 0 <= x[k] <= MAX_INPUT
    return are_all


@njit(**KERNEL)
def are_equal(p):
    """Tell whether all masses are the same."""
    is_equal = True
    for k in range(1, p.size):
        is_equal &= p[k] == p[0]
    return is_equal


@njit(**KERNEL)
def _assignment(C, p, f, g, arcs_i, arcs_j, flow, ints, reals):
    """Match equal masses; write the plan and a row potential."""
    n = p.size
    m = C.shape[1]
    columns, rows, befores = ints[0, :m], ints[1, :m], ints[2, :m]
    assign(C, n, g, columns, rows, befores, ints[3, :m], ints[4, :m], reals[:, :m])
    for i in range(n):
        arcs_i[i], arcs_j[i], flow[i] = i, columns[i], p[i]
        f[i] = C[i, columns[i]] - g[columns[i]]
    return n


@njit(**KERNEL)
def _simplex(C, p, q, largest, f, g, arcs_i, arcs_j, arcs_flow, tree, ints, reals):
    """Find an optimal tree; write its plan and a row potential; return the arcs, or 0."""
    n, m = p.size, C.shape[1]
    means, keys, left, free = reals[0, :m], reals[1, :n], reals[2, :m], reals[3, :m]
    order, closed, spare = ints[0, :n], ints[1, : n + q.size], ints[2, :n]
    # Start prices halfway between least and mean cost of a column; most expensive rows first.
    for j in range(m):
        g[j], means[j] = np.inf, 0.0
    for i in range(n):
        add_to(C[i], 1.0 / n, means)
        lower_to(C[i], 0.0, g)
        keys[i] = -total(C[i, : q.size])
    add_to(means, 1.0, g)
    for j in range(q.size):
        g[j] *= 0.5
    sort_rows(keys, order, spare)
    greedy(C, p, q, g, order, left, free, closed, tree)
    n_blocks = 2 if n <= MAX_TWO_BLOCK_ROWS else 1
    most = MAX_PIVOTS_PER_NODE * (n + q.size)
    is_optimal, tolerance = False, FIRST_TOLERANCE
    for _ in range(MAX_ROUNDS):
        price(C, closed, tree)
        n_pivots = pivots(C, tree, n_blocks, tolerance * largest, most)
        if n_pivots == 0 and tolerance == FINAL_TOLERANCE:
            is_optimal = True
            break
        tolerance = FINAL_TOLERANCE
        close(m, q.size, tree, closed, ints[2], ints[3])
    if not is_optimal:
        return 0
    y, flow, parents, _, _ = tree
    tree_flow(C, closed, p, q, parents, reals[0], reals[1], flow)
    for i in range(n):
        f[i] = -y[m + i]
    return tree_arcs(m, closed, parents, flow, arcs_i, arcs_j, arcs_flow)


@njit(**KERNEL)
def optimum(C, p, q, largest, f, g, i, j, flow, tree, ints, reals):
    """Write an optimal plan and a row potential; return the arcs, or 0 if none was found."""
    if p.size == q.size and are_equal(p) and are_equal(q):
        return _assignment(C, p, f, g, i, j, flow, ints, reals)
    if tree is None:
        return 0
    y, flows, parents, sets, paths = tree
    n_nodes = -(-(C.shape[0] + C.shape[1]) // WIDTH) * WIDTH
    tree = y[:n_nodes], flows[:n_nodes], parents[:n_nodes], sets[: n_nodes + 1], paths
    return _simplex(C, p, q, largest, f, g, i, j, flow, tree, ints, reals)


@njit(**KERNEL)
def _allowed(lower, offset, size, mass, unit, goal):
    """Return the target gap in internal units, or NaN if float64 cannot certify it."""
    if goal.eps > 0:
        eps = goal.eps / mass / unit
        return eps if least_gap(size) <= eps else np.nan
    return relative_gap(goal.rtol, lower + offset, size)


@njit(**KERNEL)
def _mass(a, b, goal):
    """Return the common mass of totals a and b, or NaN if they differ or weights are invalid."""
    if a == 0 or b == 0:
        return max(a, b) if a + b > 0 else 1.0
    return a if abs(a - b) <= goal.totals * a else np.nan


@njit(**KERNEL)
def _solve(M, rows, cols, p, q, frame, goal, arcs, flow, f, g, numbers, workspace):
    """Solve one problem and write its certified result; return the number of arcs, or 0."""
    low, high, mass = frame
    offset, unit, scale, is_good = _frame(low, high, mass)
    n, m = padded(p.size, q.size)
    n_nodes = -(-(n + m) // WIDTH) * WIDTH
    if not is_good or n_nodes > MAX_NODES or p.size == 0 or q.size == 0:
        return 0
    buffer, tree, ints, reals = workspace
    C = buffer[: n * m].reshape(n, m)
    largest = _gather(M, rows, cols, scale, offset, C)
    own_f, own_g, i, j = reals[4, : p.size], reals[5, :m], arcs[0], arcs[1]
    n_arcs = optimum(C, p, q, largest, own_f, own_g, i, j, flow, tree, ints, reals)
    lower = dual_value(C, p, q, own_f, own_g)
    upper, error = plan_value(C, p, q, i, j, flow[:n_arcs], reals[0, :n_nodes])
    cost_max = high * scale - offset
    size = max(abs(offset), abs(offset + cost_max))
    allowed = _allowed(lower, offset, size, mass, unit, goal)
    value = to_user(upper, offset, mass, unit)
    bound = min(to_user(lower, offset, mass, unit), value)
    if not (
        n_arcs > 0
        and error <= FEASIBLE
        and are_consistent(upper, lower, cost_max)
        and is_within(upper, lower, allowed, conversion_slack(size))
        and value - bound <= mass * unit * allowed
    ):
        return 0
    for k in range(n_arcs):
        i[k], j[k] = rows[i[k]], cols[j[k]]
    for k in range(p.size):
        f[rows[k]] = own_f[k]
    for k in range(q.size):
        g[cols[k]] = own_g[k]
    numbers[0], numbers[1], numbers[2], numbers[3] = value, bound, mass * error, mass
    numbers[4], numbers[5], numbers[6] = offset, unit, cost_max
    return n_arcs


@njit(**KERNEL)
def _space(entries, nodes, trees):
    """Return scratch arrays for problems of given numbers of entries and nodes."""
    ints, reals = empty((5, nodes), np.int64), empty((6, nodes))
    if trees is None:
        return empty(entries), None, ints, reals
    return empty(entries), zero_tree(nodes), ints, reals


@njit(**KERNEL)
def _workspace(problems, trees):
    """Return scratch arrays for the largest problem that fits a tree."""
    entries, nodes = 1, WIDTH
    for k in range(problems.of.shape[0]):
        _, h, t = problems.of[k]
        n_rows = problems.sources.starts[h + 1] - problems.sources.starts[h]
        n_cols = problems.targets.starts[t + 1] - problems.targets.starts[t]
        n, m = padded(n_rows, n_cols)
        if n + m <= MAX_NODES:
            entries, nodes = max(entries, n * m), max(nodes, n + m + WIDTH)
    return _space(entries, nodes, trees)


@njit(**KERNEL)
def solve_all(problems, goal, out, trees):
    """Solve every problem and write its certified result to ``out``.

    Pass None for ``trees`` if all masses are equal, and True otherwise: assignments need no
    simplex, which then is not compiled.
    """
    costs, starts, sources, targets, of = problems
    workspace = _workspace(problems, trees)
    seen, low, high = -1, np.nan, np.nan
    for k in range(of.shape[0]):
        cost, h, t = of[k]
        n, m = sources.sizes[h], targets.sizes[t]
        M = costs[starts[cost] : starts[cost] + n * m].reshape(n, m)
        if cost != seen:
            low, high = _bounds(costs[starts[cost] : starts[cost] + n * m])
            seen = cost
        mass = _mass(sources.totals[h], targets.totals[t], goal)
        a, b = sources.starts[h], sources.starts[h + 1]
        c, d = targets.starts[t], targets.starts[t + 1]
        first, last = out.at[0, k], out.at[0, k + 1]
        out.n_arcs[k] = _solve(
            M, sources.places[a:b], targets.places[c:d], sources.weights[a:b],
            targets.weights[c:d], (low, high, mass), goal, out.arcs[:, first:last],
            out.flow[first:last], out.f[out.at[1, k] :], out.g[out.at[2, k] :], out.numbers[k],
            workspace,
        )  # fmt: skip


@njit(**KERNEL)
def _load(M, C):
    """Copy a cost, padded with infinity; return its largest entry, or NaN if one is unusable."""
    n, m = M.shape
    C[:] = np.inf
    largest, are_usable = np.nan, True
    for i in range(n):
        row, out = M[i], C[i]
        for j in range(m):
            out[j] = row[j]
        are_usable &= _are_usable(out[:m])
    if are_usable:
        largest = 0.0
        for i in range(n):
            largest = max(largest, _largest(C[i, :m]))
    return largest


@njit(**KERNEL)
def match_one(M, p, q, arcs, flow, f, g):
    """Find an optimal plan of one problem with equal masses, uncertified; see ``solve_one``."""
    n, m = padded(p.size, q.size)
    C, ints, reals = empty((n, m)), empty((5, n + m), np.int64), empty((6, n + m))
    own_f, own_g = reals[4, : p.size], reals[5, :m]
    if not (_load(M, C) < np.inf and _are_usable(p)):
        return 0
    n_arcs = _assignment(C, p, own_f, own_g, arcs[0], arcs[1], flow, ints, reals)
    dual_value(C, p, q, own_f, own_g)
    copy_to(own_f, f)
    copy_to(own_g, g)
    return n_arcs


@njit(**KERNEL)
def solve_one(M, p, q, arcs, flow, f, g):
    """Find an optimal plan of one problem without empty rows and columns, uncertified.

    Write its arcs, their flow and potentials of rows and columns. Return the number of arcs, or 0
    if no optimum was found or an input is negative, infinite or NaN. ``match_one`` solves problems
    with equal masses.
    """
    n, m = padded(p.size, q.size)
    n_nodes = -(-(n + m) // WIDTH) * WIDTH
    C, tree = empty((n, m)), zero_tree(n_nodes)
    ints, reals = empty((5, n_nodes), np.int64), empty((6, n_nodes))
    own_f, own_g = reals[4, : p.size], reals[5, :m]
    largest = _load(M, C)
    if not (largest < np.inf and _are_usable(p) and _are_usable(q)):
        return 0
    n_arcs = _simplex(C, p, q, largest, own_f, own_g, arcs[0], arcs[1], flow, tree, ints, reals)
    if n_arcs > 0:
        dual_value(C, p, q, own_f, own_g)
        copy_to(own_f, f)
        copy_to(own_g, g)
    return n_arcs


@njit(**KERNEL)
def are_below_costs(M, f, g):
    """Tell whether f_i <= M_ij - g_j for all pairs, in floating point."""
    are_all = True
    for i in range(f.size):
        row, least = M[i], f[i]
        for j in range(g.size):
            are_all &= least <= row[j] - g[j]
    return are_all


@njit(**KERNEL)
def prove_vertex(M, p, q, n_arcs, i, j, flow, f, g):
    """Give the arcs of a forest the flow that p and q determine, and prove it with potentials.

    Every number has the bits of ``Objective.evaluate`` and ``Objective.prove``. Arcs without flow
    are dropped. Return the number of arcs, or 0 without a proof; the upper and the lower bound; and
    the l1 distance of the given flow from the marginals.
    """
    n, m = p.size, q.size
    r, c, s, t = empty(n), empty(m), empty(n), empty(m)
    i, j, flow, settled = i[:n_arcs], j[:n_arcs], flow[:n_arcs], empty(n_arcs)
    both_sums(i, j, flow, r, c)
    error = shrink(r, p, s) + shrink(c, q, t)
    if not (error < np.inf and settle(i, j, p, q, settled) <= MAX_UNSETTLED_MASS):
        return 0, np.inf, -np.inf, error
    size, costs = 0, empty(n_arcs)
    for k in range(n_arcs):
        if settled[k] > 0:
            i[size], j[size], flow[size], costs[size] = i[k], j[k], settled[k], M[i[k], j[k]]
            size += 1
    i, j, flow = i[:size], j[:size], flow[:size]
    both_sums(i, j, flow, r, c)
    missed = distance_of(r, p) + distance_of(c, q)
    upper = row_costs(i, costs, flow, n)
    lower = finite_dot_of(p, f) + finite_dot_of(q, g)
    is_proved = missed <= FEASIBLE and are_below_costs(M, f, g)
    return size if is_proved else 0, upper, lower, error


@njit(**KERNEL)
def answer_one(M, p, q, arcs, flow, f, g, trees):
    """Solve one problem without empty rows and columns, and prove the answer: see ``prove_vertex``.

    Pass None for ``trees`` if all masses are equal, and True otherwise.
    """
    n, m = padded(p.size, q.size)
    buffer, tree, ints, reals = _space(n * m, -(-(n + m) // WIDTH) * WIDTH, trees)
    C, own_f, own_g = buffer.reshape(n, m), reals[4, : p.size], reals[5, :m]
    largest = _load(M, C)
    if not (largest < np.inf and _are_usable(p) and _are_usable(q)):
        return 0, np.inf, -np.inf, np.inf
    i, j = arcs[0], arcs[1]
    n_arcs = optimum(C, p, q, largest, own_f, own_g, i, j, flow, tree, ints, reals)
    if n_arcs == 0:
        return 0, np.inf, -np.inf, np.inf
    dual_value(C, p, q, own_f, own_g)
    dual_value(C, p, q, own_f, own_g)  # of the dual that the method proposes
    copy_to(own_f, f)
    copy_to(own_g, g)
    return prove_vertex(M, p, q, n_arcs, i, j, flow, f, g)


def blank(problems: Problems) -> Answers:
    """Return empty results for all problems."""
    of = problems.of
    n, m = problems.sources.sizes[of[:, 1]], problems.targets.sizes[of[:, 2]]
    at = np.zeros((3, of.shape[0] + 1), np.int64)
    np.cumsum((n + m, n, m), axis=1, out=at[:, 1:])
    n_arcs, n_rows, n_cols = at[:, -1]
    return Answers(
        np.zeros(of.shape[0], np.int64), np.full((of.shape[0], len(NUMBERS)), np.nan), at,
        np.zeros((2, n_arcs), np.int64), np.zeros(n_arcs), np.full(n_rows, np.nan),
        np.full(n_cols, np.nan),
    )  # fmt: skip


# -- potentials ------------------------------------------------------------------------------------

EPS = float(np.finfo(float).eps)


@njit(**KERNEL)
def _extend_pair(M, scale, offset, f, g):
    """Write the c-transforms where potentials are NaN: f_i + g_j <= C_ij everywhere."""
    n, m = M.shape
    for j in range(m):
        if not np.isnan(g[j]):
            continue
        least = np.inf
        for i in range(n):
            if not np.isnan(f[i]):
                least = min(least, M[i, j] * scale - offset - f[i])
        g[j] = below(least)
    for i in range(n):
        if not np.isnan(f[i]):
            continue
        least = np.inf
        for j in range(m):
            least = min(least, M[i, j] * scale - offset - g[j])
        f[i] = below(least)


@njit(**KERNEL)
def extend_potentials(problems, out):
    """Extend the potentials of all solved problems to places without mass."""
    costs, starts, sources, targets, of = problems
    for k in range(of.shape[0]):
        if out.n_arcs[k] == 0:
            continue
        cost, h, t = of[k]
        n, m = sources.sizes[h], targets.sizes[t]
        kept = sources.starts[h + 1] - sources.starts[h] + targets.starts[t + 1] - targets.starts[t]
        if kept == n + m:
            continue
        M = costs[starts[cost] : starts[cost] + n * m].reshape(n, m)
        f, g = out.f[out.at[1, k] : out.at[1, k + 1]], out.g[out.at[2, k] : out.at[2, k + 1]]
        _extend_pair(M, 1.0 / out.numbers[k, 5], out.numbers[k, 4], f, g)


@njit(**KERNEL)
def potentials_to_user(out, f_out, g_out):
    """Write potentials in the caller's units, feasible as before.

    Shifting and scaling rounded the costs, so f is lowered by that error. Products with a unit
    below 1 may be subnormal and rounded, and are lowered too.
    """
    for k in range(out.n_arcs.size):
        offset, unit, largest = out.numbers[k, 4], out.numbers[k, 5], out.numbers[k, 6]
        size = 0.0
        for i in range(out.at[1, k], out.at[1, k + 1]):
            size = max(size, abs(out.f[i]))
        for i in range(out.at[1, k], out.at[1, k + 1]):
            f = out.f[i]
            if offset != 0:
                f = np.nextafter(f - EPS * (largest + size) + offset, -np.inf)
            f_out[i] = below(unit * f) if unit < 1 else unit * f
        for j in range(out.at[2, k], out.at[2, k + 1]):
            g_out[j] = below(unit * out.g[j]) if unit < 1 else unit * out.g[j]
