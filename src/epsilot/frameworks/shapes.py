"""Shapes of the tensors of a loss: what fits together, and the stack that many problems are."""

from __future__ import annotations

from math import prod
from typing import NamedTuple

import numpy as np

from ..errors import InvalidProblem

Shape = tuple[int, ...]


class Stacking(NamedTuple):
    """How problems are stacked: ``lead`` axes of many of them, and the shapes of their parts."""

    lead: Shape
    costs: tuple[Shape, ...]  # of what the cost is made of, without the lead
    weights: tuple[Shape | None, ...]  # of a and b; None: not given

    @property
    def parts(self) -> tuple[Shape | None, ...]:
        """Shapes of all parts."""
        return self.costs + self.weights

    @property
    def size(self) -> int:
        """Number of problems."""
        return prod(self.lead)


def stack_clouds(x: Shape, y: Shape, a: Shape | None, b: Shape | None) -> Stacking:
    """Return how clouds (..., n, d) and (..., m, d) with weights are stacked, or say why not."""
    for name, shape in (("x", x), ("y", y)):
        if len(shape) < 2 or 0 in shape:
            raise InvalidProblem(
                f"{name} has shape {tuple(shape)}; it must be (..., n, d): n >= 1 points of d >= 1 "
                "numbers (points on a line: x[:, None])."
            )
    if x[-1] != y[-1]:
        raise InvalidProblem(
            f"x has {x[-1]} coordinates a point and y {y[-1]}; both clouds must live in one space."
        )
    return _stacked({"x": (x, 2), "y": (y, 2)}, (x[-2], y[-2]), a, b)


def stack_cloud(x: Shape, a: Shape | None) -> Stacking:
    """Return how clouds (..., n, d), each with itself, are stacked, or say why not."""
    both = stack_clouds(x, x, a, None)
    return Stacking(both.lead, both.costs[:1], both.weights[:1])


def stack_costs(M: Shape, a: Shape | None, b: Shape | None) -> Stacking:
    """Return how costs (..., n, m) with weights are stacked, or say why not."""
    if len(M) < 2 or 0 in M:
        raise InvalidProblem(f"M has shape {tuple(M)}; it must be (..., n, m), a cost or many.")
    return _stacked({"M": (M, 2)}, (M[-2], M[-1]), a, b)


def _stacked(
    costs: dict[str, tuple[Shape, int]], sizes: Shape, a: Shape | None, b: Shape | None
) -> Stacking:
    """Return the axes that all parts agree on."""
    for name, w, size in (("a", a, sizes[0]), ("b", b, sizes[1])):
        if w is not None and (len(w) < 1 or w[-1] != size):
            raise InvalidProblem(
                f"{name} has shape {tuple(w)}; it must be (..., {size}), one weight for each "
                f"{'source' if name == 'a' else 'target'}."
            )
    given = costs | {name: (w, 1) for name, w in (("a", a), ("b", b)) if w is not None}
    leads = {name: tuple(shape[:-depth]) for name, (shape, depth) in given.items()}
    try:
        lead = np.broadcast_shapes(*leads.values())
    except ValueError:
        received = ", ".join(f"{name} {axes}" for name, axes in leads.items())
        raise InvalidProblem(
            f"the axes of many problems are {received}; they must broadcast against each other."
        ) from None
    return Stacking(
        lead,
        tuple(tuple(shape[-depth:]) for shape, depth in costs.values()),
        tuple(None if w is None else tuple(w[-1:]) for w in (a, b)),
    )
