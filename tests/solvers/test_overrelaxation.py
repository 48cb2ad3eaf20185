"""How long an overrelaxed update may be, and which ω is best."""

import numpy as np
import pytest

from epsilot.solvers import sinkhorn


def test_safe_limit_is_where_the_share_of_the_decrease_ends():
    assert sinkhorn.safe_limit(1.0) == np.inf
    for omega in (1.2, 1.5, 1.8, 1.95):
        limit = sinkhorn.safe_limit(omega)

        def ratio(s, omega=omega):
            return (omega * s - np.exp((omega - 1) * s) + np.exp(-s)) / (s - 1 + np.exp(-s))

        share = 0.5 * omega * (2 - omega)
        assert ratio(limit) == pytest.approx(share, rel=1e-6)
        assert (ratio(np.linspace(0.01, limit, 50)) >= share * (1 - 1e-9)).all()
        assert (ratio(-np.linspace(0.01, 40, 50)) >= share).all()
        assert ratio(1e-3) == pytest.approx(2 * share, rel=1e-2)


def test_next_omega_finds_the_best_one():
    """For a linear iteration with plain rate μ², any ω below the best leads to the best."""
    mu2 = 0.8
    best = 2 / (1 + np.sqrt(1 - mu2))
    for omega in (1.0, 1.2, best - 1e-3):
        # (λ + ω - 1)² = λ ω² μ², the larger root
        b = omega**2 * mu2 - 2 * (omega - 1)
        rate = (b + np.sqrt(b * b - 4 * (omega - 1) ** 2)) / 2
        assert sinkhorn.next_omega(omega, rate) == pytest.approx(best, rel=1e-9)
    assert sinkhorn.next_omega(1.6, 0.5) == 1.6
    assert 1 < sinkhorn.next_omega(1.6, 1.01) < 1.6
    assert sinkhorn.next_omega(1.6, np.nan) < 1.6
    assert sinkhorn.next_omega(1.0, 1 - 1e-9) == sinkhorn.TUNING.max_omega
