"""Iterative Bregman projections in logarithms, with a falling η, overrelaxed or mixed."""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from .._types import Matrix
from ..arguments import check_count, is_real
from ..errors import InvalidProblem
from ..kernels.vectors import exp, log
from ..problems.duals import softmin
from ..problems.work import Work
from ..wording import shown
from .continuation import Continuation, Moved
from .family import Family
from .mixing import Mixing


class Projected(NamedTuple):
    """The image of column potentials, and how far their plans' columns are from a common b."""

    columns: Matrix
    error: float


def projected(family: Family, G: Matrix, eta: float) -> Projected:
    r"""Project onto given rows, then onto equal columns (Benamou et al. 2015, Section 3.2).

    With f_k = η (log p_k - LSE_j((g_k - C_k)/η)) and log q_k = LSE_i((f_k - C_k)/η), the image is
    g_k = η (Σ_l w_l log q_l - log q_k), for which Σ w_k g_k = 0 holds.
    """
    log_q = np.empty(family.shape)
    for k, support in enumerate(family.supports):
        problem = support.problem
        f = softmin(log(problem.p), problem.geometry.lse_rows(G[k], eta), eta)
        log_q[k] = problem.geometry.lse_cols(f, eta)
    columns = exp(log_q + G / eta)  # of the plans of f and G, whose rows are right
    return Projected(eta * (family.mean(log_q) - log_q), family.spread(columns))


@dataclass(frozen=True, kw_only=True)
class Bregman(Continuation):
    """Iterative Bregman projections of one family after the other of marginals, in logarithms.

    Benamou, Carlier, Cuturi, Nenna, Peyré 2015, *Iterative Bregman Projections for Regularized
    Transportation Problems*, for an η that falls when rounding adds little to the gap.

    Parameters
    ----------
    relaxation : float
        ω in (0, 2): g moves ω times as far as the projection.
    memory : int
        Steps that Anderson's acceleration mixes; 0: none.
    """

    relaxation: float = 1.0
    memory: int = 5

    def __post_init__(self) -> None:
        check_count("memory", self.memory, 0)
        if not (is_real(self.relaxation) and 0 < self.relaxation < 2):
            raise InvalidProblem(
                f"relaxation is {shown(self.relaxation)}; it must be a number between 0 and 2."
            )

    def iteration(self, family: Family) -> Projections:
        """Return the projections of a family, with nothing to mix yet."""
        return Projections(family, self)


class Projections:
    """Projections of one family, with the steps that are mixed."""

    def __init__(self, family: Family, method: Bregman) -> None:
        k, m = family.shape
        self.family, self.relaxation = family, method.relaxation
        self.mixing = Mixing(method.memory, np.sqrt(family.weights)[:, None])
        self.work = Work.of(lse=2 * family.pass_entries, vector=8 * k * m)

    def next(self, G: Matrix, eta: float) -> Moved:
        """Return the next columns and the error before them."""
        image, error = projected(self.family, G, eta)
        if self.relaxation != 1:
            image = G + self.relaxation * (image - G)
        return Moved(self.mixing.next(G, image), error, self.work)

    def clear(self) -> None:
        """Forget the steps."""
        self.mixing.clear()
