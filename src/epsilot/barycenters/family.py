"""A family of histograms as one objective: its barycentre, the bounds that prove it, validation.

Nothing here trusts a solver. Any cores give feasible plans: they are rounded to p_k and to the mean
b of their columns. Any column potentials give a bound: their mean is subtracted, and they are
c-transformed.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Matrix, Potentials, Vector
from ..arguments import numeric
from ..errors import CertificateError, InvalidProblem
from ..files.arrays import Arrays, SavedArrays
from ..geometry import Geometry, as_geometry
from ..geometry.base import HalvedGrid
from ..kernels.proof import FEASIBLE, cost_offset
from ..kernels.vectors import distance, dot, log, shrink
from ..problems.balanced import EntropicObjective, Transport
from ..problems.duals import softmin
from ..problems.objective import (
    BUG_NOTE,
    Evaluation,
    Objective,
    Proof,
    RunObjective,
    WholeSupport,
    crude_plan,
    least_costs,
)
from ..problems.plan import Arcs, Core, Gibbs, Plan
from ..problems.problem import (
    Problem,
    check_size,
    describe_bad_weights,
    describe_infinite_cost,
    read_only,
    to_ordinary_size,
    totals_rtol,
)
from ..problems.rounding import remove_overflow
from ..problems.support import NEGLIGIBLE_MASS, Support
from ..problems.work import Work

#: One cost for all histograms, or one for each.
Costs: TypeAlias = ArrayLike | Geometry | Sequence[ArrayLike | Geometry]

#: Cells of the smallest grid that has a coarser version.
MIN_CELLS_TO_COARSEN = 1 << 11

#: Feasible potentials (f_k, g_k) of every histogram.
FamilyPotentials: TypeAlias = tuple[Potentials, ...]


class FamilyCore(NamedTuple):
    """One nonnegative core for each histogram, before rounding."""

    cores: tuple[Core, ...]

    def is_finite(self) -> bool:
        """Tell whether no core has overflowed."""
        return all(core.is_finite() for core in self.cores)


class FamilyPlan(NamedTuple):
    """A barycentre of mass 1, with a plan to it from every histogram."""

    b: Vector
    plans: tuple[Plan, ...]
    rounding_cost: float = 0.0  # cost of the mass that rounding moved


@dataclass(frozen=True)
class Family(WholeSupport, RunObjective):
    r"""min Σ w_k <C_k, X_k> over b and X_k >= 0 with X_k 1 = p_k and X_kᵀ 1 = b for all k.

    Members are objectives of transport from p_k; their q is 0, since b is not known. All have the
    same mass and unit. Solvers propose column potentials as one vector of k m numbers.
    """

    members: tuple[Objective, ...]
    supports: tuple[Support, ...]
    weights: Vector  # w, of total 1

    @property
    def shape(self) -> tuple[int, int]:
        """Number of histograms, and of places of the barycentre."""
        return len(self.members), self.members[0].problem.shape[1]

    @cached_property
    def largest(self) -> Objective:
        """The member with the largest costs: accuracies are shares of them."""
        return max(self.members, key=lambda member: member.scale)

    @property
    def cost_max(self) -> float:
        """Largest cost of all, after the shifts."""
        return max(member.problem.cost_max for member in self.members) or 1.0

    @property
    def eta(self) -> float | None:
        """The regularisation that is part of the problem, if there is one."""
        first = self.members[0]
        return first.eta if isinstance(first, EntropicObjective) else None

    @property
    def pass_entries(self) -> int:
        """Entries that one pass over all costs works through."""
        return sum(support.problem.geometry.pass_entries for support in self.supports)

    def detached(self) -> Family:
        """Return the family with costs that later changes of the user's arrays do not reach."""
        copies = {id(x.problem.geometry): x.problem.geometry.detached() for x in self.members}
        members = tuple(
            x.on(replace(x.problem, geometry=copies[id(x.problem.geometry)])) for x in self.members
        )
        return Family(members, _supports([x.problem for x in members]), self.weights)

    # -- weighted means ----------------------------------------------------------------------

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

        A constant in one of them would cost digits and is subtracted; its row potential
        compensates for it.
        """
        G = G - G.max(axis=1, keepdims=True)
        return G - self.mean(G)

    # -- units and accuracy ------------------------------------------------------------------

    @property
    def mass(self) -> float:
        """Total of every histogram, in the user's units."""
        return self.members[0].problem.mass

    @property
    def unit(self) -> float:
        """The user's cost of an internal cost of 1."""
        return self.members[0].problem.unit

    @cached_property
    def shift(self) -> float:
        """Difference between the user's value per unit of mass and the internal one."""
        return self.mean_of([member.shift for member in self.members])

    def digest(self) -> str:
        """Return a hash of costs, histograms and weights."""
        h = hashlib.sha256(self.weights.tobytes())
        for member in self.members:
            h.update(member.digest().encode())
        return h.hexdigest()[:16]

    @property
    def accuracy(self) -> str:
        """The keyword of an absolute gap."""
        return self.largest.accuracy

    @property
    def default_gap(self) -> float | None:
        """The gap to reach by default; None: a share of the lower bound."""
        return self.largest.default_gap

    @property
    def scale(self) -> float:
        """Size of the numbers before costs are shifted."""
        return self.largest.scale

    @property
    def optimum_scale(self) -> float:
        """Size of an optimum."""
        return self.largest.optimum_scale

    @property
    def slack(self) -> float:
        """Error that the conversion to the user's units may add to a gap."""
        return self.largest.slack

    @property
    def round_off_size(self) -> float:
        """Size of the numbers whose rounding lets bounds contradict each other."""
        return max(member.size for member in self.members)

    # -- bounds ------------------------------------------------------------------------------

    def evaluate(
        self, core: FamilyCore, f: Vector, b: Vector | None = None
    ) -> Evaluation[FamilyPlan, FamilyPotentials]:
        """Return the bounds of any nonnegative cores and any column potentials.

        The cores are rounded to plans to b, by default to the mean of their columns.
        """
        potentials, lower = self.dual(f)
        b = self.common_marginal(core) if b is None else b
        plans, values, errors, added = [], [], [], []
        for x, member in zip(core.cores, self.members, strict=True):
            objective = onto(member, b)
            rounded = objective.rounded(x)
            plans.append(rounded.plan)
            values.append(objective.value(rounded.plan, rounded.cost))
            errors.append(rounded.marginal_error)
            added.append(_rounding_cost(rounded.plan, member))
        upper, plan = self.mean_of(values), FamilyPlan(b, tuple(plans), self.mean_of(added))
        self.check(upper, lower)
        return Evaluation(plan, upper, potentials, lower, self.mean_of(errors))

    def common_marginal(self, core: FamilyCore) -> Vector:
        """Return the mean column sums of cores whose rows were cut to p_k, of total 1."""
        columns = np.empty(self.shape)
        for k, (x, member) in enumerate(zip(core.cores, self.members, strict=True)):
            p = member.problem.p
            x, r, _ = remove_overflow(x, p)
            s = np.empty(p.size)
            shrink(r, p, s)
            columns[k] = x.cols(s)
        b = self.mean(columns)
        total = float(b.sum())
        return b / total if total > 0 else np.full(b.size, 1.0 / b.size)

    def dual(self, f: Vector) -> tuple[FamilyPotentials, float]:
        """Return feasible potentials made from any column potentials, and their bound."""
        G = self.centred(f.reshape(self.shape))
        potentials = tuple(
            (member.row_potential(g), g) for member, g in zip(self.members, G, strict=True)
        )
        return potentials, self.dual_value(potentials)

    def dual_value(self, potentials: Sequence[Potentials]) -> float:
        """Return the bound that potentials prove, or raise if they prove none.

        For every b of mass 1, Σ w_k <g_k, b> is at least the least entry of Σ w_k g_k.
        """
        parts = [
            member.dual_value(pair) for member, pair in zip(self.members, potentials, strict=True)
        ]
        least = float(self.mean(np.stack([g for _, g in potentials])).min())
        return self.mean_of(parts) + least

    def prove(self, plan: FamilyPlan, potentials: Sequence[Potentials]) -> Proof:
        """Return the bounds that these very plans and potentials prove, or raise.

        Nothing is rounded or repaired: every plan must lead from p_k to b, and potentials must be
        feasible.
        """
        b = plan.b
        if not (b.min() >= 0 and abs(float(b.sum()) - 1) <= FEASIBLE):
            raise CertificateError(f"the barycentre is no histogram of the common mass. {BUG_NOTE}")
        proved = [
            onto(member, b).prove_plan(x)
            for member, x in zip(self.members, plan.plans, strict=True)
        ]
        upper = self.mean_of([value for value, _ in proved])
        lower = self.dual_value(potentials)
        self.check(upper, lower)
        return Proof(upper, lower, self.mean_of([cost for _, cost in proved]))

    def crude_bounds(self) -> tuple[Evaluation[FamilyPlan, FamilyPotentials], Proof]:
        """Return proved bounds without a pass over the costs: sparse plans, and the least costs."""
        m = self.shape[1]
        b, g = np.full(m, 1.0 / m), np.zeros(m)
        found = [crude_plan(onto(member, b)) for member in self.members]
        members = [least_costs(member) for member in self.members]
        potentials = tuple((member.row_potential(g), g) for member in members)
        parts = [member.dual_value(pair) for member, pair in zip(members, potentials, strict=True)]
        upper, lower = self.mean_of([x.upper for x in found]), self.mean_of(parts)
        self.check(upper, lower)
        plan = FamilyPlan(b, tuple(x.plan for x in found))
        cost = self.mean_of([x.cost for x in found])
        return Evaluation(plan, upper, potentials, lower, 0.0), Proof(upper, lower, cost)

    def certificate_work(self) -> Work:
        """Return the work of one certificate of all members."""
        total = Work()
        for member in self.members:
            total.record(member.certificate_work())
        return total

    # -- proposals of solvers ----------------------------------------------------------------

    def gibbs_core(self, G: Matrix, eta: float) -> FamilyCore:
        """Return the plans of column potentials whose rows sum to p_k."""
        cores: list[Core] = []
        for support, g in zip(self.supports, G, strict=True):
            problem = support.problem
            f = softmin(log(problem.p), problem.geometry.lse_rows(g, eta), eta)
            cores.append(support.lifted(Gibbs(problem.geometry, f, g, eta), f)[0])
        return FamilyCore(tuple(cores))

    def nothing(self) -> tuple[FamilyCore, Vector]:
        """Return empty cores, which round to independent plans, and zero potentials."""
        cores = tuple(Arcs.none(member.problem.shape) for member in self.members)
        return FamilyCore(cores), np.zeros(self.shape).ravel()

    # -- files -------------------------------------------------------------------------------

    def answer_arrays(self, plan: FamilyPlan, potentials: FamilyPotentials) -> Arrays:
        """Return the arrays of plans and potentials, by the names they have in a file."""
        found: Arrays = {"best.b": plan.b}
        for k, (x, (f, g)) in enumerate(zip(plan.plans, potentials, strict=True)):
            found |= {f"plan.{k}.{name}": array for name, array in x.arrays().items()}
            found |= {f"best.{k}.f": f, f"best.{k}.g": g}
        return found

    def answer_from(self, arrays: Arrays) -> tuple[FamilyPlan, FamilyPotentials] | None:
        """Return the plans and potentials of a file, which may be anybody's, if it has any."""
        saved, m = SavedArrays(arrays), self.shape[1]
        if "best.b" not in saved:
            return None
        plans, potentials = [], []
        for k, member in enumerate(self.members):
            plan, best = saved.under(f"plan.{k}"), saved.under(f"best.{k}")
            plans.append(Plan.from_arrays(plan, member.problem.geometry))
            n = member.problem.p.size
            potentials.append((best.vector("f", (n,)), best.vector("g", (m,))))
        return FamilyPlan(saved.masses("best.b", (m,)), tuple(plans)), tuple(potentials)


