"""Validate transport problems, and define the problems that methods solve."""

from __future__ import annotations

import hashlib
import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, replace
from functools import cached_property
from typing import ClassVar, NamedTuple, Self

import numpy as np
from numpy.typing import ArrayLike

from .. import memory
from .._types import Potentials, Vector
from ..arguments import as_numpy, numeric
from ..errors import InvalidProblem
from ..geometry import Geometry, as_geometry
from ..kernels.proof import LARGEST, SMALLEST, are_held, cost_offset, scaling_power
from ..kernels.vectors import log
from .prices import Price, kept

# Relative difference of totals that counts as round-off, by type of the weights.
_TOTALS = {np.dtype(np.float32): 1e-5, np.dtype(np.float16): 1e-2}
# Vectors of n + m numbers that every run holds in memory.
VECTORS_PER_RUN = 8


@dataclass(frozen=True)
class Problem:
    """min <C, X> over plans X >= 0 with X 1 = p and Xᵀ 1 = q.

    The user's cost is ``unit * (C + offset)``, where C is ``geometry``: its smallest entry is
    (nearly) 0, and it is near 1 in size if the user's is out of the ordinary; ``p`` and ``q`` are
    the user's weights divided by their total ``mass``. Objectives return values to the user's
    units (:mod:`epsilot.problems.objective`).
    """

    geometry: Geometry
    p: Vector
    q: Vector
    offset: float = 0.0
    mass: float = 1.0
    unit: float = 1.0  # a power of two
    constant: float = 0.0  # added to all values, per unit of mass

    @property
    def cost_max(self) -> float:
        """Largest cost after the shift, ‖C‖∞."""
        return self.geometry.bounds[1]

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.geometry.shape

    @property
    def scale(self) -> float:
        """Largest absolute cost before the shift, in internal units: the unit of round-off."""
        low, high = self.geometry.untilted.bounds
        return max(abs(self.offset + low), abs(self.offset + high))

    @property
    def is_tilted(self) -> bool:
        """Whether a regularisation has changed the costs by the weights."""
        return self.geometry.untilted is not self.geometry

    def digest(self) -> str:
        """Return a hash of cost and weights."""
        h = hashlib.sha256(self.geometry.digest().encode())
        h.update(self.p.tobytes() + self.q.tobytes())
        h.update(np.array([self.offset, self.mass, self.unit]).tobytes())
        return h.hexdigest()[:16]

    def detached(self) -> Problem:
        """Return the problem with its own copy of the user's costs."""
        return replace(self, geometry=self.geometry.detached())


class _OnGeometry:
    geometry: Geometry

    @property
    def shape(self) -> tuple[int, int]:
        """(n, m)."""
        return self.geometry.shape


def uniform(geometry: Geometry) -> tuple[Vector, Vector]:
    """Return uniform weights of mass 1 on both sides."""
    n, m = geometry.shape
    return np.full(n, 1 / n), np.full(m, 1 / m)


@dataclass(frozen=True)
class Entropic(_OnGeometry):
    """min <C, X> - η H(X) over the plans with marginals p, q (perhaps smoothed: p', q')."""

    geometry: Geometry
    eta: float
    p: Vector
    q: Vector

    @property
    def level(self) -> float:
        """The number that a schedule lowers."""
        return self.eta

    def miniature(self, geometry: Geometry) -> Self:
        """Return the problem on a tiny geometry, to compile kernels on."""
        p, q = uniform(geometry)
        eta = 0.5 * geometry.cost_unit if self.eta else 0.0
        return replace(self, geometry=geometry, p=p, q=q, eta=eta)

    @cached_property
    def log_p(self) -> Vector:
        """Logarithms of the row masses, -inf where empty."""
        return log(self.p)

    @cached_property
    def log_q(self) -> Vector:
        """Logarithms of the column masses, -inf where empty."""
        return log(self.q)


@dataclass(frozen=True)
class Additive(_OnGeometry):
    """The unregularised problem with an accuracy ε."""

    geometry: Geometry
    epsilon: float
    p: Vector
    q: Vector

    def miniature(self, geometry: Geometry) -> Self:
        """Return the problem on a tiny geometry, to compile kernels on."""
        p, q = uniform(geometry)
        return replace(self, geometry=geometry, p=p, q=q, epsilon=0.1 * geometry.cost_unit)

    @property
    def level(self) -> float:
        """The number that a schedule lowers."""
        return self.epsilon

    @property
    def eta(self) -> float:
        """No regularisation."""
        return 0.0


