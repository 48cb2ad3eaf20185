"""Define NumPy versions of the compiled kernels, to compare with and to read."""

from __future__ import annotations

import numpy as np
from scipy.special import logsumexp


def exp(x):
    """Return e**x."""
    return np.exp(x)


def lse_rows(C, g, eta):
    """Return log sum_j exp((g_j - C_ij) / η)."""
    return logsumexp((g - C) / eta, axis=1)


def lse_cols(C, f, eta):
    """Return log sum_i exp((f_i - C_ij) / η)."""
    return lse_rows(C.T, f, eta)


def gibbs(C, f, g, eta):
    """Return X_ij = exp((f_i + g_j - C_ij) / η)."""
    return np.exp((f[:, None] + g - C) / eta)


def apply_rows(C, f, g, eta, v):
    """Return X v."""
    return gibbs(C, f, g, eta) @ v


def apply_cols(C, f, g, eta, u):
    """Return X^T u."""
    return gibbs(C, f, g, eta).T @ u


def apply_cost_rows(C, f, g, eta, v, d):
    """Return X v, (C * X) v and C d."""
    X = gibbs(C, f, g, eta)
    return X @ v, (C * X) @ v, C @ d


def log_marginals(C, f, g, eta):
    """Return the logarithms of the row sums, of the column sums and of the total of X."""
    log_X = (f[:, None] + g - C) / eta
    return logsumexp(log_X, axis=1), logsumexp(log_X, axis=0), logsumexp(log_X)


def ctransform_rows(C, g):
    """Return min_j C_ij - g_j."""
    return (C - g).min(axis=1)


def ctransform_cols(C, f):
    """Return min_i C_ij - f_i."""
    return ctransform_rows(C.T, f)
