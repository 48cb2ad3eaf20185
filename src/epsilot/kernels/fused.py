"""Sums whose terms are computed as they are added: what the inner loops of kernels have in common.

Each formula is for one entry of its arrays (the first arguments); what is written goes to the
last of them. The order of the sums is that of :mod:`.sums`, so that a fused sum has the bits of
one over stored terms.
"""

from __future__ import annotations

from . import vexp
from .llvm_ops import Lane, fma, like
from .sums import summing


def _exp(x):
    return x.apply(vexp.emit_exp) if isinstance(x, Lane) else vexp.exp(x)


def _exp_below(x):
    return x.apply(vexp.emit_exp_below) if isinstance(x, Lane) else vexp.exp_below(x)


def _gibbs(row, g, f, inv_eta):
    """Return an entry exp((f + g - C) / η) of a plan, as every kernel has it."""
    return _exp((f + g - row) * inv_eta)


# -- passes over a cost ------------------------------------------------------------------------


@summing(2)
def exp_sum(row, g, shift, inv_eta):
    """Return Σ exp((g - row - shift) / η)."""
    return (_exp((g - row - shift) * inv_eta),)


@summing(3, n_written=1)
def exp_sum_into(row, g, out, shift, inv_eta):
    """Write exp((g - row - shift) / η) and return the sum."""
    x = _exp((g - row - shift) * inv_eta)
    return x, x


@summing(3, n_written=1)
def gibbs_into(row, g, out, f, inv_eta):
    """Write exp((f + g - row) / η) and return the sum."""
    x = _gibbs(row, g, f, inv_eta)
    return x, x


@summing(3, n_written=1)
def add_gibbs(row, g, part, f, inv_eta):
    """Add x = exp((f + g - row) / η) to the column sums ``part``; return Σ x."""
    x = _gibbs(row, g, f, inv_eta)
    return part + x, x


@summing(3, n_sums=2, n_written=1)
def add_priced_gibbs(row, g, part, f, inv_eta):
    """Add x = exp((f + g - row) / η) to the column sums ``part``; return Σ x and Σ x row."""
    x = _gibbs(row, g, f, inv_eta)
    return part + x, x, (x, row)


@summing(3)
def gibbs_dot(row, g, v, f, inv_eta):
    """Return Σ exp((f + g - row) / η) v."""
    return ((_gibbs(row, g, f, inv_eta), v),)


@summing(4, n_sums=3)
def gibbs_price(row, g, v, d, f, inv_eta):
    """Return Σ x, Σ x row and Σ row d, where x = exp((f + g - row) / η) v."""
    x = _gibbs(row, g, f, inv_eta) * v
    return x, (x, row), (row, d)


# -- PDASMD --------------------------------------------------------------------------------------


def _snapshot(row, snap, log_norm, inv_eta):
    """Return an entry of a row's softmax at the snapshot."""
    return _exp_below(fma(snap - row, inv_eta, -log_norm))


@summing(3, n_written=1)
def softmax_into(row, lam, out, shift, inv_eta):
    """Write exp((λ - row) / η - shift) in the precision of the row, and return the sum.

    Only the exponential is: the exponent is computed in that of λ.
    """
    x = _exp_below(like(fma(lam - like(row, lam), inv_eta, -shift), row))
    return x, x


@summing(4, n_sums=2, n_written=1)
def snapshot_row(row, snap, E, S, log_norm, inv_eta):
    """Write S, the softmax row of the snapshot; return Σ S E and Σ S."""
    x = _snapshot(row, snap, log_norm, inv_eta)
    return x, (x, E), x


@summing(5, n_sums=2, n_written=2)
def both_rows(row, snap, v, E, S, log_norm, best, inv_eta):
    """Write E = exp((v - best) / η) and S, the softmax row; return Σ S E and Σ S."""
    e = _exp_below((v - best) * inv_eta)
    x = _snapshot(row, snap, log_norm, inv_eta)
    return e, x, (x, e), x


@summing(5, n_sums=2, n_written=1)
def two_totals(row, snap, E, F, S, log_norm, inv_eta):
    """Write S, the softmax row of the snapshot; return Σ S E and Σ S F."""
    x = _snapshot(row, snap, log_norm, inv_eta)
    return x, (x, E), (x, F)


@summing(4, n_written=1)
def corrected(mu, S, E, g, ratio, weight):
    """Write g = μ + weight S (E ratio - 1) (step 9) and return ‖g‖₁."""
    x = fma(weight * S, fma(E, ratio, -1.0), mu)
    return x, abs(x)
