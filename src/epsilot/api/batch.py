"""Solve many problems in one call: stacked, in lists, or from an iterator."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from ..arguments import check_choice, check_flag
from ..distributed.cluster import Cluster
from ..engine.batch.engine import BatchConfig, BatchGoal, ClusterSolver, run_batch, solve_here
from ..engine.batch.problems import Many, clouds_of, source_of
from ..engine.batch.result import BatchResult, Pairing
from ..engine.request import Request, check_path, meant_keywords
from ..errors import InvalidProblem
from ..files import StrPath, check_own
from ..geometry.coordinates import as_metric
from ..metrics import MetricLike
from ..problems import kinds
from ..solvers import check_option_names

if TYPE_CHECKING:
    from distributed import Client


def solve_batch(
    M: Many,
    a: Many | None = None,
    b: Many | None = None,
    *,
    eps: float | None = None,
    rtol: float | None = None,
    plans: bool = False,
    potentials: bool = False,
    n_threads: int | None = None,
    client: Client | None = None,
    progress: bool = False,
    on_error: str = "raise",
    normalize: bool = False,
    max_seconds: float | None = None,
    checkpoint: StrPath | None = None,
    resume: StrPath | None = None,
    **options: Any,
) -> BatchResult:
    """Solve many transport problems, each to a certified accuracy.

    Small balanced problems without ``reg`` (up to about 256 rows and columns) are solved exactly
    by compiled code, many at a time. All others go one by one through :func:`solve`, and have its
    bits. No answer depends on the other problems, nor on the number of threads.

    Parameters
    ----------
    M : (n, m) or (k, n, m) array-like, list or iterator of (n, m) array-likes
        One cost for all problems, or one for each; shapes may differ. An iterator is consumed as it
        is solved and nothing of it is kept.
    a, b : (n,) or (k, n) array-like, list or iterator of vectors, optional
        Weights for all problems, or for each; uniform where None.
    eps, rtol : float, optional
        The gap to reach in every problem, as in :func:`solve` (default: ``rtol=0.01``).
    plans, potentials : bool
        Keep the plans, and the dual potentials, of all problems. ``batch[k]`` needs both.
    n_threads : int, optional
        Threads to use; one per core by default.
    client : distributed.Client, optional
        Solve on the workers of a Dask cluster instead, one task per thread; the answers are the
        same.
    progress : bool
        Count the problems on a live line.
    on_error : {"raise", "collect"}
        After all other problems are solved, raise one ``InvalidProblem`` for the refused ones,
        whose ``result`` holds the answers; or leave NaN and a sentence in ``errors``.
    normalize : bool
        Rescale both weights of every problem to total 1.
    max_seconds : float, optional
        Limit of wall time. Problems that are not solved then hold NaN. Ctrl-C does the same.
    checkpoint, resume : path, optional
        Save the answers to a file from time to time; continue from such a file.
    mass : float, optional
        Partial transport in every problem, as in :func:`solve`.
    unbalanced : float or (float or array, float or array), optional
        Unbalanced transport in every problem, as in :func:`solve`.
    unbalanced_type : {"kl", "tv"}
        The marginal penalty, as in :func:`solve`.
    **options
        ``reg``, ``tol``, ``method``, ``seed``, ``max_iter`` and options of the method, as in
        :func:`solve`.

    Returns
    -------
    BatchResult

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> M = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
    >>> batch = epsilot.solve_batch(M, np.eye(3), np.full((3, 3), 1 / 3))
    >>> batch.value.round(3)
    array([1.   , 0.667, 1.   ])
    >>> epsilot.solve_batch(M, np.eye(3), np.full((3, 3), 1 / 3), mass=0.5).value.round(3)
    array([0.167, 0.167, 0.167])
    """
    config = make_config(
        client=client,
        plans=plans,
        potentials=potentials,
        on_error=on_error,
        normalize=normalize,
        checkpoint=checkpoint,
        resume=resume,
        eps=eps,
        rtol=rtol,
        n_threads=n_threads,
        progress=progress,
        max_seconds=max_seconds,
        **options,
    )
    return run_batch(source_of(M, a, b, normalize), config)


# help(solve_batch) shows the keywords above, and those of the kinds of problem.
solve_batch.__signature__ = kinds.with_keywords(  # type: ignore[attr-defined]
    inspect.signature(solve_batch)
)


def solve_sample_batch(
    X_a: Many,
    X_b: Many,
    a: Many | None = None,
    b: Many | None = None,
    *,
    metric: MetricLike = "sqeuclidean",
    p: float = 1.0,
    metric_params: Mapping[str, Any] | None = None,
    normalize: bool = False,
    **keywords: Any,
) -> BatchResult:
    """Solve transport between many pairs of weighted point clouds.

    Parameters
    ----------
    X_a, X_b : (n, d) or (k, n, d) array-like, list or iterator of (n, d) array-likes
        One cloud for all problems, or one for each; sizes may differ.
    a, b : optional
        Weights, as in :func:`solve_batch`.
    metric, p, metric_params
        As in :func:`solve_sample`; "sqeuclidean", "euclidean", "cityblock" and "chebyshev" are
        fastest.
    normalize, **keywords
        As in :func:`solve_batch`.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> X = np.linspace(0, 1, 5)[None, :, None]
    >>> epsilot.solve_sample_batch(X, X + 0.5).value.round(3)
    array([0.25])
    """
    config = make_config(normalize=normalize, **keywords)
    metric = as_metric(metric, p, metric_params)
    return run_batch(clouds_of(X_a, X_b, a, b, metric, normalize), config)


#: Keywords of ``solve`` that make no sense for many problems, and what to do instead.
SINGLE_ONLY = {
    "callback": "it follows one run; pass progress=True to count the problems",
    "potentials_init": "it starts one run; solve the problems one by one with epsilot.solve",
    "on_limit": "a batch warns of a limit, and its status says which problems it ended",
}


def make_config(
    *,
    client: Client | None = None,
    plans: bool = False,
    potentials: bool = False,
    on_error: str = "raise",
    normalize: bool = False,
    checkpoint: StrPath | None = None,
    resume: StrPath | None = None,
    pairing: Pairing | None = None,
    **keywords: Any,
) -> BatchConfig:
    """Check the keywords of a batch, and return its configuration."""
    for name, flag in (("plans", plans), ("potentials", potentials), ("normalize", normalize)):
        check_flag(name, flag)
    check_choice("on_error", on_error, ("raise", "collect"))
    for name, path in (("checkpoint", checkpoint), ("resume", resume)):
        if path is not None:
            check_path(name, path)
    if checkpoint is not None:
        check_own(checkpoint, "epsilot-batch")
    for name, why in SINGLE_ONLY.items():
        if keywords.get(name) is not None:
            raise InvalidProblem(f"{name} was given for many problems; {why}.")
    request = Request.of(keywords | {"on_limit": "ignore"})
    if request.options:
        check_option_names(request.method, request.options, meant_keywords())
    goal = BatchGoal.of(request, plans=bool(plans), potentials=bool(potentials))
    solver = solve_here if client is None else ClusterSolver(Cluster.of(client))
    return BatchConfig(request, goal, on_error, pairing, checkpoint, resume, solver)
