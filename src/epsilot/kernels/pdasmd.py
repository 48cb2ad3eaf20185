"""The fused loops of PDASMD on the semi-dual.

``C`` is an (n, m) block of cost rows, vectors over columns are in cost units, ``inv_eta`` is
1/η. With S_i the softmax row of the snapshot and E_j = exp((v_j - ṽ_j) / η - shift), the row of
the current point needs no exponential of its own:

    s_i(v) - s_i(ṽ) = S_ij (E_j / Σ_j S_ij E_j - 1),

so a batch of B rows costs B + 1 exponentials a column, and S_i is had from the stored
log-normaliser of its row. With max_j E_j = 1 nothing overflows, and terms lost to underflow are
negligible unless the normaliser itself is small; it is then recomputed from its own maximum.

The inner loop also takes a float32 copy of C. What it computes there are differences that vanish
with v - ṽ, while the full gradient stays in float64, so single precision blurs the steps by one
part in 10⁷ without moving the point they converge to.
"""

from __future__ import annotations

import math

import numpy as np
from numba import njit

from .dense import EXTREMUM, SUM, row_max
from .vexp import exp_below, larger, wide_vectors

#: Normalisers above this have lost nothing to underflow, in float64 and in float32.
SAFE, SAFE_SINGLE = 1e-200, 1e-25


# -- the outer pass: steps 4, 14 and 15 -----------------------------------------------------


@njit(**SUM)
def _weighted(row, lam, shift, inv_eta, out):
    """out_j = exp((λ_j - C_ij - shift) / η); return the sum."""
    total = 0.0
    for j in range(row.size):
        out[j] = exp_below((lam[j] - row[j] - shift) * inv_eta)
        total += out[j]
    return total


@njit(**SUM)
def add(out, factor, weights):
    """out_j += factor weights_j."""
    for j in range(out.size):
        out[j] += factor * weights[j]


@njit(**SUM)
def snapshot(C, lam, p, inv_eta, lse, parts, start, stop):
    """Log-normalisers of all rows at λ, and the column sums of the plan X(λ).

    Chunk k of the rows adds its column sums to ``parts[k]``; ``start:stop`` numbers chunks, so
    that the sums do not depend on the number of threads.
    """
    n, m = C.shape
    n_chunks = parts.shape[0]
    weights = np.empty(m)
    for k in range(start, stop):
        parts[k] = 0
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            best = row_max(C[i], lam)
            total = _weighted(C[i], lam, best, inv_eta, weights)
            lse[i] = best * inv_eta + math.log(total)
            add(parts[k], p[i] / total, weights)


@njit(**SUM)
def _known_shift(row, lam, inv_eta, shift, out):
    """out_j = exp((λ_j - C_ij) / η - shift); return the sum."""
    total = 0.0
    for j in range(row.size):
        out[j] = exp_below((lam[j] - row[j]) * inv_eta - shift)
        total += out[j]
    return total


@njit(**EXTREMUM)
def largest_move(lam, v_snap):
    """Return max_j λ_j - ṽ_j."""
    wide_vectors()
    best = lam[0] - v_snap[0]
    for j in range(1, lam.size):
        best = larger(lam[j] - v_snap[j], best)
    return best


@njit(**SUM)
def move_snapshot(C, lam, v_snap, p, inv_eta, lse, parts, start, stop):
    """Do :func:`snapshot` at λ, where ``lse`` holds the log-normalisers at the old snapshot ṽ.

    They bound the new exponents, which saves the search for each row's maximum.
    """
    n, m = C.shape
    n_chunks = parts.shape[0]
    move = largest_move(lam, v_snap) * inv_eta
    weights = np.empty(m)
    for k in range(start, stop):
        parts[k] = 0
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            shift = lse[i] + move
            total = _known_shift(C[i], lam, inv_eta, shift, weights)
            if not total > SAFE:
                shift = row_max(C[i], lam) * inv_eta
                total = _known_shift(C[i], lam, inv_eta, shift, weights)
            lse[i] = shift + math.log(total)
            add(parts[k], p[i] / total, weights)


