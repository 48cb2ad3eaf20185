"""Which method "auto" stands for: the cheapest by measured cost models, with its reasons.

A model is overhead + dense nm + scale (n + m)^power seconds, fitted by
``benchmarks/calibrate.py`` and shipped as ``data/cost_models.json``; the environment variable
``EPSILOT_COST_MODELS`` names another file.
"""

from __future__ import annotations

import json
import os
from dataclasses import dataclass
from functools import lru_cache
from importlib import resources

from .._types import Fields
from ..errors import InvalidProblem
from ..geometry import Geometry
from ..kernels.small_simplex import is_small
from ..metrics import METRICS
from ..transport.objective import Objective

#: Entries of a lazy cloud beyond which even the restricted simplex has too many arcs.
LARGEST_RESTRICTED = 2 * 10**9
#: The restricted simplex must promise this share of the time of the exact one, which no cost
#: surprises by a second round.
MARGIN = 0.8
#: Highest dimension in which an auction is the choice, and the bytes a point that it takes.
FLAT, AUCTION_BYTES = 3, 1200
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
            f"EPSILOT_COST_MODELS is {path!r}, which cannot be read ({error}); it must name a "
            "JSON file written by benchmarks/calibrate.py."
        ) from None


def cost_models() -> dict[str, Fields]:
    """Return the cost models in force: method -> coefficients."""
    return _read(os.environ.get("EPSILOT_COST_MODELS"))


def predict(method: str, n: int, m: int, *, is_dense: bool) -> tuple[float, int]:
    """Return predicted seconds and bytes of a method on an n x m problem."""
    return _predicted(os.environ.get("EPSILOT_COST_MODELS"), method, n, m, is_dense)


@lru_cache(maxsize=64)
def _predicted(path: str | None, method: str, n: int, m: int, is_dense: bool) -> tuple[float, int]:
    models = _read(path)
    entries, nodes = n * m, n + m
    if method in ("exact", "small_simplex"):
        model = models[method]
        return _seconds(model, entries, nodes), int(model["bytes"] * entries)
    if method == "auction":
        model = {"dense": 0.0, **models["auction"]}
        return _seconds(model, entries, nodes), AUCTION_BYTES * nodes
    if method == "grid_flow":
        model = models["grid_flow"]
        return _seconds(model, entries, nodes), int(model["bytes"] * nodes)
    model = models["restricted_simplex"]
    # As on two threads, whatever there are: the choice must not depend on their number.
    speed = model["dense" if is_dense else "lazy"] / 2
    seconds = _seconds({**model, "dense": speed}, entries, nodes)
    return seconds, int((4 * entries if is_dense else 0) + 600 * nodes)


def _seconds(model: dict[str, float], entries: int, nodes: int) -> float:
    rest = model["scale"] * float(nodes ** model["power"])
    return model["overhead"] + model["dense"] * entries + rest


def is_flat(geometry: Geometry) -> bool:
    """Tell whether costs are those of points in so few dimensions that trees say much."""
    dimension = geometry.dimension
    return geometry.embedding is not None and dimension is not None and dimension <= FLAT


def is_square(geometry: Geometry) -> bool:
    """Tell whether costs are squared distances."""
    embedding = geometry.embedding
    return embedding is not None and embedding.metric == METRICS["sqeuclidean"].code


def choose(objective: Objective) -> Choice:
    """Return the method for an objective: its own, a grid's, or the fastest simplex."""
    n, m = objective.problem.shape
    geometry = objective.problem.geometry
    if objective.own_method is not None:
        return Choice(*objective.own_method, 0.0, 0)
    if geometry.lattice is not None:
        reason = "with l1 costs, transport on a grid is a flow between neighbouring cells"
        return Choice("grid_flow", reason, *predict("grid_flow", n, m, is_dense=False))
    if geometry.is_separable and is_square(geometry) and max(n, m) <= LARGEST_IMAGE:
        reason = "an auction from coarse to fine needs few cells for each"
        return Choice("auction", reason, *predict("auction", n, m, is_dense=False))
    if geometry.is_separable:
        reason = "a grid's Gibbs kernel is applied axis by axis, without an n x n array"
        return Choice("sinkhorn", reason, 0.0, 200 * (n + m))
    if geometry.is_dense and is_small(n, m):
        reason = "a compiled simplex on all arcs is fastest for so few"
        return Choice("small_simplex", reason, *predict("small_simplex", n, m, is_dense=True))
    restricted = predict("restricted_simplex", n, m, is_dense=geometry.is_dense)
    if geometry.is_dense:
        exact = predict("exact", n, m, is_dense=True)
        if MARGIN * exact[0] <= restricted[0]:
            return Choice("exact", "the network simplex is fastest at this size", *exact)
    elif is_flat(geometry):
        auction = predict("auction", n, m, is_dense=False)
        if auction[0] <= restricted[0]:
            reason = "an auction from coarse to fine needs few columns of each point"
            return Choice("auction", reason, *auction)
    elif n * m > LARGEST_RESTRICTED or not geometry.has_rows:
        reason = "too large for a simplex, or far away; float32 sweeps need O(n + m) memory"
        return Choice("sinkhorn", reason, 50 * restricted[0], 200 * (n + m))
    reason = "a simplex on the arcs that crude entropic potentials select is fastest at this size"
    return Choice("restricted_simplex", reason, *restricted)
