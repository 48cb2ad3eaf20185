"""Constraints of transport as linear programs, for references by HiGHS."""

import numpy as np


def marginal_rows(n: int, m: int) -> np.ndarray:
    """Return the matrix that takes the entries of a plan, row by row, to both its marginals."""
    return np.vstack([np.kron(np.eye(n), np.ones((1, m))), np.kron(np.ones((1, n)), np.eye(m))])