@njit(**SUM)
def _two_totals(row, v_snap, inv_eta, lse, E, F, S):
    """S = softmax row of the snapshot; return Σ S E and Σ S F."""
    total_E = 0.0
    total_F = 0.0
    for j in range(row.size):
        S[j] = exp_below((v_snap[j] - row[j]) * inv_eta - lse)
        total_E += S[j] * E[j]
        total_F += S[j] * F[j]
    return total_E, total_F


@njit(**SUM)
def _add_both(S, E, F, scale_E, scale_F, factor, part_E, part_F, plan):
    """Add the rows of two plans to their column sums, and the second to a sum of plans."""
    for j in range(S.size):
        part_E[j] += scale_E * S[j] * E[j]
        x = scale_F * S[j] * F[j]
        part_F[j] += x
        plan[j] += factor * x


@njit(**SUM)
def move_and_average(
    C, lam, y, v_snap, p, inv_eta, factor, lse, parts, y_parts, plan, start, stop
):  # fmt: skip
    """Do :func:`move_snapshot` at λ and plan += factor X(y), with one exponential an entry.

    Both plans are ratios of the old snapshot's, exp((λ_j - ṽ_j) / η) and exp((y_j - ṽ_j) / η).
    """
    n, m = C.shape
    n_chunks = parts.shape[0]
    E, F, S = np.empty(m), np.empty(m), np.empty(m)
    exponents(lam, v_snap, inv_eta, E)
    exponents(y, v_snap, inv_eta, F)
    exponentiate(E)
    exponentiate(F)
    move = largest_move(lam, v_snap) * inv_eta
    for k in range(start, stop):
        parts[k] = 0
        y_parts[k] = 0
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            total, y_total = _two_totals(C[i], v_snap, inv_eta, lse[i], E, F, S)
            if total > SAFE and y_total > SAFE:
                lse[i] += move + math.log(total)
                scale, y_scale = p[i] / total, p[i] / y_total
                _add_both(S, E, F, scale, y_scale, factor, parts[k], y_parts[k], plan[i])
            else:
                best = row_max(C[i], y)
                y_scale = p[i] / _weighted(C[i], y, best, inv_eta, S)
                add(y_parts[k], y_scale, S)
                add(plan[i], factor * y_scale, S)
                best = row_max(C[i], lam)
                total = _weighted(C[i], lam, best, inv_eta, S)
                lse[i] = best * inv_eta + math.log(total)
                add(parts[k], p[i] / total, S)


# -- the inner loop: steps 7 to 11 ------------------------------------------------------------


@njit(**SUM)
def couple(z, v_snap, y, tau1, tau2, v):
    """v = τ₁ z + τ₂ ṽ + (1 - τ₁ - τ₂) y (step 7)."""
    wide_vectors()
    tau3 = 1 - tau1 - tau2
    for j in range(v.size):
        v[j] = tau1 * z[j] + tau2 * v_snap[j] + tau3 * y[j]


@njit(**SUM)
def exponents(v, v_snap, inv_eta, E):
    """E_j = (v_j - ṽ_j) / η, less the largest of them."""
    best = largest_move(v, v_snap)
    number = E.dtype.type
    for j in range(v.size):
        E[j] = number((v[j] - v_snap[j] - best) * inv_eta)


@njit(**SUM)
def exponentiate(E):
    """E_j = exp(E_j)."""
    for j in range(E.size):
        E[j] = exp_below(E[j])


@njit(**SUM)
def snapshot_row(row, snap, log_norm, scale, E, S):
    """S_j = softmax row of the snapshot; return Σ_j S_j E_j and Σ_j S_j."""
    total = row.dtype.type(0)
    mass = row.dtype.type(0)
    for j in range(row.size):
        S[j] = exp_below((snap[j] - row[j]) * scale - log_norm)
        total += S[j] * E[j]
        mass += S[j]
    return total, mass


