"""Which method "auto" stands for: the cheapest by measured cost models, with its reasons.

A model is overhead + dense nm + scale (n + m)^power seconds of the processor, whatever the number
of threads, on which no choice must depend; fitted by
``benchmarks/calibrate.py`` and shipped as ``data/cost_models.json``; the environment variable
``EPSILOT_COST_MODELS`` names another file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .._types import Fields, Vector
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..geometry.sweeps import KEPT_ENTRIES
from ..kernels.small_simplex import is_small
from ..metrics import metric_of
from ..problems.objective import Objective
from ..wording import first_line, shown

#: Entries of a lazy cloud beyond which even the restricted simplex has too many arcs.
LARGEST_RESTRICTED = 2 * 10**9
#: The restricted simplex must promise this share of the time of the exact one, which no cost
#: surprises by a second round.
MARGIN = 0.8
#: Highest dimension in which an auction is the choice.
FLAT = 3
#: Entries up to which l1 distances between points, with their ties, are left to a simplex.
TIED_ENTRIES = 1 << 27
#: Cells of an image up to which it is the choice for squared distances: filters need less memory.
LARGEST_IMAGE = 1 << 18


@dataclass(frozen=True)
class Choice:
    """What "auto" chose and why."""

    method: str
    reason: str
    seconds: float  # predicted
    bytes: int  # predicted peak, beyond the inputs

    def __str__(self) -> str:
        return (
            f"{self.method}: {self.reason} (predicted {self.seconds:.2g} s, "
            f"{self.bytes / 2**20:.3g} MiB)"
        )


@lru_cache(maxsize=4)
def _read(path: str | None) -> dict[str, Fields]:
    try:
        if path is None:
            text = resources.files("epsilot").joinpath("data/cost_models.json").read_text()
        else:
            with open(path) as file:
                text = file.read()
        models: dict[str, Fields] = json.loads(text)
        return models if path is None else _read(None) | models
    except (OSError, ValueError) as error:
        raise InvalidProblem(
            f"EPSILOT_COST_MODELS is {shown(path)}, which cannot be read ({first_line(error)}); it "
            "must name a JSON file written by benchmarks/calibrate.py."
        ) from None


def cost_models() -> dict[str, Fields]:
    """Return the cost models in force: method -> coefficients."""
    return _read(os.environ.get("EPSILOT_COST_MODELS"))


def predict(method: str, n: int, m: int, *, is_dense: bool) -> tuple[float, int]:
    """Return predicted seconds and bytes of a method on an n x m problem."""
    return _predicted(os.environ.get("EPSILOT_COST_MODELS"), method, n, m, is_dense)


@lru_cache(maxsize=64)
def _predicted(path: str | None, method: str, n: int, m: int, is_dense: bool) -> tuple[float, int]:
    model = _read(path)[method]
    entries, nodes = n * m, n + m
    if method != "restricted_simplex":
        size = entries if method in ("exact", "small_simplex") else nodes
        return _seconds(model, entries, nodes), int(model["bytes"] * size)
    speed = model["dense" if is_dense else "lazy"]
    seconds = _seconds({**model, "dense": speed}, entries, nodes)
    return seconds, int((4 * entries if is_dense else 0) + 600 * nodes)


def _seconds(model: dict[str, float], entries: int, nodes: int) -> float:
    rest = model["scale"] * float(nodes ** model["power"])
    return model["overhead"] + model["dense"] * entries + rest


def is_flat(geometry: Geometry) -> bool:
    """Tell whether costs are those of points in so few dimensions that trees say much."""
    embedding = geometry.embedding
    return embedding is not None and embedding.X.shape[1] <= FLAT


def is_square(geometry: Geometry) -> bool:
    """Tell whether costs are squared distances."""
    embedding = geometry.embedding
    return embedding is not None and metric_of(embedding.metric).square == 1


def is_tied(geometry: Geometry) -> bool:
    """Tell whether many costs may be equal, as l1 distances are: auctions may then be long."""
    embedding = geometry.embedding
    return embedding is not None and metric_of(embedding.metric).has_ties


#: Why a method is chosen; its model, where it depends on the cost, is named after it.
REASONS = {
    "monotone": "on a line, sorted masses are matched from left to right",
    "grid_flow": "with l1 costs, transport on a grid is a flow between neighbouring cells",
    "auction": "an auction from coarse to fine needs few columns of each point",
    "small_simplex": "a compiled simplex on all arcs is fastest for so few",
    "exact": "the network simplex is fastest at this size",
    "restricted_simplex": "a simplex on the arcs that crude entropic potentials select is fastest "
    "at this size",
}


def _serving(geometry: Geometry) -> dict[str, str]:
    """Return the exact methods that serve a geometry, and the model of each."""
    n, m = geometry.shape
    found = {}
    if geometry.line is not None:
        found["monotone"] = "monotone"
    if geometry.lattice is not None:
        found["grid_flow"] = "grid_flow"
    if geometry.is_separable:
        if is_square(geometry) and max(n, m) <= LARGEST_IMAGE:
            found["auction"] = "auction"
        if n * m <= KEPT_ENTRIES:
            found["restricted_simplex"] = "restricted_simplex"
        return found
    if geometry.is_dense and is_small(n, m):
        found["small_simplex"] = "small_simplex"
        return found
    if is_flat(geometry) and (n * m > TIED_ENTRIES or not is_tied(geometry)):
        found["auction"] = "auction" if is_square(geometry) else "auction of distances"
    if geometry.is_dense:
        found["exact"] = "exact"
    if geometry.is_dense or (geometry.has_rows and n * m <= LARGEST_RESTRICTED):
        found["restricted_simplex"] = "restricted_simplex"
    return found


def _count(masses: Vector) -> int:
    return int((masses > 0).sum())


def choose(objective: Objective) -> Choice:
    """Return the method for an objective: its own, or the fastest exact one that serves it."""
    n, m = objective.problem.shape
    geometry = objective.problem.geometry
    if objective.own_method is not None:
        return Choice(*objective.own_method, 0.0, 0)
    is_kept = geometry.is_dense or geometry.is_separable
    sizes = dict.fromkeys(REASONS, (n, m))
    # An auction leaves empty cells out, of which pictures may have many.
    sizes["auction"] = _count(objective.problem.p), _count(objective.problem.q)
    choices = [
        Choice(method, REASONS[method], *predict(model, *sizes[method], is_dense=is_kept))
        for method, model in _serving(geometry).items()
    ]
    if choices:
        # The margin is for what surprises: a simplex on few arcs may need a second round.
        return min(choices, key=lambda x: x.seconds * (MARGIN if x.method == "exact" else 1.0))
    if geometry.is_separable:
        reason = "a grid's Gibbs kernel is applied axis by axis, without an n x n array"
        return Choice("sinkhorn", reason, 0.0, 200 * (n + m))
    reason = "too large for a simplex, or far away; float32 sweeps need O(n + m) memory"
    lazily, _ = predict("restricted_simplex", n, m, is_dense=False)
    return Choice("sinkhorn", reason, 50 * lazily, 200 * (n + m))
