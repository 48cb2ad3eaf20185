"""Transport between the rows of two matrices as masses on a line, for squared differences."""

from __future__ import annotations

from .compiling import KERNEL, njit


@njit(**KERNEL)
def profile_costs(A, p, B, q, out, start, stop):
    """Write the costs of rows ``start:stop`` of A against all rows of B.

    Entries of a row are sorted; ``p`` and ``q`` hold their masses, of total 1 but for rounding.
    Masses that are sorted alike are the best plan on a line.
    """
    n, m = A.shape[1], B.shape[1]
    for i in range(start, stop):
        for j in range(B.shape[0]):
            k, u = 0, 0
            left, right, cost = p[i, 0], q[j, 0], 0.0
            while True:
                apart = A[i, k] - B[j, u]
                if left < right:
                    cost += left * apart * apart
                    right -= left
                    k += 1
                    if k == n:
                        break
                    left = p[i, k]
                else:
                    cost += right * apart * apart
                    left -= right
                    u += 1
                    if u == m:
                        break
                    right = q[j, u]
            out[i, j] = cost