@dataclass(frozen=True)
class PenalisedMarginals(Entropic):
    """A problem with penalties on both marginals: numbers, or one per point."""

    price_a: Price
    price_b: Price

    def miniature(self, geometry: Geometry) -> Self:
        """Return the problem on a tiny geometry, to compile kernels on."""
        n, m = geometry.shape
        prices = kept(self.price_a, slice(n)), kept(self.price_b, slice(m))
        return replace(super().miniature(geometry), price_a=prices[0], price_b=prices[1])


@dataclass(frozen=True)
class Penalised(PenalisedMarginals):
    """The problem with marginal penalties λ_a KL(X 1 | p) + λ_b KL(Xᵀ 1 | q).

    Without an entropy, η is 0.
    """

    #: The form of problems whose methods work on this target (``Objective.form``).
    form: ClassVar[str] = "unbalanced (KL)"

    @property
    def level(self) -> float:
        """Any positive number for files: no schedule lowers it."""
        return self.eta or 1.0

    @property
    def transposed(self) -> Penalised:
        """The problem with weights and penalties of both sides exchanged; the costs stay."""
        return Penalised(self.geometry, self.eta, self.q, self.p, self.price_b, self.price_a)


Target = Entropic | Additive


def smooth(p: Vector, weight: float) -> Vector:
    """Mix a marginal with the uniform one: (1 - weight) p + weight / n."""
    return (1 - weight) * p + weight / p.size


# -- validation ----------------------------------------------------------------------------


def make_problem(
    M: ArrayLike | Geometry,
    a: ArrayLike | None = None,
    b: ArrayLike | None = None,
    *,
    normalize: bool = False,
    can_shift: bool = True,
) -> Problem:
    """Validate a user's cost and weights, or raise InvalidProblem.

    Without ``can_shift`` costs are left as they are unless some are negative.
    """
    geometry = as_geometry(M)
    (weights_a, total_a), (weights_b, total_b) = _both(geometry, a, b)
    if not normalize:
        check_totals(a, b, total_a, total_b, "pass normalize=True to rescale both to 1")
    mass = 1.0 if normalize else total_b if a is None else total_a
    can_shift = can_shift or geometry.bounds[0] < 0
    return scaled_problem(
        geometry, weights_a / total_a, weights_b / total_b, mass, can_shift=can_shift
    )


def checked_weights(
    geometry: Geometry, a: ArrayLike | None, b: ArrayLike | None, *, normalize: bool = False
) -> tuple[Vector, Vector]:
    """Return checked weights; default weights get the mass of the other side."""
    (weights_a, total_a), (weights_b, total_b) = _both(geometry, a, b)
    return (weights_a / total_a, weights_b / total_b) if normalize else (weights_a, weights_b)


def _both(
    geometry: Geometry, a: ArrayLike | None, b: ArrayLike | None
) -> tuple[tuple[Vector, float], tuple[Vector, float]]:
    """Return checked weights of both sides, each with its total."""
    n, m = geometry.shape
    if VECTORS_PER_RUN * 8 * (n + m) > memory.MIN_CHECKED_BYTES:
        what, remedy = f"a problem of {n:,} x {m:,}", "use fewer points or cells"
        memory.ask(VECTORS_PER_RUN * 8 * (n + m), what, remedy)
    of_a, of_b = side_weights(a, "a", n, m), side_weights(b, "b", m, n)
    if a is None:
        return _carrying(of_a, of_b), of_b
    return of_a, _carrying(of_b, of_a) if b is None else of_b


def _carrying(uniform: tuple[Vector, float], other: tuple[Vector, float]) -> tuple[Vector, float]:
    """Return uniform weights with the mass of the other side."""
    weights = uniform[0] * other[1]
    return weights, float(weights.sum())


def scaled_problem(
    geometry: Geometry, p: Vector, q: Vector, mass: float, *, can_shift: bool = True
) -> Problem:
    """Scale the costs to an ordinary size, and shift them to begin at 0 if ``can_shift``."""
    low, high = geometry.bounds
    if not high - low < math.inf:
        raise InvalidProblem(describe_infinite_cost(geometry))
    size = max(abs(low), abs(high))
    check_size(size, mass)
    geometry, unit = to_ordinary_size(geometry, size)
    offset = cost_offset(*geometry.bounds) if can_shift else 0.0
    return Problem(geometry.shifted(-offset), read_only(p), read_only(q), offset, mass, unit)


