"""Exact l1 transport on grids: a flow between neighbouring cells, by a multiscale simplex.

The l1 distance of two cells is the length of a path of steps between neighbours, so transport is an
uncapacitated minimum-cost flow on the graph of the grid: d n edges in place of n² pairs (Ling and
Okada 2007). Masses matter only by their difference. A network simplex solves coarse grids first:
the optimal tree of one, refined, is the first basis of the next. Masses and prices are whole
numbers of small units, so there is no rounding in it, no tolerance and no cycling.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from .._types import Index, Potentials, Vector
from ..geometry.base import Lattice
from ..kernels import grid_flow as kernels
from ..problems.plan import Arcs, Core
from ..problems.problem import Additive, Problem
from ..problems.work import Work
from .base import DirectSolver, Pace, ResizableState, Signal
from .cost_models import Offer, cost_model
from .method_info import A_PRIORI, MethodInfo


@dataclass(frozen=True, kw_only=True)
class GridFlowTuning:
    """Tuning parameters of the flow on grids."""

    max_coarsest_side: int = 16  # cells of the longest side of the coarsest grid
    #: Cells priced and nodes visited: a few hundredths of a second.
    max_cells_per_step: int = 4_000_000
    certified_levels: int = 3  # levels above the finest whose optimum is worth a certificate
    min_certified_cells: int = 1 << 14  # cells that such a level must have
    cells_per_step: int = 1 << 11  # of the finest grid, for each step between two certificates
    mass_bits: int = 60  # of all mass that moves
    cost_bits: int = 50  # of the diameter, if spacings have no common measure
    path_bits: int = 62  # of any path
    max_spacing_ratio: int = 1 << 20  # up to which the least spacing is tried as the unit
    cell_bytes: int = 320  # bytes per cell: two bases, the flow, parcels and arcs


TUNING = GridFlowTuning()


Integers = NDArray[np.int64]


@dataclass(slots=True, kw_only=True)
class GridFlowState(ResizableState):
    """The basis on the current grid; its arrays have the length of the finest grid."""

    supply: Integers  # surplus of each cell of the finest grid, in units of mass
    level: int  # halvings of the finest grid
    steps: int = 0  # taken on this grid
    at: int = 0  # tile of cells at which pricing continues
    left: int = 0  # tiles that may still have a negative reduced cost
    links: NDArray[np.uint32]  # the basis: see kernels.network
    is_up: NDArray[np.bool_]
    flow: Integers
    prices: Integers

    @property
    def is_optimal(self) -> bool:
        """Whether the current grid is solved."""
        return self.left == 0

    @property
    def is_done(self) -> bool:
        """Whether the finest grid is solved."""
        return self.is_optimal and self.level == 0

    def tree(self, n_cells: int) -> tuple[NDArray[np.generic], ...]:
        """Return the basis of a grid with this number of cells, as kernels take it."""
        rest = self.is_up, self.flow, self.prices
        return tuple(x[: n_cells + 1] for x in (*self.links, *rest))

    def fits(self, problem: Additive) -> bool:
        """Tell whether a saved state belongs to this problem and has a valid basis."""
        field, n = field_of(problem), self.supply.size
        sizes = {x.size for x in (self.is_up, self.flow, self.prices)}
        if n != field.n_cells or sizes != {n + 1} or not 0 <= self.level <= field.n_levels:
            return False
        supply, costs, shape = self.coarse(field), field.costs, field.at(self.level)
        n_tiles = field.n_tiles(self.level)
        is_within = 0 <= self.at < n_tiles and 0 <= self.left <= n_tiles and self.steps >= 0
        return is_within and kernels.is_basis(self.tree(supply.size), supply, costs, shape)

    def coarse(self, field: Field) -> Integers:
        """Return the surplus of each cell of the current grid."""
        supply = self.supply
        for level in range(self.level):
            supply = kernels.halved(supply, field.at(level), field.at(level + 1))
        return supply


class Field(NamedTuple):
    """The box of cells that contains both grids, and the units of the solution."""

    shape: Integers  # of the box, three axes
    costs: Integers  # of a step along each axis, in units of length
    length: float  # unit of length
    rows: Index | slice  # cells of the sources in the box
    cols: Index | slice  # and of the targets

    @property
    def n_cells(self) -> int:
        """Cells of the box."""
        return self.n_at(0)

    def n_at(self, level: int) -> int:
        """Return the number of cells after some halvings."""
        return math.prod(self.at(level).tolist())

    def n_tiles(self, level: int) -> int:
        """Return the number of tiles in which the cells are priced."""
        return math.prod(kernels.tiles(self.at(level))[1].tolist())

    def at(self, level: int) -> Integers:
        """Return the shape after some halvings."""
        return np.asarray(-(-self.shape >> level))

    @property
    def n_levels(self) -> int:
        """Number of halvings down to the coarsest grid."""
        longest = int(self.shape.max())
        return max(0, (-(-longest // TUNING.max_coarsest_side) - 1).bit_length())

    def spread(self, x: Vector, cells: Index | slice) -> Vector:
        """Return a field that is x on some cells and 0 elsewhere."""
        out = np.zeros(self.n_cells)
        out[cells] = x
        return out

    def difference(self, problem: Additive) -> Vector:
        """Return the surplus of each cell: its mass in p minus its mass in q."""
        return self.spread(problem.p, self.rows) - self.spread(problem.q, self.cols)


@dataclass(frozen=True, kw_only=True)
class GridFlow(DirectSolver[GridFlowState]):
    """Pivot on grids from coarse to fine; a step is a number of pivots."""

    about: ClassVar[MethodInfo] = MethodInfo(
        family="exact",
        paper="Ling, Okada 2007 (EMD-L1), by a multiscale network simplex",
        year=2007,
        note="simplex on d n arcs",
        exactness="exact",
        solves_entropic=False,
        rule=A_PRIORI,
        needs_lattice=True,
    )
    pace: ClassVar[Pace] = Pace(evaluate_after=None, warm_up=2)

    @classmethod
    def offer(cls, problem: Problem) -> Offer | None:
        """Offer to solve l1 transport between the cells of a grid."""
        if problem.geometry.lattice is None:
            return None
        model, (n, m) = cost_model("grid_flow"), problem.shape
        reason = "with l1 costs, transport on a grid is a flow between neighbouring cells"
        return Offer(reason, model.seconds(n, m), int(model.bytes * (n + m)))

    def memory(self, problem: Problem) -> int:
        """Return the bytes of bases, flows and arcs, all O(n)."""
        lattice = problem.geometry.lattice
        return 0 if lattice is None else TUNING.cell_bytes * math.prod(_box(lattice))

    def init(
        self, problem: Additive, rng: Generator, potentials: Potentials | None = None
    ) -> tuple[GridFlowState, Work]:
        """Start from a comb on the coarsest grid; trees built from given potentials are worse."""
        field = field_of(problem)
        n = field.n_cells
        state = GridFlowState(
            supply=as_integers(field.difference(problem))[0],
            level=field.n_levels,
            links=np.zeros((6, n + 1), dtype=np.uint32),
            is_up=np.zeros(n + 1, dtype=np.bool_),
            flow=np.zeros(n + 1, dtype=np.int64),
            prices=np.zeros(n + 1, dtype=np.int64),
        )
        return state, self._open(field, state, kernels.comb(field.at(state.level)))

    def _open(self, field: Field, state: GridFlowState, marks: NDArray[np.uint8]) -> Work:
        """Open a level from a spanning tree of its grid."""
        tree, shape = state.tree(marks.size), field.at(state.level)
        kernels.basis(marks, state.coarse(field), field.costs, shape, tree)
        state.steps, state.at, state.left = 0, 0, field.n_tiles(state.level)
        return Work.of(vector=4 * marks.size)

    def step(self, problem: Additive, state: GridFlowState, rng: Generator) -> Work:
        """Pivot, on the next finer grid if the current one is solved."""
        field, work = field_of(problem), Work()
        if state.is_optimal and state.level > 0:
            marks = self._marks(field, state, state.level - 1)
            state.level -= 1
            work.record(self._open(field, state, marks))
        shape = field.at(state.level)
        tree = state.tree(field.n_at(state.level))
        state.at, state.left, priced, walked = kernels.pivots(
            tree, shape, field.costs, state.at, state.left, TUNING.max_cells_per_step
        )
        state.steps += 1
        axes = int((field.shape > 1).sum())
        work.record(Work.of(arc_tested=axes * priced, vector=walked))
        return work

    def _marks(self, field: Field, state: GridFlowState, level: int) -> NDArray[np.uint8]:
        """Return the tree of the current basis, refined down to a level."""
        shape = field.at(state.level)
        marks: NDArray[np.uint8] = kernels.marks_of(state.tree(field.n_at(state.level)), shape)
        for finer in range(state.level - 1, level - 1, -1):
            marks = kernels.refined(marks, field.at(finer + 1), field.at(finer))
        return marks

    def signal(self, problem: Additive, state: GridFlowState) -> Signal:
        """Request a certificate when a fine grid is solved, and at intervals on the finest."""
        level, n = state.level, state.supply.size
        if state.is_optimal:
            is_telling = (
                level <= TUNING.certified_levels
                and field_of(problem).n_at(level) >= TUNING.min_certified_cells
            )
            wants = level == 0 or is_telling
        else:
            wants = level == 0 and state.steps % max(16, n // TUNING.cells_per_step) == 0
        return Signal(is_finished=state.is_done, wants_certificate=wants)

    def candidates(self, problem: Additive, state: GridFlowState) -> list[tuple[Core, Vector]]:
        """Return the plan of the tree on the finest grid, and the potential of the current grid."""
        field = field_of(problem)
        tree = state.tree(field.n_cells)
        if state.level > 0:
            tree = tuple(np.zeros_like(x) for x in tree)
            marks = self._marks(field, state, 0)
            kernels.basis(marks, state.supply, field.costs, field.shape, tree)
        flows = kernels.flows_of(tree, field.shape)
        plan = plan_of(problem, field, state.supply, flows)
        return [(plan, self.potentials(problem, state)[0])]

    def potentials(self, problem: Additive, state: GridFlowState) -> Potentials:
        """Return the prices, interpolated from a coarse grid."""
        field = field_of(problem)
        f = -state.prices[: field.n_at(state.level)].astype(np.float64)
        for level in range(state.level - 1, -1, -1):
            f = interpolated(f.reshape(field.at(level + 1)), field.at(level))
        f = field.length * f.ravel()
        return f[field.rows], -f[field.cols]


def _box(lattice: Lattice) -> tuple[int, ...]:
    """Return the shape of the box that contains both grids and all shortest paths."""
    return tuple(map(max, lattice.shape_a, lattice.shape_b))


def field_of(problem: Additive) -> Field:
    """Return the box of a problem's cells and its units."""
    lattice = problem.geometry.lattice
    assert lattice is not None
    box = _box(lattice)
    # Axes of one cell come first: numbers of cells are the same, and no two strides are equal.
    axes = sorted(zip(box, lattice.spacing, strict=True), key=lambda axis: axis[0] > 1)
    sides, spacing = zip(*((1, 1.0),) * (3 - len(box)), *axes, strict=True)
    shape = np.array(sides, dtype=np.int64)
    costs, length = whole_lengths(np.array(spacing), shape)
    rows, cols = (
        _cells(box, part, kept)
        for part, kept in ((lattice.shape_a, lattice.rows), (lattice.shape_b, lattice.cols))
    )
    return Field(shape, costs, length, rows, cols)