def onto(member: Objective, b: Vector) -> Objective:
    """Return a member as transport to a barycentre."""
    return member.on(replace(member.problem, q=b))


def _rounding_cost(plan: Plan, member: Objective) -> float:
    """Return the cost of the rank-one term of a rounded plan."""
    if plan.correction is None:
        return 0.0
    return dot(plan.correction.e, member.problem.geometry.matvec(plan.correction.d))


# -- coarser families ------------------------------------------------------------------------


class CoarseFamily(NamedTuple):
    """A family on cells twice as long along every axis."""

    family: Family
    halved: HalvedGrid

    def prolonged(self, G: Matrix) -> Matrix:
        """Return column potentials on the finer grid."""
        return np.stack([self.halved.prolong(g) for g in G])


def coarser(family: Family) -> CoarseFamily | None:
    """Return the family on cells twice as long along every axis, if it is on one large grid."""
    geometry = family.members[0].problem.geometry
    if geometry.shape[0] <= MIN_CELLS_TO_COARSEN:
        return None
    if any(member.problem.geometry is not geometry for member in family.members):
        return None
    halved = geometry.halved()
    if halved is None:
        return None
    nothing = read_only(np.zeros(halved.geometry.shape[1]))
    problems = [
        Problem(halved.geometry, read_only(halved.pool(x.p)), nothing, x.offset, x.mass, x.unit)
        for x in (member.problem for member in family.members)
    ]
    members, supports = tuple(map(Transport, problems)), tuple(map(Support.all, problems))
    return CoarseFamily(Family(members, supports, family.weights), halved)


