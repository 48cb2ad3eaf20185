"""The fused loops of PDASMD on the semi-dual: outer pass, inner loop, batches, blocks.

``C`` is an (n, m) block of cost rows, vectors over columns are in cost units, ``inv_eta`` is
1/η. With S_i the softmax row of the snapshot and E_j = exp((v_j - ṽ_j) / η - shift), the row of
the current point needs no exponential of its own:

    s_i(v) - s_i(ṽ) = S_ij (E_j / Σ_j S_ij E_j - 1),

so a batch of B rows costs B + 1 exponentials per column, and S_i follows from the stored
log-normaliser of its row. With max_j E_j = 1 nothing overflows, and terms lost to underflow are
negligible unless the normaliser itself is small; it is then recomputed from its own maximum.

The inner loop works relative to the snapshot (v stands for v - ṽ) and in the precision of its cost
rows, except for z and the sum of the y. Its results vanish with v - ṽ and with the full gradient,
so single precision changes the steps by one part in 10⁷ without moving their limit. At n = 4096 its
vectors are read from the second-level cache, and each loop below saves a pass over them.
"""

from __future__ import annotations

import numpy as np

from . import atomics
from .arrays import copy_to, empty, zeros
from .compiling import INLINE, INLINE_EXTREMUM, KERNEL, njit
from .dense import row_max
from .exp_log import exp_below, larger, log, wide_vectors
from .sums import both_rows, corrected, fma, l1, snapshot_row, softmax_into, total, two_totals

#: Smallest normaliser that has lost nothing to underflow, in float64 and in float32.
MIN_NORMALISER, MIN_NORMALISER_SINGLE = 1e-200, 1e-25
#: Rows whose weights are summed in the precision of C before they are added to a float64 sum.
STRIP_ROWS = 32


# -- the outer pass: steps 4, 14 and 15 -----------------------------------------------------


@njit(**INLINE)
def _weighted(row, lam, shift, inv_eta, out):
    """Write out_j = exp((λ_j - C_ij - shift) / η); return the sum."""
    for j in range(row.size):
        out[j] = exp_below((lam[j] - row[j] - shift) * inv_eta)
    return total(out)


@njit(**INLINE)
def add(out, factor, weights):
    """Add factor weights_j to out_j."""
    for j in range(out.size):
        out[j] = fma(factor, weights[j], out[j])


@njit(**INLINE)
def join(out, part):
    """Add part_j to out_j."""
    for j in range(out.size):
        out[j] += part[j]


@njit(**INLINE_EXTREMUM)
def largest_move(lam, v_snap):
    """Return max_j λ_j - ṽ_j."""
    best = lam[0] - v_snap[0]
    for j in range(1, lam.size):
        best = larger(lam[j] - v_snap[j], best)
    return best


@njit(**KERNEL)
def _from_maximum(row, lam, inv_eta, weights):
    """Return max_j (λ_j - C_ij) / η, and the sum of the weights relative to it."""
    shift = row_max(row, lam) * inv_eta
    return shift, float(softmax_into(row, lam, weights, shift, inv_eta))


@njit(**INLINE)
def weigh(row, lam, shift, inv_eta, safe, weights):
    """Write exp((λ_j - C_ij) / η - shift) with a guess of the shift, or with the row's maximum.

    Return the shift used, and the sum.
    """
    mass = 0.0
    if shift < np.inf:
        mass = float(softmax_into(row, lam, weights, shift, inv_eta))
    if not mass > safe:
        shift, mass = _from_maximum(row, lam, inv_eta, weights)
    return shift, mass