def _cells(box: tuple[int, ...], part: tuple[int, ...], kept: Index | None = None) -> Index | slice:
    """Return the indices in a box of the (kept) cells of a part with the same origin."""
    if box == part:
        return slice(None) if kept is None else kept
    index = np.asarray(np.ravel_multi_index(np.indices(part).reshape(len(part), -1), box))
    return (index if kept is None else index[kept]).astype(np.int64)


def whole_lengths(spacing: Vector, shape: Integers) -> tuple[Integers, float]:
    """Return spacings as whole numbers of a unit, and that unit.

    The unit is the least spacing if the others are multiples of it, else a tiny share of the
    diameter. Axes of one cell do not matter.
    """
    used = spacing[shape > 1]
    if used.size == 0:
        return np.ones(3, dtype=np.int64), 1.0
    ratios = spacing / used.min()
    if (used <= TUNING.max_spacing_ratio * used.min()).all() and (used % used.min() == 0).all():
        return np.where(shape > 1, ratios, 1).astype(np.int64), float(used.min())
    n_cells, diameter = math.prod(shape.tolist()), float((spacing * (shape - 1)).sum())
    length = max(
        math.ldexp(diameter, -TUNING.cost_bits), math.ldexp(n_cells * used.max(), -TUNING.path_bits)
    )
    return np.where(shape > 1, np.maximum(np.rint(spacing / length), 1), 1).astype(np.int64), length


