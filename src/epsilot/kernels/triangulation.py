"""A regular triangulation that gains one point at a time, with a lower bound on every simplex.

Corner k is at ``points[k]`` and V at most ``values[k]`` there. V is convex, so on a simplex it lies
below the interpolation of its corners, and 8|A|² - V(A) has a lower bound there: the least value of
a convex quadratic function, at ``places``. The plane through a corner that a new point undercuts
no longer belongs to the triangulation: Bowyer and Watson's method replaces those simplices.

A triangulation is a tuple of arrays: points, values, corners, neighbours, bounds, places, is_used
and the free slots. Neighbour k of a simplex lies behind the face without its corner k; -1 is the
outside.
"""

from __future__ import annotations

import numpy as np

from .arrays import empty, zeros
from .compiling import KERNEL, njit

#: Bound of an empty slot.
EMPTY = 1e300
#: Determinants up to this share of the product of their edges do not tell on which side a point is.
FLAT = 1e-14
#: Reasons why a point was not inserted: it sees the outside from behind, or there is no room.
OUTSIDE, FULL = -1, -2


@njit(**KERNEL)
def solve_in_place(A, r):
    """Solve A x = r by elimination with pivoting, into r; return False if A is singular."""
    n = r.size
    for i in range(n):
        p = i
        for k in range(i + 1, n):
            if abs(A[k, i]) > abs(A[p, i]):
                p = k
        if abs(A[p, i]) < 1e-300:
            return False
        if p != i:
            for j in range(n):
                A[i, j], A[p, j] = A[p, j], A[i, j]
            r[i], r[p] = r[p], r[i]
        for k in range(i + 1, n):
            factor = A[k, i] / A[i, i]
            if factor != 0.0:
                for j in range(i, n):
                    A[k, j] -= factor * A[i, j]
                r[k] -= factor * r[i]
    for i in range(n - 1, -1, -1):
        for j in range(i + 1, n):
            r[i] -= A[i, j] * r[j]
        r[i] /= A[i, i]
    return True


@njit(**KERNEL)
def determinant(A):
    """Return the determinant of A, which is overwritten."""
    n, value = A.shape[0], 1.0
    for i in range(n):
        p = i
        for k in range(i + 1, n):
            if abs(A[k, i]) > abs(A[p, i]):
                p = k
        if A[p, i] == 0.0:
            return 0.0
        if p != i:
            for j in range(n):
                A[i, j], A[p, j] = A[p, j], A[i, j]
            value = -value
        value *= A[i, i]
        for k in range(i + 1, n):
            factor = A[k, i] / A[i, i]
            for j in range(i, n):
                A[k, j] -= factor * A[i, j]
    return value


@njit(**KERNEL)
def bound(points, values, corners, place):
    """Return a lower bound of 8|A|² - V(A) on a simplex, and write the place of the least value.

    With weights λ of the corners this is 8|Σ λ_i c_i|² - Σ λ_i V_i, minimised by Wolfe's active
    sets. Any place proves a bound; the computed one is used. Coordinates relative to the first
    corner keep the digits: it has the index q - 1 here.
    """
    q, D = corners.size, points.shape[1]
    E, w, G = empty((q - 1, D)), empty(q - 1), empty((q - 1, q - 1))
    first = points[corners[0]]
    for i in range(q - 1):
        t = 0.0
        for d in range(D):
            E[i, d] = points[corners[i + 1], d] - first[d]
            t += first[d] * E[i, d]
        w[i] = values[corners[i + 1]] - values[corners[0]] - 16.0 * t
    for i in range(q - 1):
        for j in range(q - 1):
            t = 0.0
            for d in range(D):
                t += E[i, d] * E[j, d]
            G[i, j] = t
    is_active = zeros(q, np.bool_)
    lam, wanted, slope, u = zeros(q), zeros(q), zeros(q), zeros(D)
    A, r = empty((q, q)), empty(q)
    best, low, big = q - 1, 0.0, 0.0
    for i in range(q - 1):
        if 8.0 * G[i, i] - w[i] < low:
            low, best = 8.0 * G[i, i] - w[i], i
        big = max(big, 16.0 * G[i, i], abs(w[i]))
    lam[best], is_active[best] = 1.0, True
    for _ in range(6 * q):
        for d in range(D):
            u[d] = 0.0
            for i in range(q - 1):
                u[d] += lam[i] * E[i, d]
        mean, best, slope[q - 1] = 0.0, q - 1, 0.0
        for i in range(q - 1):
            t = 0.0
            for d in range(D):
                t += E[i, d] * u[d]
            slope[i] = 16.0 * t - w[i]
            mean += lam[i] * slope[i]
            if slope[i] < slope[best]:
                best = i
        if slope[best] >= mean - 1e-14 * big or is_active[best]:
            break
        is_active[best] = True
        for _ in range(q + 1):
            # The least value on the plane of the active corners.
            n = 0
            for i in range(q - 1):
                if is_active[i]:
                    k = 0
                    for j in range(q - 1):
                        if is_active[j]:
                            A[n, k] = 16.0 * G[i, j]
                            k += 1
                    r[n] = w[i]
                    n += 1
            size = n
            if not is_active[q - 1]:
                for k in range(n):
                    A[k, n] = A[n, k] = big
                A[n, n], r[n], size = 0.0, big, n + 1
            if not solve_in_place(A[:size, :size], r[:size]):
                break
            k, rest = 0, 1.0
            for i in range(q - 1):
                wanted[i] = 0.0
                if is_active[i]:
                    wanted[i] = r[k]
                    rest -= r[k]
                    k += 1
            wanted[q - 1] = rest if is_active[q - 1] else 0.0
            # Move there, or to the first face on the way.
            step, leaving = 1.0, -1
            for i in range(q):
                fall = lam[i] - wanted[i]
                if is_active[i] and wanted[i] <= 0.0 and fall > 0.0 and lam[i] / fall < step:
                    step, leaving = lam[i] / fall, i
            for i in range(q):
                if is_active[i]:
                    lam[i] += step * (wanted[i] - lam[i])
            if leaving < 0:
                break
            lam[leaving], is_active[leaving] = 0.0, False
    weight = 0.0
    for i in range(q):
        if not (0.0 <= lam[i] < np.inf):
            lam[i] = 0.0
        weight += lam[i]
    if weight <= 0.0:
        lam[:] = 1.0
        weight = 1.0 * q
    for d in range(D):
        u[d] = 0.0
        for i in range(q - 1):
            u[d] += lam[i] / weight * E[i, d]
        place[d] = first[d] + u[d]
    return bound_at(points, values, corners, place)


