"""Coarser versions of a family on a grid: potentials found there begin the next finer one."""

from __future__ import annotations

import numpy as np

from .._types import Matrix, Vector
from ..geometry import Grid
from ..transport.linear import Transport
from ..transport.problem import Problem, frozen
from ..transport.support import Support
from .family import Family

#: Cells of a grid that has no coarser version.
FEW = 1 << 11


def coarser(family: Family) -> Family | None:
    """Return the family on cells twice as long along every axis, if it is on one large grid."""
    grid = family.members[0].problem.geometry
    if not isinstance(grid, Grid) or grid.shape_a != grid.shape_b or grid.shape[0] <= FEW:
        return None
    if any(member.problem.geometry is not grid for member in family.members):
        return None
    shape = tuple(-(-n // 2) for n in grid.shape_a)
    coarse = Grid(shape, shape, grid.metric, [2 * h for h in grid.spacing])
    nothing = frozen(np.zeros(coarse.shape[1]))
    problems = [
        Problem(coarse, pooled(x.p, grid.shape_a), nothing, x.offset, x.mass, x.unit)
        for x in (member.problem for member in family.members)
    ]
    return Family(
        tuple(map(Transport, problems)), tuple(map(Support.all, problems)), family.weights
    )


def pooled(p: Vector, shape: tuple[int, ...]) -> Vector:
    """Return the masses of pairs of cells along every axis."""
    field = p.reshape(shape)
    for axis, n in enumerate(shape):
        odd = [(0, n % 2 if k == axis else 0) for k in range(field.ndim)]
        field = np.pad(field, odd)
        even, after = (_along(field, axis, slice(i, None, 2)) for i in (0, 1))
        field = even + after
    return frozen(np.ravel(field))


def prolonged(G: Matrix, coarse: Family, fine: Family) -> Matrix:
    """Return column potentials on a finer grid, linear between the centres of coarse cells."""
    shapes = [x.members[0].problem.geometry for x in (coarse, fine)]
    assert all(isinstance(x, Grid) for x in shapes)
    small, large = (x.shape_b for x in shapes)  # type: ignore[attr-defined]
    return np.stack([np.ravel(_stretched(g.reshape(small), large)) for g in G])


def _stretched(field: Matrix, shape: tuple[int, ...]) -> Matrix:
    """Return a field with twice the cells along every axis, cut to a shape."""
    for axis, n in enumerate(shape):
        m = field.shape[axis]
        before = field.take(np.maximum(np.arange(m) - 1, 0), axis)
        after = field.take(np.minimum(np.arange(m) + 1, m - 1), axis)
        pair = np.stack([0.75 * field + 0.25 * before, 0.75 * field + 0.25 * after], axis + 1)
        doubled = pair.reshape(*field.shape[:axis], 2 * m, *field.shape[axis + 1 :])
        field = _along(doubled, axis, slice(0, n))
    return field


def _along(field: Matrix, axis: int, part: slice) -> Matrix:
    """Return a part of a field along one axis."""
    places = [slice(None)] * field.ndim
    places[axis] = part
    return field[tuple(places)]
