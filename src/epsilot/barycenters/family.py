"""The histograms of a barycentre, each with its cost and its weight; validated once and frozen."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Matrix, Vector
from ..arguments import numeric
from ..errors import InvalidProblem
from ..geometry import Geometry, as_geometry
from ..kernels.proof import cost_offset
from ..kernels.vectors import distance
from ..problems.balanced import EntropicObjective, Transport
from ..problems.objective import Objective
from ..problems.problem import (
    Problem,
    check_size,
    describe_bad_weights,
    describe_infinite_cost,
    read_only,
    to_ordinary_size,
    totals_rtol,
)
from ..problems.support import NEGLIGIBLE_MASS, Support

#: One cost for all histograms, or one for each.
Costs: TypeAlias = ArrayLike | Geometry | Sequence[ArrayLike | Geometry]

#: Rows of stored costs that are copied without their empty ones, as a multiple of those given.
MOST_COPIES = 2
#: Vectors of the size of all potentials that a run holds.
VECTORS = 16


@dataclass(frozen=True)
class Family:
    r"""min Σ w_k <C_k, X_k> over b and X_k >= 0 with X_k 1 = p_k and X_kᵀ 1 = b for all k.

    Members are objectives of transport from p_k to nothing yet: their q is 0 until b is known.
    All have the same mass and unit.
    """

    members: tuple[Objective, ...]
    supports: tuple[Support, ...]
    weights: Vector  # w, of total 1

    @property
    def shape(self) -> tuple[int, int]:
        """Histograms, and places of the barycentre."""
        return len(self.members), self.members[0].problem.shape[1]

    @cached_property
    def largest(self) -> Objective:
        """The member whose costs are largest: accuracies are shares of them."""
        return max(self.members, key=lambda member: member.scale)

    @property
    def cost_max(self) -> float:
        """Largest cost of all, after the shifts."""
        return max(member.problem.cost_max for member in self.members) or 1.0

    @property
    def mass(self) -> float:
        """Total of every histogram, in the user's units."""
        return self.members[0].problem.mass

    @property
    def worth(self) -> float:
        """The user's value of an internal one."""
        return self.members[0].problem.unit * self.mass

    @property
    def eta(self) -> float | None:
        """The regularisation that is part of the problem, if one is."""
        first = self.members[0]
        return first.eta if isinstance(first, EntropicObjective) else None

    @cached_property
    def shift(self) -> float:
        """What the user's value, per unit of mass, has beyond the internal one."""
        return self.mean_of([member.shift for member in self.members])

    @property
    def pass_entries(self) -> int:
        """Entries that one pass over all costs works through."""
        return sum(support.problem.geometry.pass_entries for support in self.supports)

    def to_user(self, value: float) -> float:
        """Return a value in the user's units."""
        problem = self.members[0].problem
        return problem.unit * (problem.mass * (value + self.shift))

    def mean_of(self, values: Sequence[float]) -> float:
        """Return Σ w_k v_k of numbers."""
        return float(sum(w * v for w, v in zip(self.weights.tolist(), values, strict=True)))

    def mean(self, X: Matrix) -> Vector:
        """Return Σ w_k x_k."""
        total: Vector = self.weights[0] * X[0]
        for w, x in zip(self.weights[1:], X[1:], strict=True):
            total += w * x
        return total

    def spread(self, X: Matrix) -> float:
        """Return Σ w_k ‖x_k - b‖₁, where b is their mean."""
        b = self.mean(X)
        return self.mean_of([distance(x, b) for x in X])

    def centred(self, G: Matrix) -> Matrix:
        """Return column potentials that are feasible together: Σ w_k g_k = 0.

        A constant that one of them carries would cost digits and is taken off; its row potential
        makes up for it.
        """
        G = G - G.max(axis=1, keepdims=True)
        return G - self.mean(G)


def make_family(
    A: ArrayLike | Sequence[ArrayLike],
    M: Costs,
    weights: ArrayLike | None = None,
    *,
    normalize: bool = False,
    reg: float | None = None,
) -> Family:
    """Validate histograms, costs and weights, or say in one sentence what is wrong with them."""
    rows = _histograms(A)
    geometries = _costs(M, len(rows))
    masses, mass = _masses(rows, geometries, normalize=normalize)
    w = shares(weights, len(rows))
    n_bytes = VECTORS * 8 * len(rows) * geometries[0].shape[1]
    memory.ask(n_bytes, f"a barycentre of {len(rows)} histograms", "use fewer or smaller ones")
    problems = _scaled(geometries, masses, mass)
    members: list[Objective] = [
        Transport(problem) if reg is None else EntropicObjective.of(problem, float(reg))
        for problem in problems
    ]
    return Family(tuple(members), _supports([x.problem for x in members]), w)


# -- validation ------------------------------------------------------------------------------


def _histograms(A: ArrayLike | Sequence[ArrayLike]) -> list[Vector]:
    """Return the rows of A as vectors."""
    rows = list(A) if isinstance(A, (list, tuple)) else list(np.atleast_1d(numeric(A, "A")))
    if not rows:
        raise InvalidProblem("A has no histogram; a barycentre needs at least one (a row of A).")
    found = []
    for k, row in enumerate(rows):
        x = numeric(row, f"A[{k}]")
        if x.ndim != 1 or x.size == 0:
            raise InvalidProblem(
                f"A[{k}] has shape {x.shape}; every histogram must be a vector of masses (pass A "
                "as a (k, n) array, or as a list of vectors)."
            )
        found.append(x)
    return found