def make_family(
    A: ArrayLike | Sequence[ArrayLike],
    M: Costs,
    weights: ArrayLike | None = None,
    *,
    normalize: bool = False,
    reg: float | None = None,
) -> Family:
    """Validate histograms, costs and weights, or raise with one sentence and its remedy."""
    rows = _histograms(A)
    geometries = _costs(M, len(rows))
    masses, mass = _masses(rows, geometries, normalize=normalize)
    w = shares(weights, len(rows))
    # A run holds about 16 vectors of the size of all potentials.
    n_bytes = 16 * 8 * len(rows) * geometries[0].shape[1]
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


def _with_all_pairs(geometry: Geometry) -> Geometry:
    """Return a geometry, or reject one that forbids pairs."""
    if geometry.allowed is not None:
        raise InvalidProblem(
            "the cost of a barycentre forbids some pairs; it must be finite for every pair "
            "(replace inf by a large cost)."
        )
    return geometry


def _costs(M: Any, k: int) -> list[Geometry]:
    """Return one geometry per histogram, the same one if there is a single cost."""
    many = M if isinstance(M, (list, tuple)) and M and _is_cost(M[0]) else None
    if many is None and not isinstance(M, Geometry) and np.ndim(M) == 3:
        many = list(np.asarray(M))
    if many is None:
        return [_with_all_pairs(as_geometry(M))] * k
    if len(many) != k:
        raise InvalidProblem(
            f"M is a list of {len(many)} costs for {k} histograms; it must be one cost for all, or "
            "one for each."
        )
    found = [_with_all_pairs(as_geometry(x)) for x in many]
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
    """Return histograms of total 1, and their common total."""
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
    """Return the weights of k histograms, of total 1."""
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
    """Return problems with costs in one unit, of ordinary size, whose least cost is 0."""
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
    """Return the problems without empty rows, where copies of the costs are small."""
    kept = [np.flatnonzero(problem.p > NEGLIGIBLE_MASS) for problem in problems]
    stored = {id(x.geometry): x.geometry.shape[0] for x in problems if x.geometry.is_dense}
    if (
        sum(rows.size for rows in kept) > 2 * sum(stored.values()) and stored
    ):  # copies may double them
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