@njit(**KERNEL)
def bound_at(points, values, corners, place):
    """Return min_i 16 <A, c_i> - V_i - 8|A|², which any place A proves on the simplex."""
    low, square = np.inf, 0.0
    for i in range(corners.size):
        t = 0.0
        for d in range(place.size):
            t += place[d] * points[corners[i], d]
        low = min(low, 16.0 * t - values[corners[i]])
    for d in range(place.size):
        square += place[d] * place[d]
    return low - 8.0 * square


@njit(**KERNEL)
def _is_undercut(points, values, corners, p, E, r):
    """Tell whether point p, with its value, lies below the plane through the corners."""
    D = points.shape[1]
    for i in range(D):
        for d in range(D):
            E[i, d] = points[corners[i + 1], d] - points[corners[0], d]
        r[i] = values[corners[i + 1]] - values[corners[0]]
    if not solve_in_place(E, r):
        return False
    height = values[corners[0]]
    for d in range(D):
        height += r[d] * (points[p, d] - points[corners[0], d])
    return values[p] < height - 1e-13 * (1.0 + abs(height))


@njit(**KERNEL)
def _is_seen(points, corners, k, p, E):
    """Tell whether point p is strictly on the inner side of the face without corner k."""
    D = points.shape[1]
    for i in range(D):
        for d in range(D):
            E[i, d] = points[corners[i + 1], d] - points[corners[0], d]
    inner = determinant(E)
    first, size = (p if k == 0 else corners[0]), 1.0
    for i in range(D):
        other, square = (p if k == i + 1 else corners[i + 1]), 0.0
        for d in range(D):
            E[i, d] = points[other, d] - points[first, d]
            square += E[i, d] * E[i, d]
        size *= np.sqrt(square)
    return determinant(E) * np.sign(inner) > FLAT * size


@njit(**KERNEL)
def _has(simplex, corner):
    """Tell whether a simplex has a corner."""
    found = False
    for k in range(simplex.size):
        found |= simplex[k] == corner
    return found


