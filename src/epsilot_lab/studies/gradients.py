"""Time a transport loss and its gradient beside POT, GeomLoss and OTT, with audits.

    python -m epsilot_lab gradients --out docs/results/gradients
    python -m epsilot_lab gradients match --sizes 64 256

All libraries get the same points, 2-d and 64-d, and return the value and its gradient in the points
of one side. Milliseconds of processor time are medians of interleaved rounds, each framework on one
thread. *Error* is the distance of the value from the certified optimum, relative to it. It shows
where a library computes another quantity than transport. Libraries that are not installed are left
out. A second table has the coupling of a minibatch for flow matching: `match` beside `ot.emd` on
all distances.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import ot
import torch

import epsilot
import epsilot.torch

from ..measuring import in_turns
from .races import Race, Row, run_races

DIMENSIONS = (2, 64)
#: Dimensions of minibatches: points in the plane, and pictures of 32 x 32 in colours.
MATCHED_DIMENSIONS = (2, 3072)
#: Above this size at most three rounds are made.
LARGE = 2048
#: Seconds of a turn: calls that take less are repeated, as training repeats them.
SHORTEST = 0.05
#: Regularisation of entropic libraries, as a share of the mean cost.
SHARE = 0.01
LossCall = Callable[[], tuple[float, Any]]


def leaf(x: Any) -> torch.Tensor:
    return torch.tensor(x, requires_grad=True)


def ours(x: Any, y: Any, reg: float) -> LossCall:
    def run() -> tuple[float, Any]:
        points = leaf(x)
        value = epsilot.torch.transport_cost(points, torch.from_numpy(y), n_threads=1)
        value.backward()
        return value.item(), points.grad.numpy()

    return run


def pot(x: Any, y: Any, reg: float) -> LossCall:
    weights = torch.full((len(x),), 1 / len(x), dtype=torch.float64)

    def run() -> tuple[float, Any]:
        points = leaf(x)
        value = ot.emd2(weights, weights, ot.dist(points, torch.from_numpy(y)), numItermax=10**8)
        value.backward()
        return value.item(), points.grad.numpy()

    return run


def our_divergence(x: Any, y: Any, reg: float) -> LossCall:
    def run() -> tuple[float, Any]:
        points = leaf(x)
        value = epsilot.torch.divergence(points, torch.from_numpy(y), reg, n_threads=1)
        value.backward()
        return value.item(), points.grad.numpy()

    return run


def geomloss(x: Any, y: Any, reg: float) -> LossCall:
    from geomloss import SamplesLoss

    # Its cost is half the square, so that values and blur² are half as large.
    loss = SamplesLoss("sinkhorn", p=2, blur=(reg / 2) ** 0.5, scaling=0.9, backend="tensorized")

    def run() -> tuple[float, Any]:
        points = leaf(x)
        value = 2 * loss(points, torch.from_numpy(y))
        value.backward()
        return value.item(), points.grad.numpy()

    return run


def ott(x: Any, y: Any, reg: float) -> LossCall:
    import jax
    from ott.geometry.pointcloud import PointCloud
    from ott.tools.sinkhorn_divergence import sinkhorn_divergence

    jax.config.update("jax_enable_x64", True)

    def loss(points: Any, others: Any) -> Any:
        found = sinkhorn_divergence(PointCloud, points, others, epsilon=reg)
        return found[0] if isinstance(found, tuple) else found.divergence

    both = jax.jit(jax.value_and_grad(loss))
    others = jax.numpy.asarray(y)

    def run() -> tuple[float, Any]:
        value, slope = jax.block_until_ready(both(jax.numpy.asarray(x), others))
        return float(value), np.asarray(slope)

    return run


#: name -> how it is prepared, the package it needs, the largest size at which it is run
LIBRARIES: dict[str, tuple[Callable[[Any, Any, float], LossCall], str, int]] = {
    "epsilot": (ours, "epsilot", 4096),
    "ot.emd2": (pot, "ot", 4096),
    "epsilot divergence": (our_divergence, "epsilot", 1024),
    "GeomLoss divergence": (geomloss, "geomloss", 1024),
    "OTT divergence": (ott, "ott", 1024),
}


def losses(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield a row for each library on clouds of n points in d dimensions."""
    torch.set_num_threads(1)
    for d in DIMENSIONS:
        for n in sizes:
            rng = np.random.default_rng([n, d])
            x, y = rng.normal(size=(n, d)), rng.normal(size=(n, d)) + 0.5
            result = epsilot.solve_sample(x, y, rtol=1e-9)
            plan = result.plan_operator.tosparse()
            slope = 2 * (plan.sum(axis=1)[:, None] * x - plan @ y)
            ready = {
                name: prepare(x, y, SHARE * 2 * d)
                for name, (prepare, package, largest) in LIBRARIES.items()
                if n <= largest and find_spec(package) is not None
            }
            for call in ready.values():
                call()
            runs = in_turns(ready, rounds if n < LARGE else min(rounds, 3), SHORTEST)
            base = runs["ot.emd2"].median.processor
            for name, run in runs.items():
                assert run.result is not None
                value, found = run.result
                took = run.median.processor
                yield (
                    *(str(d), str(n), name, f"{1e3 * took:.2f}", f"{took / base:.2f}"),
                    f"{abs(value - result.value) / result.value:.1e}",
                    f"{np.linalg.norm(found - slope) / np.linalg.norm(slope):.1e}",
                )


def matches(sizes: Sequence[int], rounds: int) -> Iterator[Row]:
    """Yield rows on the coupling of two minibatches of n points in d dimensions."""
    torch.set_num_threads(1)
    for d in MATCHED_DIMENSIONS:
        for n in sizes:
            rng = np.random.default_rng([n, d])
            x, y = (torch.from_numpy(rng.normal(size=(n, d)).astype(np.float32)) for _ in range(2))
            calls = {"match": partial(_paired, x, y), "ot.emd": partial(_planned, x, y)}
            for call in calls.values():
                call()
            runs = in_turns(calls, rounds if n < LARGE else min(rounds, 3), SHORTEST)
            took, base = (runs[name].median.processor for name in calls)
            plan = runs["ot.emd"].result
            partners = runs["match"].result, torch.from_numpy(plan.argmax(axis=1))
            value, other = (
                ((x.double() - y[j].double()) ** 2).sum(-1).mean().item() for j in partners
            )
            apart = f"{(value - other) / other:.0e}"
            yield (
                str(d),
                str(n),
                f"{1e3 * took:.2f}",
                f"{1e3 * base:.2f}",
                f"{took / base:.2f}",
                apart,
            )


def _paired(x: Any, y: Any) -> Any:
    return epsilot.torch.match(x, y, n_threads=1)


def _planned(x: Any, y: Any) -> Any:
    costs = (torch.cdist(x, y) ** 2).numpy().astype(np.float64)
    weights = np.full(len(x), 1 / len(x))
    return ot.emd(weights, weights, costs, numItermax=10**8)


TABLES = {
    "losses": Race(
        "Transport losses, forward and backward",
        ("d", "n", "loss", "ms", "of ot.emd2", "error of value", "of gradient"),
        losses, (64, 128, 256, 512, 1024, 2048, 4096), (16,), 5,
    ),
    "match": Race(
        "Couplings of minibatches",
        ("d", "n", "match, ms", "ot.emd, ms", "ratio", "cost above ot.emd's"),
        matches, (64, 256, 1024, 4096), (16,), 5,
    ),
}  # fmt: skip


def main(argv: Sequence[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    run_races("gradients", TABLES, __doc__, argv)