def check_size(cost: float, mass: float, what: str = "the weights sum to") -> None:
    """Reject costs, masses and values outside the accurate range of float64."""
    if not are_held(cost, mass):
        raise InvalidProblem(
            f"the costs reach {cost:.3g} and {what} {mass:.3g}; both and their product must be "
            f"between {SMALLEST:.0e} and {LARGEST:.0e} for float64 to hold them (rescale)."
        )


def to_ordinary_size(geometry: Geometry, size: float) -> tuple[Geometry, float]:
    """Divide a geometry by a power of two so that its size is ordinary; return both."""
    power = scaling_power(size)
    scaled = geometry.rescaled(-power) if power else None
    return (geometry, 1.0) if scaled is None else (scaled, math.ldexp(1.0, power))


def read_only(x: Vector) -> Vector:
    """Make a vector read-only and return it."""
    x.setflags(write=False)
    return x


def describe_infinite_cost(geometry: Geometry) -> str:
    """Return the sentence that names the first cost that is NaN or -inf, or else inf."""
    for may_be_forbidden in (True, False):
        for start, _, C in geometry.blocks():
            is_wrong = ~(-np.inf < C) if may_be_forbidden else ~np.isfinite(C)
            for i, j in np.argwhere(is_wrong)[:1]:
                return (
                    f"the cost of row {start + i}, column {j} is {C[i, j]}; costs must be finite, "
                    "or inf where a pair is forbidden (replace it by the right one)."
                )
    return (
        "the costs span more than float64 can hold; their range must be finite "
        "(divide them by their largest absolute value)."
    )


def totals_rtol(w: object) -> float:
    """Return the relative difference of totals that is round-off for this type of weights."""
    if w is None:
        return 0.0
    return _TOTALS.get(getattr(as_numpy(w, "weights"), "dtype", None), 1e-9)


def check_totals(a: object, b: object, total_a: float, total_b: float, remedy: str) -> None:
    """Raise unless two given sides have the same total; uniform sides differ by rounding only."""
    is_given = a is not None and b is not None
    if is_given and abs(total_a - total_b) > max(totals_rtol(a), totals_rtol(b)) * total_a:
        raise InvalidProblem(
            f"a sums to {total_a:.10g} and b to {total_b:.10g}; the totals must be equal "
            f"({remedy})."
        )


def side_weights(w: object, name: str, size: int, other: int) -> tuple[Vector, float]:
    """Return checked weights, uniform by default, and their total."""
    if w is None:
        x = np.full(size, 1.0 / size)
        return x, float(x.sum())
    x = numeric(w, name)
    if x.shape != (size,):
        hint = (
            " (are a and b swapped?)" if x.shape == (other,) else " (are they of another problem?)"
        )
        side = "row" if name == "a" else "column"
        raise InvalidProblem(
            f"{name} has shape {x.shape}; it must have shape ({size},), one weight for each "
            f"{side} of the cost{hint}."
        )
    total = float(np.add.reduce(x))
    if not (np.minimum.reduce(x) >= 0 and 0 < total < math.inf):
        raise InvalidProblem(describe_bad_weights(x, name))
    return x, total


def describe_bad_weights(x: Vector, name: str) -> str:
    """Return the sentence that says what is wrong with weights."""
    for bad, what, remedy in (
        (~np.isfinite(x), "must be finite", "remove or repair that entry"),
        (x < 0, "must not be negative", "set it to zero, or shift all weights"),
    ):
        if bad.any():
            i = int(np.argmax(bad))
            return f"{name}[{i}] is {x[i]:.6g}; weights {what} ({remedy})."
    if not x.sum() > 0:
        return f"{name} sums to 0; weights need a positive total (pass None for uniform weights)."
    return (
        f"{name} sums to {x.sum()}; weights must have a finite total (divide them by their "
        "maximum first)."
    )


class BestPotential(NamedTuple):
    """The optimal potential of one side given the other, with the optimal constant µ."""

    potential: Vector
    level: float  # µ: the plan is exp((f + g + µ - C) / η - 1)


@dataclass(frozen=True)
class Clipped(Entropic, ABC):
    """An entropic problem with bounded potentials: clipping maximises its dual over one side."""

    form: ClassVar[str] = "partial or TV with reg"

    @abstractmethod
    def best_rows(self, lse: Vector) -> BestPotential:
        """Return the best rows, given log Σ_j exp((g_j - C_ij) / η - 1)."""

    def translated(self, f: Vector, g: Vector) -> Potentials:
        """Move the optimal constant between f and g."""
        return f, g

    @abstractmethod
    def best_cols(self, lse: Vector) -> BestPotential:
        """Return the best columns, given log Σ_i exp((f_i - C_ij) / η - 1)."""