@njit(**KERNEL)
def insert(mesh, p, start, counts, marks, cavity, table):
    """Replace what point p undercuts by a star of p; return the new simplices, or why not.

    ``counts`` holds the slots in use, the free ones and the number of the insertion, by which
    ``marks`` tells the cavity. Any cavity that is star-shaped from p gives a triangulation; one
    that is not exactly what p undercuts costs sharpness, not validity. A failure changes nothing.
    """
    points, values, corners, neighbours, bounds, places, is_used, free = mesh
    D = points.shape[1]
    q = D + 1
    E, r = empty((D, D)), empty(D)
    counts[2] += 1
    stamp = counts[2]
    cavity[0], marks[start] = start, stamp
    size, head = 1, 0
    while head < size:
        t = cavity[head]
        head += 1
        for k in range(q):
            o = neighbours[t, k]
            if o >= 0 and marks[o] != stamp and _is_undercut(points, values, corners[o], p, E, r):
                marks[o], cavity[size] = stamp, o
                size += 1
    n_faces, has_grown = 0, True
    while has_grown:  # until p sees every face of the cavity
        has_grown, n_faces, head = False, 0, 0
        while head < size:
            t = cavity[head]
            head += 1
            for k in range(q):
                o = neighbours[t, k]
                if o >= 0 and marks[o] == stamp:
                    continue
                n_faces += 1
                if not _is_seen(points, corners[t], k, p, E):
                    if o < 0:
                        return OUTSIDE
                    marks[o], cavity[size], has_grown = stamp, o, True
                    size += 1
    n_slots, n_free = counts[0], counts[1]
    if n_faces > n_free + corners.shape[0] - n_slots or 2 * n_faces * D >= table.shape[0]:
        return FULL
    # The star of p over the faces of the cavity.
    made = empty(n_faces, np.int64)
    n_made = 0
    for at in range(size):
        t = cavity[at]
        for k in range(q):
            o = neighbours[t, k]
            if o >= 0 and marks[o] == stamp:
                continue
            if n_free > 0:
                n_free -= 1
                x = free[n_free]
            else:
                x = n_slots
                n_slots += 1
            corners[x] = corners[t]
            corners[x, k] = p
            neighbours[x] = -1
            neighbours[x, k] = o
            if o >= 0:
                for i in range(q):
                    if neighbours[o, i] == t and not _has(corners[t], corners[o, i]):
                        neighbours[o, i] = x
            marks[x], is_used[x], made[n_made] = 0, True, x
            n_made += 1
    _link(corners, neighbours, made, p, table)
    for x in made:
        bounds[x] = bound(points, values, corners[x], places[x])
    for at in range(size):
        t = cavity[at]
        is_used[t], bounds[t], free[n_free] = False, EMPTY, t
        n_free += 1
    counts[0], counts[1] = n_slots, n_free
    return n_made


@njit(**KERNEL)
def _link(corners, neighbours, made, p, table):
    """Make neighbours of the new simplices that share a face with p, by a hash of its corners."""
    q = corners.shape[1]
    n_places = 2 * made.size * (q - 1) + 1
    ids, others = empty(q - 2, np.int64), empty(q - 2, np.int64)
    table[:n_places] = -1
    for x in made:
        for k in range(q):
            if corners[x, k] == p:
                continue
            _face(corners[x], k, p, ids)
            h = np.uint64(1469598103934665603)
            for a in range(ids.size):
                h = (h ^ np.uint64(ids[a] + 1)) * np.uint64(1099511628211)
            h ^= h >> np.uint64(32)
            place = np.int64(h % np.uint64(n_places))
            while table[place, 0] >= 0:
                other, side = table[place, 0], table[place, 1]
                _face(corners[other], side, p, others)
                if (ids == others).all():
                    neighbours[x, k], neighbours[other, side] = other, x
                    break
                place = place + 1 if place + 1 < n_places else 0
            else:
                table[place, 0], table[place, 1] = x, k


@njit(**KERNEL)
def _face(simplex, k, p, ids):
    """Write the sorted corners of the face without corner k, and without p."""
    size = 0
    for i in range(simplex.size):
        if i == k or simplex[i] == p:
            continue
        j = size
        while j > 0 and ids[j - 1] > simplex[i]:
            ids[j] = ids[j - 1]
            j -= 1
        ids[j] = simplex[i]
        size += 1


@njit(**KERNEL)
def weights_in(points, corners, place, lam):
    """Write the barycentric weights of a place; return the least one, or -inf if it is flat."""
    D = place.size
    E, r = empty((D, D)), empty(D)
    for i in range(D):
        for d in range(D):
            E[d, i] = points[corners[i + 1], d] - points[corners[0], d]
        r[i] = place[i] - points[corners[0], i]
    lam[:] = 0.0
    lam[0] = 1.0
    if not solve_in_place(E, r):
        return -np.inf
    for i in range(D):
        lam[i + 1] = r[i]
        lam[0] -= r[i]
    return lam.min()


@njit(**KERNEL)
def locate(points, corners, is_used, n_slots, place):
    """Return the simplex that holds a place: the one with the largest least weight."""
    best, found, lam = -np.inf, -1, empty(corners.shape[1])
    for t in range(n_slots):
        if not is_used[t]:
            continue
        least = weights_in(points, corners[t], place, lam)
        if least > best:
            best, found = least, t
        if least >= 0.0:
            break
    return found


@njit(**KERNEL)
def worst(bounds, n_slots):
    """Return the slot of least bound."""
    t = 0
    for k in range(1, n_slots):
        if bounds[k] < bounds[t]:
            t = k
    return t