def _costs(M: Any, k: int) -> list[Geometry]:
    """Return one geometry for each histogram, the same one if there is but one cost."""
    many = M if isinstance(M, (list, tuple)) and M and _is_cost(M[0]) else None
    if many is None and not isinstance(M, Geometry) and np.ndim(M) == 3:
        many = list(np.asarray(M))
    if many is None:
        return [as_geometry(M)] * k
    if len(many) != k:
        raise InvalidProblem(
            f"M is a list of {len(many)} costs for {k} histograms; it must be one cost for all, or "
            "one for each."
        )
    found = [as_geometry(x) for x in many]
    sizes = sorted({x.shape[1] for x in found})
    if len(sizes) > 1:
        raise InvalidProblem(
            f"the costs have {' and '.join(map(str, sizes))} columns; the barycentre has one place "
            "for each, so all must have the same number."
        )
    return found


def _is_cost(x: Any) -> bool:
    """Tell whether an item of a list is a cost, and not a row of one."""
    return isinstance(x, Geometry) or np.ndim(x) == 2


def _masses(
    rows: list[Vector], geometries: list[Geometry], *, normalize: bool
) -> tuple[list[Vector], float]:
    """Return histograms of total 1, and the total that they have in common."""
    totals = []
    for k, (x, geometry) in enumerate(zip(rows, geometries, strict=True)):
        if x.size != geometry.shape[0]:
            raise InvalidProblem(
                f"A[{k}] has {x.size} entries and its cost {geometry.shape[0]} rows; every "
                "histogram needs one mass for each row (pass a list of costs for ragged ones)."
            )
        total = float(x.sum())
        if not (x.min() >= 0 and 0 < total < math.inf):
            raise InvalidProblem(describe_bad_weights(x, f"A[{k}]"))
        totals.append(total)
    tolerance = max(totals_rtol(x) for x in rows)
    for k, total in enumerate(totals):
        if not normalize and abs(total - totals[0]) > tolerance * totals[0]:
            raise InvalidProblem(
                f"A[0] sums to {totals[0]:.10g} and A[{k}] to {total:.10g}; the totals must be "
                "equal (pass normalize=True to rescale all to 1)."
            )
    mass = 1.0 if normalize else totals[0]
    return [read_only(x / total) for x, total in zip(rows, totals, strict=True)], mass


def shares(weights: ArrayLike | None, k: int) -> Vector:
    """Return weights of k histograms, of total 1."""
    if weights is None:
        return read_only(np.full(k, 1.0 / k))
    w = numeric(weights, "weights")
    if w.shape != (k,):
        raise InvalidProblem(
            f"weights has shape {w.shape}; it must have shape ({k},), one for each histogram."
        )
    total = float(w.sum())
    if not (w.min() >= 0 and 0 < total < math.inf):
        raise InvalidProblem(describe_bad_weights(w, "weights"))
    is_lost = (w > 0) & (w / total <= NEGLIGIBLE_MASS)
    if is_lost.any():
        i = int(np.argmax(is_lost))
        raise InvalidProblem(
            f"weights[{i}] is {w[i]:.3g} of a total of {total:.3g}; weights must be 0 or above "
            f"{NEGLIGIBLE_MASS:.0e} of the total for float64 to hold potentials (set it to zero)."
        )
    return read_only(w / total)


def _scaled(geometries: list[Geometry], masses: list[Vector], mass: float) -> list[Problem]:
    """Return problems whose costs have one unit, an ordinary size, and begin at 0 each."""
    for geometry in geometries:
        low, high = geometry.bounds
        if not high - low < math.inf:
            raise InvalidProblem(describe_infinite_cost(geometry))
    size = max(max(map(abs, geometry.bounds)) for geometry in geometries)
    check_size(size, mass)
    made: dict[int, tuple[Geometry, float, float]] = {}
    for geometry in geometries:
        if id(geometry) not in made:
            scaled, unit = to_ordinary_size(geometry, size)
            offset = cost_offset(*scaled.bounds)
            made[id(geometry)] = scaled.shifted(-offset), offset, unit
    if len({unit for _, _, unit in made.values()}) > 1:
        raise InvalidProblem(
            f"the costs reach {size:.3g} and cannot all be brought to an ordinary size; divide "
            "them by one number first."
        )
    nothing = read_only(np.zeros(geometries[0].shape[1]))
    return [
        Problem(made[id(x)][0], p, nothing, made[id(x)][1], mass, made[id(x)][2])
        for x, p in zip(geometries, masses, strict=True)
    ]


def _supports(problems: list[Problem]) -> tuple[Support, ...]:
    """Return what methods work on: costs without empty rows, where copies of them are small."""
    kept = [np.flatnonzero(problem.p > NEGLIGIBLE_MASS) for problem in problems]
    stored = {id(x.geometry): x.geometry.shape[0] for x in problems if x.geometry.is_dense}
    if sum(rows.size for rows in kept) > MOST_COPIES * sum(stored.values()) and stored:
        return tuple(map(Support.all, problems))
    found = []
    for problem, rows in zip(problems, kept, strict=True):
        columns = np.arange(problem.shape[1])
        is_whole = rows.size == problem.p.size
        geometry = None if is_whole else problem.geometry.restricted(rows, columns)
        if geometry is None:
            found.append(Support.all(problem))
            continue
        inner = Problem(
            geometry,
            read_only(problem.p[rows]),
            problem.q,
            problem.offset,
            problem.mass,
            problem.unit,
        )
        found.append(Support(problem, inner, rows, slice(None)))
    return tuple(found)