@njit(**KERNEL)
def snapshot(C, lam, v_snap, p, inv_eta, lse, parts, start, stop):
    """Write the log-normalisers of all rows at λ, and the column sums of the plan X(λ).

    ``lse`` holds the log-normalisers at the old snapshot ṽ, or inf where they are unknown. They
    bound the new exponents and save the maximum of each row. If C is in float32, so are the
    exponentials but not the exponents: sums then have a relative error of 1e-7 for every η. Chunk k
    of the rows adds its column sums to ``parts[k]``; ``start:stop`` numbers chunks, so that the
    sums do not depend on the number of threads.
    """
    wide_vectors()
    n, m = C.shape
    n_chunks = parts.shape[0]
    safe = MIN_NORMALISER_SINGLE if C.itemsize == 4 else MIN_NORMALISER
    number = C.dtype.type
    move = largest_move(lam, v_snap) * inv_eta
    weights, strip = empty(m, C.dtype), zeros(m, C.dtype)
    for k in range(start, stop):
        parts[k] = 0
        last = n * (k + 1) // n_chunks
        for first in range(n * k // n_chunks, last, STRIP_ROWS):
            for i in range(first, min(first + STRIP_ROWS, last)):
                shift, mass = weigh(C[i], lam, lse[i] + move, inv_eta, safe, weights)
                lse[i] = shift + log(mass)
                add(strip, number(p[i] / mass), weights)
            join(parts[k], strip)
            strip[:] = 0


@njit(**INLINE)
def _add_both(S, E, F, scale_E, scale_F, factor, part_E, part_F, plan):
    """Add the rows of two plans to their column sums, and the second to a sum of plans."""
    for j in range(S.size):
        part_E[j] = fma(scale_E * S[j], E[j], part_E[j])
        x = scale_F * S[j] * F[j]
        part_F[j] += x
        plan[j] = fma(factor, x, plan[j])


@njit(**KERNEL)
def move_and_average(C, lam, y, v_snap, p, inv_eta, factor, lse, parts, y_parts, plan, start, stop):
    """Do :func:`snapshot` at λ and plan += factor X(y), with one exponential per entry.

    Both plans are ratios of the old snapshot's, exp((λ_j - ṽ_j) / η) and exp((y_j - ṽ_j) / η).
    """
    wide_vectors()
    n, m = C.shape
    n_chunks = parts.shape[0]
    E, F, S = empty(m), empty(m), empty(m)
    best = largest_move(lam, v_snap)
    exponentiate(lam - v_snap, best, inv_eta, E)
    exponentiate(y - v_snap, largest_move(y, v_snap), inv_eta, F)
    move = best * inv_eta
    for k in range(start, stop):
        parts[k] = 0
        y_parts[k] = 0
        for i in range(n * k // n_chunks, n * (k + 1) // n_chunks):
            mass, y_mass = two_totals(C[i], v_snap, E, F, S, lse[i], inv_eta)
            if mass > MIN_NORMALISER and y_mass > MIN_NORMALISER:
                lse[i] += move + log(mass)
                scale, y_scale = p[i] / mass, p[i] / y_mass
                _add_both(S, E, F, scale, y_scale, factor, parts[k], y_parts[k], plan[i])
            else:
                best = row_max(C[i], y)
                y_scale = p[i] / _weighted(C[i], y, best, inv_eta, S)
                add(y_parts[k], y_scale, S)
                add(plan[i], factor * y_scale, S)
                best = row_max(C[i], lam)
                mass = _weighted(C[i], lam, best, inv_eta, S)
                lse[i] = best * inv_eta + log(mass)
                add(parts[k], p[i] / mass, S)


# -- the inner loop: steps 7 to 11 ------------------------------------------------------------


@njit(**INLINE_EXTREMUM)
def couple(z, y, tau1, tau3, v):
    """Write v = τ₁ z + τ₃ y, relative to the snapshot (step 7); return max_j v_j."""
    number = v.dtype.type
    best = number(-np.inf)
    for j in range(v.size):
        v[j] = number(tau1 * z[j] + tau3 * y[j])
        best = larger(v[j], best)
    return best


@njit(**INLINE)
def exponentiate(v, best, inv_eta, E):
    """Write E_j = exp((v_j - best) / η)."""
    for j in range(E.size):
        E[j] = exp_below((v[j] - best) * inv_eta)


@njit(**INLINE)
def direct(row, snap, v, inv_eta, S, mass, weight, g):
    """Add weight (s_j(ṽ + v) - S_j / mass) to g_j, with a maximum of its own."""
    best = -np.inf
    for j in range(row.size):
        best = max(best, snap[j] + v[j] - row[j])
    held = 0.0
    for j in range(row.size):
        held += exp_below((snap[j] + v[j] - row[j] - best) * inv_eta)
    for j in range(row.size):
        s = exp_below((snap[j] + v[j] - row[j] - best) * inv_eta) / held
        g[j] += weight * (s - S[j] / mass)


@njit(**INLINE)
def correct(S, E, ratio, weight, g):
    """Add weight S_j (E_j ratio - 1) to g_j (step 9)."""
    one = S.dtype.type(1)
    for j in range(g.size):
        g[j] += weight * (S[j] * fma(E[j], ratio, -one))


@njit(**INLINE)
def descend(v, g, is_linf, size, y):
    """Write y = v - size g, or v - size sign(g) in l∞ (step 11)."""
    for j in range(y.size):
        y[j] = v[j] - ((size if g[j] > 0 else -size) if is_linf else size * g[j])


@njit(**INLINE_EXTREMUM)
def advance(g, alpha, is_linf, size, tau1, tau3, z, v, y_sum):
    """Take steps 10 and 11, add y to the sum of step 13 and couple again; return max_j v_j."""
    number = v.dtype.type
    best = number(-np.inf)
    for j in range(v.size):
        y = v[j] - ((size if g[j] > 0 else -size) if is_linf else size * g[j])
        z[j] = fma(-alpha, np.float64(g[j]), z[j])
        y_sum[j] += y
        v[j] = number(fma(tau1, z[j], tau3 * y))
        best = larger(v[j], best)
    return best


@njit(**KERNEL)
def inner_loop(
    C, rows, sample, snap, lse, mu, inv_eta, tau1, tau3, alpha, h, is_linf, selected, z, y, y_sum,
    y_selected, work,
):  # fmt: skip
    """Run one inner step for each sampled row (steps 7 to 11), in place.

    All vectors over columns are in the unit of C, and z, y and their sums relative to ``snap``.

    Parameters
    ----------
    C, rows, sample : (k, m), (l,) and (l,) arrays
        Row ``rows[t]`` of C is the cost row of component ``sample[t]``.
    snap, mu : (m,) arrays in the precision of C
        The snapshot, and the full gradient there.
    lse
        Log-normalisers at the snapshot.
    alpha, h
        Mirror step α_s and proximal step 1/(c L̄).
    selected : int
        The step whose y goes to ``y_selected``; negative or too large for none.
    work : (4, m) array in the precision of C
        Scratch.
    """
    wide_vectors()
    v, g, E, S = work[0], work[1], work[2], work[3]
    number = C.dtype.type
    scale, safe = number(inv_eta), MIN_NORMALISER_SINGLE if C.itemsize == 4 else MIN_NORMALISER
    best = couple(z, y, tau1, tau3, v)
    for t in range(sample.size):
        row, log_norm = C[rows[t]], number(lse[sample[t]])
        moved, mass = both_rows(row, snap, v, E, S, log_norm, best, scale)
        if moved > safe:
            norm = corrected(mu, S, E, g, mass / moved, number(1) / mass)
        else:
            copy_to(mu, g)
            direct(row, snap, v, scale, S, mass, 1.0, g)
            norm = l1(g)
        size = h * norm if is_linf else h
        if t == selected:
            descend(v, g, is_linf, size, y_selected)
        if t == sample.size - 1:
            descend(v, g, is_linf, size, y)
        best = advance(g, alpha, is_linf, size, tau1, tau3, z, v, y_sum)


# -- batches, shared among threads -----------------------------------------------------------------
#
# A batch is cut into chunks of rows whose sums are added in order, so that the result does not
# depend on the thread that computes a chunk. ``counters`` holds the numbers of chunks that are
# ready, taken and done; chunk c belongs to step c // n_chunks. The leader takes chunks like the
# helpers, and advances the sequences when a step is done, so it never waits for a helper without a
# chunk. All threads run the same compiled code, and so round alike.

READY, TAKEN, DONE = 0, 1, 2


@njit(**INLINE)
def _batch_chunk(c, C, rows, sample, snap, lse, inv_eta, v, E, S, parts):
    """Add up the gradient differences of one chunk of a batch (step 9)."""
    n_batch, n_chunks = sample.shape[1], parts.shape[0]
    t, k = c // n_chunks, c % n_chunks
    number = C.dtype.type
    scale, safe = number(inv_eta), MIN_NORMALISER_SINGLE if C.itemsize == 4 else MIN_NORMALISER
    part = parts[k]
    part[:] = 0
    for b in range(n_batch * k // n_chunks, n_batch * (k + 1) // n_chunks):
        row = C[rows[t, b]]
        moved, mass = snapshot_row(row, snap, E, S, number(lse[sample[t, b]]), scale)
        if moved > safe:
            correct(S, E, mass / moved, number(1 / (n_batch * mass)), part)
        else:
            direct(row, snap, v, scale, S, mass, 1 / n_batch, part)


@njit(**KERNEL)
def batch_inner_loop(
    C, rows, sample, snap, lse, mu, inv_eta, tau1, tau3, alpha, h, is_linf, selected, z, y, y_sum,
    y_selected, work, parts, counters, S, is_leader,
):  # fmt: skip
    """Do ``pdasmd.inner_loop`` for batches: ``rows`` and ``sample`` are (l, B).

    Threads share all arguments but the scratch ``S`` and ``is_leader``, true for one of them.
    Helpers read v and E, the first lines of ``work``, and write lines of ``parts``; they leave
    when all chunks are taken.
    """
    wide_vectors()
    v, E, g = work[0], work[1], work[2]
    n_chunks = parts.shape[0]
    n_all = sample.shape[0] * n_chunks
    scale = C.dtype.type(inv_eta)
    best = couple(z, y, tau1, tau3, v) if is_leader else scale
    until = n_looks = 0
    while True:
        c = atomics.load(counters, TAKEN)
        if c < atomics.load(counters, READY):
            if atomics.swap_if(counters, TAKEN, c, c + 1):
                _batch_chunk(c, C, rows, sample, snap, lse, inv_eta, v, E, S, parts)
                atomics.add(counters, DONE, 1)
                n_looks = 0
        elif not is_leader and c >= n_all:
            return
        elif not is_leader or atomics.load(counters, DONE) < until:
            n_looks += 1
            if n_looks > atomics.SPINS_BEFORE_YIELD:
                atomics.give_way()
        else:
            if until > 0:
                t = until // n_chunks - 1
                copy_to(mu, g)
                for k in range(n_chunks):
                    join(g, parts[k])
                size = h * l1(g) if is_linf else h
                if t == selected:
                    descend(v, g, is_linf, size, y_selected)
                if until == n_all:
                    descend(v, g, is_linf, size, y)
                best = advance(g, alpha, is_linf, size, tau1, tau3, z, v, y_sum)
                if until == n_all:
                    return
            exponentiate(v, best, scale, E)
            until += n_chunks
            atomics.store(counters, READY, until)


# -- several semi-duals at once --------------------------------------------------------------------
#
# An inner step draws one row of every block. The blocks of variables are coupled by a projection:
# the weighted mean of all gradients is subtracted from each of them, so that Σ w_k g_k stays 0.


@njit(**INLINE)
def _subtract(x, out):
    """Subtract x_j from out_j."""
    for j in range(out.size):
        out[j] -= x[j]


@njit(**KERNEL)
def blocks_inner_loop(
    C, lse, weights, snap, mu, inv_eta, tau1, tau3, alpha, h, z, y, y_sum, v, g
):  # fmt: skip
    """Run one inner step for each row of every block (steps 7 to 11), in place.

    Parameters
    ----------
    C, lse : (l, k, m) and (l, k) arrays
        The cost rows that the steps draw, and their log-normalisers at the snapshot.
    weights : (k,) array
        w, of total 1.
    snap, mu : (k, m) arrays
        The snapshot, and the column sums there.
    alpha, h
        Mirror step α_s and proximal step 1/(c L̄).
    z, y, y_sum : (k, m) arrays
        The sequences and the sum of the y, relative to the snapshot.
    v, g : (k, m) arrays
        Scratch.
    """
    wide_vectors()
    n_steps, n_blocks, m = C.shape
    E, S, mean, best = empty(m), empty(m), empty(m), empty(n_blocks)
    for k in range(n_blocks):
        best[k] = couple(z[k], y[k], tau1, tau3, v[k])
    for t in range(n_steps):
        mean[:] = 0
        for k in range(n_blocks):
            row = C[t, k]
            moved, mass = both_rows(row, snap[k], v[k], E, S, lse[t, k], best[k], inv_eta)
            if moved > MIN_NORMALISER:
                corrected(mu[k], S, E, g[k], mass / moved, 1 / mass)
            else:
                g[k] = mu[k]
                direct(row, snap[k], v[k], inv_eta, S, mass, 1.0, g[k])
            add(mean, weights[k], g[k])
        for k in range(n_blocks):
            _subtract(mean, g[k])
            if t == n_steps - 1:
                descend(v[k], g[k], False, h, y[k])
            best[k] = advance(g[k], alpha, False, h, tau1, tau3, z[k], v[k], y_sum[k])
