"""Plans and potentials of many problems, one after the other in a few arrays."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Self, overload

import numpy as np
from numpy.typing import DTypeLike
from scipy import sparse

from ..._types import Array, Index, Potentials, Vector
from ...errors import InvalidProblem
from ...files.saved import Arrays, Saved
from .packing import places

#: Places that a saved index may point at: what an array can have.
LONGEST = 2**62


def _replaced(starts: Index, values: Array, k: int, item: Array) -> Array:
    """Return values in which piece k is another one."""
    return np.concatenate((values[: starts[k]], item, values[starts[k + 1] :]))


def _moved(starts: Index, k: int, size: int) -> Index:
    """Return where pieces begin when piece k has another size."""
    sizes = np.diff(starts)
    sizes[k] = size
    return places(sizes)


def _joined(parts: Iterable[Array], dtype: DTypeLike) -> Array:
    return np.concatenate([np.zeros(0, dtype), *parts])


@dataclass(frozen=True)
class Plans(Sequence[sparse.csr_array]):
    """The plans of a batch as sparse matrices: ``plans[k]`` is a SciPy CSR array.

    Plan k has the entries ``flow`` at (``i``, ``j``) from ``starts[k]`` to ``starts[k + 1]``.
    """

    shapes: Index
    starts: Index
    i: Index
    j: Index
    flow: Vector

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, k: int) -> sparse.csr_array: ...
    @overload
    def __getitem__(self, k: slice) -> list[sparse.csr_array]: ...
    def __getitem__(self, k: int | slice) -> sparse.csr_array | list[sparse.csr_array]:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        k = range(len(self))[k]
        own = slice(self.starts[k], self.starts[k + 1])
        entries = self.flow[own], (self.i[own], self.j[own])
        return sparse.csr_array(entries, shape=tuple(map(int, self.shapes[k])))

    def tosparse(self) -> sparse.csr_array:
        """Return all plans as the blocks of one block-diagonal CSR array."""
        at = [np.repeat(places(self.shapes[:, c])[:-1], np.diff(self.starts)) for c in (0, 1)]
        shape = tuple(map(int, self.shapes.sum(axis=0)))
        return sparse.csr_array((self.flow, (self.i + at[0], self.j + at[1])), shape=shape)

    def replaced(self, k: int, plan: sparse.sparray) -> Plans:
        """Return the plans with another one at k, a sparse matrix."""
        plan = sparse.coo_array(plan)
        shapes = self.shapes.copy()
        shapes[k] = plan.shape
        i, j, flow = (
            _replaced(self.starts, x, k, y)
            for x, y in zip((self.i, self.j, self.flow), (*plan.coords, plan.data), strict=True)
        )
        return Plans(shapes, _moved(self.starts, k, plan.nnz), i, j, flow)

    def first(self, n: int) -> Plans:
        """Return the first n plans."""
        own = slice(self.starts[n])
        return Plans(
            self.shapes[:n], self.starts[: n + 1], self.i[own], self.j[own], self.flow[own]
        )

    @classmethod
    def joined(cls, parts: Sequence[Plans]) -> Self:
        """Return the plans of some parts, one after the other."""
        return cls(
            np.concatenate([np.zeros((0, 2), np.int64), *(x.shapes for x in parts)]),
            places(_joined((np.diff(x.starts) for x in parts), np.int64)),
            _joined((x.i for x in parts), np.int64),
            _joined((x.j for x in parts), np.int64),
            _joined((x.flow for x in parts), np.float64),
        )

    def arrays(self) -> Arrays:
        """Return what a file holds of the plans."""
        return {
            "shapes": self.shapes,
            "starts": self.starts,
            "i": self.i,
            "j": self.j,
            "flow": self.flow,
        }

    @classmethod
    def from_arrays(cls, saved: Saved, size: int) -> Self:
        """Return the plans of so many problems from a file, which may be anybody's."""
        shapes = saved.indices("shapes", (size, 2), LONGEST)
        starts = _starts(saved, "starts", size)
        n = (int(starts[-1]),)
        i, j = (saved.indices(name, n, LONGEST) for name in ("i", "j"))
        ends = np.repeat(shapes, np.diff(starts), axis=0)
        if (i >= ends[:, 0]).any() or (j >= ends[:, 1]).any():
            raise InvalidProblem("a saved plan points beyond its matrix; write the file again.")
        return cls(shapes, starts, i, j, saved.masses("flow", n))


@dataclass(frozen=True)
class ManyPotentials(Sequence[Potentials]):
    """The potentials of a batch: ``potentials[k]`` is the pair (f, g) of problem k."""

    f_starts: Index
    f: Vector
    g_starts: Index
    g: Vector

    def __len__(self) -> int:
        return self.f_starts.size - 1

    @overload
    def __getitem__(self, k: int) -> Potentials: ...
    @overload
    def __getitem__(self, k: slice) -> list[Potentials]: ...
    def __getitem__(self, k: int | slice) -> Potentials | list[Potentials]:
        if isinstance(k, slice):
            return [self[i] for i in range(len(self))[k]]
        k = range(len(self))[k]
        f = self.f[self.f_starts[k] : self.f_starts[k + 1]]
        return f, self.g[self.g_starts[k] : self.g_starts[k + 1]]

    def replaced(self, k: int, pair: Potentials) -> ManyPotentials:
        """Return the potentials with another pair at k."""
        f, g = pair
        return ManyPotentials(
            _moved(self.f_starts, k, f.size),
            _replaced(self.f_starts, self.f, k, f),
            _moved(self.g_starts, k, g.size),
            _replaced(self.g_starts, self.g, k, g),
        )

    def first(self, n: int) -> ManyPotentials:
        """Return the potentials of the first n problems."""
        f_starts, g_starts = self.f_starts[: n + 1], self.g_starts[: n + 1]
        return ManyPotentials(f_starts, self.f[: f_starts[-1]], g_starts, self.g[: g_starts[-1]])

    @classmethod
    def joined(cls, parts: Sequence[ManyPotentials]) -> Self:
        """Return the potentials of some parts, one after the other."""
        return cls(
            places(_joined((np.diff(x.f_starts) for x in parts), np.int64)),
            _joined((x.f for x in parts), np.float64),
            places(_joined((np.diff(x.g_starts) for x in parts), np.int64)),
            _joined((x.g for x in parts), np.float64),
        )

    def arrays(self) -> Arrays:
        """Return what a file holds of the potentials."""
        return {"f_starts": self.f_starts, "f": self.f, "g_starts": self.g_starts, "g": self.g}

    @classmethod
    def from_arrays(cls, saved: Saved, size: int) -> Self:
        """Return the potentials of so many problems from a file, which may be anybody's."""
        f_starts, g_starts = (_starts(saved, name, size) for name in ("f_starts", "g_starts"))
        f, g = (
            saved.array(name, (int(starts[-1]),), np.dtype(np.float64))
            for name, starts in (("f", f_starts), ("g", g_starts))
        )
        return cls(f_starts, f, g_starts, g)


def _starts(saved: Saved, name: str, size: int) -> Index:
    """Return where pieces begin, or say that they cannot."""
    starts = saved.indices(name, (size + 1,), LONGEST)
    if starts[0] != 0 or (np.diff(starts) < 0).any():
        raise InvalidProblem(f"the saved array {name} does not ascend from 0; write it again.")
    return starts
