"""The loops of PDASMD on the semi-dual of Kullback-Leibler unbalanced transport.

Plans are exp(U ⊕ V - κ C + (f ⊕ g - C) / η), so that with 1/ζ = κ + 1/η and x = ζ (V + g / η)
rows are softmaxes of (x - C) / ζ. Without the row potentials the mass of row i is
A_i = exp(own log p_i + share (U_i + lse_i)), with own = λ_a / (λ_a + η) and share = η / (λ_a + η).
As in :mod:`.pdasmd`, rows at v come from those of the snapshot, and z, y, v and the ends of the
box, all in the units of g, are relative to it. A penalty λ_a of ∞ has own = 1 and share = 0.
"""

from __future__ import annotations

import numpy as np

from .arrays import copy_to, empty
from .compiling import INLINE, KERNEL, njit
from .exp_log import exp, exp_below, log, wide_vectors
from .pdasmd import MIN_NORMALISER, add, correct, couple, exponentiate, largest_move, weigh
from .sums import snapshot_row


@njit(**KERNEL)
def snapshot(C, x, old, log_p, U, own, share, inv_zeta, lse, masses, parts, start, stop):
    """Write log-normalisers and masses of all rows at x, and the column sums of the plan.

    ``lse`` holds the log-normalisers at ``old``, or inf; chunk k adds its sums to ``parts[k]``.
    """
    wide_vectors()
    n, m = C.shape
    n_chunks = parts.shape[0]
    move = largest_move(x, old) * inv_zeta
    weights = empty(m)
    for k in range(start, stop):
        parts[k] = 0
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            shift, mass = weigh(C[i], x, lse[i] + move, inv_zeta, MIN_NORMALISER, weights)
            lse[i] = shift + log(mass)
            masses[i] = exp(own * log_p[i] + share * (U[i] + lse[i]))
            add(parts[k], masses[i] / mass, weights)


@njit(**INLINE)
def _far_row(row, x, v, ratio, inv_zeta, share, log_norm, S, mass, weight, g):
    """Add weight (growth s_j(v) - S_j / mass) to g_j, by the row's maximum; ratio is ζ / η."""
    best = -np.inf
    for j in range(row.size):
        best = max(best, x[j] + ratio * v[j] - row[j])
    held = 0.0
    for j in range(row.size):
        held += exp_below((x[j] + ratio * v[j] - row[j] - best) * inv_zeta)
    growth = exp(share * (best * inv_zeta + log(held / mass) - log_norm)) / held
    for j in range(row.size):
        there = exp_below((x[j] + ratio * v[j] - row[j] - best) * inv_zeta)
        g[j] += weight * (growth * there - S[j] / mass)


@njit(**INLINE)
def _take_off(g, v, log_wanted, inv_price):
    """Subtract the mass exp(log_wanted_j - v_j / λ_b) that the penalty targets from g_j."""
    for j in range(g.size):
        g[j] -= exp(log_wanted[j] - v[j] * inv_price)


@njit(**INLINE)
def _advance(g, alpha, h, low, high, v, z, y, y_sum):
    """Take the mirror step and the gradient step, each projected onto the box."""
    for j in range(g.size):
        z[j] = min(max(z[j] - alpha * g[j], low[j]), high[j])
        y[j] = min(max(v[j] - h * g[j], low[j]), high[j])
        y_sum[j] += y[j]


@njit(**KERNEL)
def inner_loop(
    C, rows, sample, x, lse, weights, columns, log_wanted, low, high, inv_zeta, inv_eta, share,
    inv_price, tau1, tau3, alpha, h, z, y, y_sum, work,
):  # fmt: skip
    """Run one inner step for each batch of sampled rows, in place.

    Parameters
    ----------
    C, rows, sample : (k, m), (l, B) and (l, B) arrays
        Row ``rows[t, b]`` of C is the cost row of component ``sample[t, b]``.
    x, columns, log_wanted : (m,) arrays
        The snapshot as ζ (V + ṽ / η), the column sums of its plan, and log(q exp(-ṽ/λ_b)).
    lse, weights : (n,) arrays
        Log-normalisers at the snapshot, and masses there divided by the chances to be drawn.
    low, high : (m,) arrays
        The box.
    alpha, h : float
        Mirror step α_s and gradient step.
    work : (4, m) array
        Scratch.
    """
    wide_vectors()
    v, E, S, g = work[0], work[1], work[2], work[3]
    n_batch = sample.shape[1]
    for t in range(sample.shape[0]):
        best = couple(z, y, tau1, tau3, v)
        exponentiate(v, best, inv_eta, E)
        copy_to(columns, g)
        for b in range(n_batch):
            i = sample[t, b]
            row, weight = C[rows[t, b]], weights[i] / n_batch
            moved, mass = snapshot_row(row, x, E, S, lse[i], inv_zeta)
            if moved > MIN_NORMALISER:
                growth = exp(share * (best * inv_eta + log(moved / mass)))
                correct(S, E, growth * mass / moved, weight / mass, g)
            else:
                ratio = inv_eta / inv_zeta
                _far_row(row, x, v, ratio, inv_zeta, share, lse[i], S, mass, weight, g)
        _take_off(g, v, log_wanted, inv_price)
        _advance(g, alpha, h, low, high, v, z, y, y_sum)