@njit(**SUM)
def _both_rows(row, snap, log_norm, scale, E, S):
    """Do :func:`exponentiate` and :func:`snapshot_row` in one pass, for a batch of one."""
    total = row.dtype.type(0)
    mass = row.dtype.type(0)
    for j in range(row.size):
        E[j] = exp_below(E[j])
        S[j] = exp_below((snap[j] - row[j]) * scale - log_norm)
        total += S[j] * E[j]
        mass += S[j]
    return total, mass


@njit(**SUM)
def direct(row, v, inv_unit, scale, S, mass, weight, g):
    """g_j += weight (s_j(v) - S_j / mass), with a maximum of its own."""
    best = -np.inf
    for j in range(row.size):
        best = max(best, v[j] * inv_unit - row[j])
    total = 0.0
    for j in range(row.size):
        total += exp_below((v[j] * inv_unit - row[j] - best) * scale)
    for j in range(row.size):
        s = exp_below((v[j] * inv_unit - row[j] - best) * scale) / total
        g[j] += weight * (s - S[j] / mass)


@njit(**SUM)
def correct(S, E, ratio, weight, g):
    """g_j += weight S_j (E_j ratio - 1) (step 9)."""
    for j in range(g.size):
        g[j] += weight * S[j] * (E[j] * ratio - 1)


@njit(**SUM)
def _correct_one(mu, S, E, ratio, weight, alpha, g, z):
    """g = μ + weight S (E ratio - 1), z -= α g (steps 9 and 10); return ‖g‖₁."""
    norm = 0.0
    for j in range(g.size):
        g[j] = mu[j] + weight * S[j] * (E[j] * ratio - 1)
        z[j] -= alpha * g[j]
        norm += abs(g[j])
    return norm


@njit(**SUM)
def mirror(g, alpha, z):
    """z -= α g (step 10); return ‖g‖₁."""
    norm = 0.0
    for j in range(g.size):
        z[j] -= alpha * g[j]
        norm += abs(g[j])
    return norm


@njit(**SUM)
def descend(v, g, is_linf, size, y, y_sum):
    """Take the proximal step 11 from v, and add it to the sum of step 13."""
    wide_vectors()
    for j in range(y.size):
        step = (size if g[j] > 0 else -size) if is_linf else size * g[j]
        y[j] = v[j] - step
        y_sum[j] += v[j] - step


@njit(**SUM)
def inner_loop(
    C, rows, sample, snap, inv_unit, lse, mu, v_snap, inv_eta, tau1, tau2, alpha, h, is_linf,
    selected, z, y, y_sum, y_selected, work, pair,
):  # fmt: skip
    """Run one inner step for each sampled row (steps 7 to 11), in place.

    Parameters
    ----------
    C, rows, sample : (k, m), (l,) and (l,) arrays
        Row ``rows[t]`` of C is the cost row of component ``sample[t]``, times ``inv_unit``.
    snap : (m,) array
        The snapshot, times ``inv_unit``, in the precision of C.
    lse, mu, v_snap
        Log-normalisers and full gradient at the snapshot, and the snapshot.
    alpha, h
        Mirror step α_s and proximal step 1/(c L̄).
    selected : int
        The step whose y goes to ``y_selected``; negative or too large for none.
    work, pair : (2, m) arrays
        Scratch in float64, and in the precision of C.
    """
    v, g, E, S = work[0], work[1], pair[0], pair[1]
    number = C.dtype.type
    scale, safe = number(inv_eta / inv_unit), SAFE_SINGLE if C.itemsize == 4 else SAFE
    for t in range(sample.size):
        row, log_norm = C[rows[t]], number(lse[sample[t]])
        couple(z, v_snap, y, tau1, tau2, v)
        exponents(v, v_snap, inv_eta, E)
        total, mass = _both_rows(row, snap, log_norm, scale, E, S)
        if total > safe:
            norm = _correct_one(mu, S, E, mass / total, 1 / mass, alpha, g, z)
        else:
            g[:] = mu
            direct(row, v, inv_unit, inv_eta / inv_unit, S, mass, 1.0, g)
            norm = mirror(g, alpha, z)
        descend(v, g, is_linf, h * norm if is_linf else h, y, y_sum)
        if t == selected:
            y_selected[:] = y