def as_integers(difference: Vector) -> tuple[Integers, int]:
    """Return masses as whole numbers of 2**-bits of total 0, and the bits.

    The largest number takes the rest that rounding leaves.
    """
    moved = float(np.maximum(difference, 0).sum())
    bits = TUNING.mass_bits - math.frexp(moved)[1] if moved > 0 else 0
    numbers = np.rint(np.ldexp(difference, bits)).astype(np.int64)
    numbers[np.argmax(np.abs(numbers))] -= numbers.sum()
    return numbers, bits


def interpolated(f: NDArray[np.float64], shape: Integers) -> NDArray[np.float64]:
    """Return a potential on a grid twice as fine: twice f at the quarter points of its cells."""
    f = 2 * f
    for axis in range(3):
        if shape[axis] == f.shape[axis]:
            continue
        g = np.moveaxis(f, axis, 0)
        fine = np.empty((2 * g.shape[0], *g.shape[1:]))
        fine[::2] = 0.75 * g + 0.25 * np.concatenate((g[:1], g[:-1]))
        fine[1::2] = 0.75 * g + 0.25 * np.concatenate((g[1:], g[-1:]))
        f = np.moveaxis(fine[: shape[axis]], 0, axis)
    return f


def plan_of(problem: Additive, field: Field, supply: Integers, flows: Integers) -> Arcs:
    """Return the plan of a flow: its parcels, and the mass that does not move."""
    difference = field.difference(problem)
    _, bits = as_integers(difference)
    source, target, mass = kernels.flow_to_plan(supply, flows, field.shape)
    stays = np.minimum(field.spread(problem.p, field.rows), field.spread(problem.q, field.cols))
    still = np.flatnonzero(stays > 0)
    i, j = np.concatenate((still, source)), np.concatenate((still, target))
    flow = np.concatenate((stays[still], np.ldexp(mass.astype(np.float64), -bits)))
    return Arcs(problem.shape, _place(field, field.rows, i), _place(field, field.cols, j), flow)


def _place(field: Field, part: Index | slice, cells: Index) -> Index:
    """Return the indices of cells of the box in a part of it."""
    if isinstance(part, slice):
        return cells
    place = np.zeros(field.n_cells, dtype=np.int64)
    place[part] = np.arange(part.size)
    return place[cells]
