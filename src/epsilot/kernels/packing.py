"""Inner loop of the packing LP: accelerated coordinate descent with O(1) steps.

The iterates y and z of the method are kept as Z and Z + g D, where the scalar g absorbs the
factor by which y - z shrinks every step, so that a step touches one entry.
"""

from __future__ import annotations

from .compiling import KERNEL, njit
from .exp_log import exp

#: Largest exponent; the gradient of the coordinate is then far above its clip at 1.
MAX_EXPONENT = 600.0


@njit(**KERNEL)
def coordinate_steps(
    C, unit, p, q, a, inv_mu, L, omega, Z, D, z_r, z_c, d_r, d_c, scalars, entries
):
    """Take a step at each of the flat entries with W = 1 - C / ‖C‖ > 0; return how many.

    ``scalars`` holds A (which grows) and g (which falls).
    """
    m = q.size
    A, g = scalars[0], scalars[1]
    shrink = 1 - omega
    n_steps = 0
    for k in range(entries.size):
        i = entries[k] // m
        j = entries[k] - i * m
        if C[i, j] >= unit or p[i] <= 0 or q[j] <= 0:
            continue
        W = 1 - C[i, j] / unit
        n_steps += 1
        A /= shrink
        g *= shrink
        b = min(p[i], q[j])
        R = (z_r[i] + g * d_r[i]) / p[i]
        S = (z_c[j] + g * d_c[j]) / q[j]
        row = exp(min((R - 1) * inv_mu, MAX_EXPONENT)) / p[i]
        col = exp(min((S - 1) * inv_mu, MAX_EXPONENT)) / q[j]
        G = a / W * (row + col) - 1
        z = Z[i, j] - A * min(G, 1.0) * b
        z = min(max(z, 0.0), b)
        change = z - Z[i, j]
        if change == 0.0:
            continue
        Z[i, j] = z
        z_r[i] += change
        z_c[j] += change
        e = (1 / (A * L) - 1) * change / g
        D[i, j] += e
        d_r[i] += e
        d_c[j] += e
    scalars[0], scalars[1] = A, g
    return n_steps
