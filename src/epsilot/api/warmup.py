"""Compile kernels ahead of use, for images of machines and for clusters."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from functools import partial

import numpy as np
from scipy.sparse import csr_array

from .._types import Array
from ..arguments import check_choice
from ..display.progress import WarmupBar
from ..kernels.compile_watch import compile_seconds
from ..solvers import REGISTRY
from .barycenter import barycenter, barycenter_grid, barycenter_sample
from .batch import solve_batch, solve_sample_batch
from .certify import certify
from .graph import solve_graph
from .grid import solve_grid
from .gromov import gromov_bounds, solve_gromov
from .pairwise import pairwise
from .sample import solve_sample
from .solve import solve

#: Keywords that a method needs: those of the kind of problem that it solves.
_KEYWORDS: dict[str, dict[str, object]] = {
    "unbalanced_sinkhorn": {"reg": 0.1, "unbalanced": 1.0},
    "unbalanced_pdasmd": {"reg": 0.1, "unbalanced": 1.0},
    "clipped_sinkhorn": {"reg": 0.1, "unbalanced": 1.0, "unbalanced_type": "tv"},
}


def warmup(*names: str, progress: bool = False) -> dict[str, float]:
    """Compile the kernels of public functions and of methods, so that first calls are fast.

    Compiled kernels are kept on disk, in the package's folder or in ``NUMBA_CACHE_DIR``. Later
    processes on machines with the same processor load them. Kernels that are compiled already take
    no time.

    Parameters
    ----------
    *names
        Names of functions (``"solve"``, ``"solve_sample"``, …) and of methods (``"sinkhorn"``, …);
        without names, all functions and all methods.
    progress
        Show a progress bar on a terminal.

    Returns
    -------
    dict
        Seconds of compilation per name, in the order of the names.

    Examples
    --------
    >>> import epsilot
    >>> list(epsilot.warmup("solve", "sinkhorn"))
    ['solve', 'sinkhorn']
    """
    calls = _calls()
    for name in names:
        check_choice("a name of warmup", name, tuple(calls))
    wanted, taken = names or tuple(calls), {}
    with WarmupBar(wanted) if progress else nullcontext() as bar:
        for name in wanted:
            if bar is not None:
                bar.show(name)
            before = compile_seconds()
            calls[name]()
            taken[name] = compile_seconds() - before
    return taken


def _calls() -> dict[str, Callable[[], object]]:
    """Return a small call per name, which compiles its kernels."""
    calls: dict[str, Callable[[], object]] = {
        "solve": _solve,
        "solve_sample": _solve_sample,
        "solve_grid": _solve_grid,
        "solve_graph": _solve_graph,
        "solve_batch": _solve_batch,
        "solve_sample_batch": lambda: solve_sample_batch(_points(3, 8, 2), _points(3, 9, 2)),
        "pairwise": lambda: pairwise(_points(4, 8), _distances(8), normalize=True),
        "barycenter": lambda: barycenter(_points(3, 8), _distances(8), normalize=True),
        "barycenter_grid": lambda: barycenter_grid(_points(3, 6, 6), normalize=True),
        "barycenter_sample": lambda: barycenter_sample([_points(9, 2), _points(8, 2)], 4),
        "solve_gromov": _solve_gromov,
        "gromov_bounds": lambda: gromov_bounds(_distances(8), _distances(9)),
        "certify": lambda: certify(_cost(8, 9), plan=np.full((8, 9), 1 / 72)),
    }
    return calls | {name: partial(_method, name) for name in REGISTRY}


def _points(*shape: int) -> Array:
    points: Array = np.random.default_rng(0).random(shape)
    return points


def _weights(n: int) -> Array:
    weights: Array = _points(n) + 0.1
    weights /= weights.sum()
    return weights


def _cost(n: int, m: int) -> Array:
    cost: Array = np.abs(np.subtract.outer(np.arange(n), np.arange(m)[::-1])) + _points(n, m)
    return cost


def _distances(n: int) -> Array:
    distances: Array = np.abs(np.subtract.outer(np.arange(float(n)), np.arange(float(n))))
    return distances


def _solve() -> None:
    """Solve small and larger costs: assignments, other weights, and the entropic problem."""
    for n in (8, 300):
        solve(_cost(n, n))
        solve(_cost(n, n + 1), _weights(n), _weights(n + 1))
    solve(_cost(8, 9), reg=0.1)


def _solve_sample() -> None:
    """Solve stored and lazy clouds."""
    for n in (8, 300):
        for lazy in (False, True):
            solve_sample(_points(n, 2), _points(n + 1, 2), lazy=lazy)
            solve_sample(_points(n, 2), 1 - _points(n, 2), lazy=lazy, method="auction")
    solve_sample(_points(8, 1), _points(9, 1))


def _solve_grid() -> None:
    """Solve images by both metrics that grids are made for."""
    for metric in ("cityblock", "sqeuclidean"):
        solve_grid(_points(8, 8) + 0.1, _points(8, 8)[::-1] + 0.1, metric=metric, normalize=True)


def _solve_batch() -> None:
    """Solve batches with and without plans and potentials."""
    costs = np.stack([_cost(8, 9)] * 3)
    solve_batch(costs)
    solve_batch(costs, plans=True, potentials=True)


def _solve_graph() -> None:
    """Solve on a graph with and without capacities."""
    graph = csr_array(_distances(5))
    a, b = np.eye(5)[0], np.eye(5)[4]
    for capacity in (None, 0.6):
        solve_graph(graph, a, b, capacity=capacity)


def _solve_gromov() -> None:
    """Couple clouds of equal and of other masses, by both methods."""
    for n in (8, 70):  # those of more points start from coarser ones
        solve_gromov(_points(n, 2), 1 - _points(n, 2), rtol=0.5)
    solve_gromov(_points(8, 2), _points(9, 2), rtol=0.5)
    solve_gromov(_points(8, 2), 1 - _points(8, 2), rtol=0.5, method="boxes")


def _method(name: str) -> None:
    """Solve a tiny problem by a method, within few steps."""
    keywords = {"method": name, "max_iter": 20, "on_limit": "ignore", **_KEYWORDS.get(name, {})}
    if name == "grid_flow":
        image = _points(6, 6) + 0.1
        solve_grid(image, image[::-1], **keywords)  # type: ignore[arg-type]
    elif name == "monotone":
        solve_sample(_points(8, 1), _points(9, 1), **keywords)  # type: ignore[arg-type]
    elif name == "network_simplex":
        M, weights = np.where(np.eye(8) > 0, np.inf, _cost(8, 8)), np.arange(1.0, 9.0)
        for a in (None, weights):  # an assignment, and other masses
            solve(M, a, a, **keywords)  # type: ignore[arg-type]
    else:
        solve(_cost(8, 8), **keywords)  # type: ignore[arg-type]
