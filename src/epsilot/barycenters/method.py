"""What a method of barycentres is: a generator of steps, told what was proved of each."""

from __future__ import annotations

from collections.abc import Callable, Generator, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol, TypeAlias

import numpy as np

from .._types import Matrix
from ..engine.goal import Goal
from ..kernels.vectors import log
from ..problems.duals import softmin
from ..problems.plan import Arcs, Core, Gibbs
from ..problems.work import Work, certificate_work
from .family import Family


class Proposal(NamedTuple):
    """What may be certified: column potentials, and cores that are made when they are wanted."""

    columns: Matrix  # (k, m)
    cores: Callable[[], Sequence[Core]]


class Step(NamedTuple):
    """What a method did, and what it would have certified of it."""

    work: Work
    eta: float
    proposal: Proposal | None = None  # None: nothing yet
    is_due: bool = False  # whether a certificate is worth its time
    is_last: bool = False  # whether the method can do no more


class Verdict(NamedTuple):
    """What was proved of a proposal, in internal units; and whether it was looked at at all."""

    is_certified: bool
    gap: float = np.inf  # of this proposal alone
    added: float = np.inf  # by rounding, of its plans
    marginal_error: float = np.inf


Steps: TypeAlias = Generator[Step, Verdict, None]


@dataclass(frozen=True)
class Start:
    """Where a method begins."""

    columns: Matrix
    eta: float


class Method(Protocol):
    """A method with its options."""

    @property
    def solves_entropic(self) -> bool:
        """Whether it solves the problem with a regularisation for its own sake."""

    def steps(self, family: Family, goal: Goal, start: Start | None) -> Steps:
        """Yield steps for ever, or until nothing can be gained."""


def gibbs_cores(family: Family, G: Matrix, eta: float) -> list[Core]:
    """Return the plans of potentials whose rows sum to p_k."""
    cores: list[Core] = []
    for support, g in zip(family.supports, G, strict=True):
        problem = support.problem
        f = softmin(log(problem.p), problem.geometry.lse_rows(g, eta), eta)
        cores.append(support.lifted(Gibbs(problem.geometry, f, g, eta), f)[0])
    return cores


def nothing(family: Family) -> Proposal:
    """Return what is certified of a method that has nothing yet: independent plans."""
    cores = [Arcs.none(member.problem.shape) for member in family.members]
    return Proposal(np.zeros(family.shape), lambda: cores)


def certificate_cost(family: Family) -> Work:
    """Return the work of one certificate of all members."""
    total = Work()
    for member in family.members:
        total.record(certificate_work(member.problem.geometry))
    return total
