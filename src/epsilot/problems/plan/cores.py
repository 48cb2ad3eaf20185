"""The kinds of cores, for files that hold one."""

from __future__ import annotations

from ...errors import InvalidProblem
from ...files.saved import Saved
from ...geometry import Geometry
from .arcs import Arcs
from .core import Core
from .explicit import Explicit
from .gibbs import Gibbs
from .total import Total

#: Every kind of core that a file can hold beside a plan's scalings.
CORES: tuple[type[Core], ...] = (Explicit, Arcs, Gibbs, Total)


def core_from_arrays(saved: Saved, geometry: Geometry) -> Core:
    """Return the core that a file holds, of whatever kind."""
    for kind in CORES:
        if kind.mark in saved:
            return kind.from_arrays(saved, geometry)
    names = ", ".join(saved.prefix + kind.mark for kind in CORES)
    raise InvalidProblem(f"the file has none of the arrays {names}; write it again.")
