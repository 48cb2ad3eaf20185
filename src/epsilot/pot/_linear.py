"""Replace POT's functions for unregularised problems: ``ot.emd`` and its relatives."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from ot.backend import get_backend
from ot.lp.emd_wrap import check_result
from ot.utils import list_to_array

from .._types import Vector
from ..errors import Infeasible, InvalidProblem
from ..geometry import PointCloud, Sparse
from ..geometry.coordinates import as_metric
from ..geometry.inputs import cloud_geometry
from ..metrics import MetricLike
from ._arrays import Arguments, centred, read, read_points, warn_of_threads
from ._modules import UncertifiedWarning, leave_if, original, replaces
from ._optimum import OPTIMAL, UNPROVED, Optimum, optimum, optimum_on_line
from ._tuning import TUNING

#: Names of metrics on a line, by those of POT.
LINE_METRICS: dict[str, MetricLike] = {
    "sqeuclidean": "sqeuclidean",
    "euclidean": "cityblock",
    "cityblock": "cityblock",
}
#: Metrics of stored costs that have the same name and meaning in POT.
METRICS = ("sqeuclidean", "euclidean", "cityblock")


def _cost(given: Arguments) -> Any:
    """Return the cost as a matrix, or as a geometry if it is sparse."""
    if not given.is_sparse:
        return given.M
    i, j, costs, shape = given.nx.sparse_coo_data(given.given[2])
    rows, cols = np.asarray(i, np.int64), np.asarray(j, np.int64)
    return Sparse(rows, cols, np.asarray(costs, np.float64), shape)


def _plan(given: Arguments, found: Optimum) -> Any:
    """Return the plan in the caller's type: dense, or sparse if the cost is."""
    if not given.is_sparse:
        return given.back(found.dense())
    values = (given.back(x) for x in (found.flow, found.i, found.j))
    return given.nx.coo_matrix(*values, shape=found.shape, type_as=given.like)


def _cost_with_gradients(given: Arguments, found: Optimum, u: Vector, v: Vector) -> Any:
    """Return the cost with its gradients in a, b and M: the potentials and the plan."""
    cost = given.back(found.value)
    if given.is_numpy:
        return cost
    if given.is_sparse:
        slope = _sparse_slope(given, found)
    else:
        slope = given.back(found.dense())
    slopes = given.back(u - u.mean()), given.back(v - v.mean()), slope
    return given.nx.set_gradients(cost, given.given, slopes)


def _sparse_slope(given: Arguments, found: Optimum) -> Any:
    """Return the plan with an entry for each stored entry of the cost."""
    i, j, _, (_, m) = given.nx.sparse_coo_data(given.given[2])
    i, j = np.asarray(i, np.int64), np.asarray(j, np.int64)
    values = np.zeros(i.size)
    keys = i * m + j
    order = np.argsort(keys, kind="stable")
    at = np.searchsorted(keys[order], found.i * m + found.j)
    values[order[at]] = found.flow
    parts = (given.back(x) for x in (values, i, j))
    return given.nx.coo_matrix(*parts, shape=found.shape, type_as=given.like)


def _warned(found: Optimum) -> str | None:
    """Warn of a limit as POT does, or of a gap that is round-off; return the sentence."""
    if found.code == OPTIMAL:
        return None
    if found.code != UNPROVED:
        return str(check_result(found.code))
    message = (
        f"the cost {found.value:.6g} has a gap of {found.value - found.lower:.3g}, the round-off "
        "of the largest costs (pass smaller ones, or inf for pairs that are forbidden)."
    )
    warnings.warn(message, UncertifiedWarning, stacklevel=5)
    return message


def _log(given: Arguments, found: Optimum, cost: Any, u: Vector, v: Vector) -> dict[str, Any]:
    """Return POT's dictionary of a solution, with our bounds."""
    return {
        "cost": cost,
        "u": given.back(u),
        "v": given.back(v),
        "warning": _warned(found),
        "result_code": OPTIMAL if found.code == UNPROVED else found.code,
        **found.bounds,
    }


def _solved(
    given: Arguments, M: Any, b: Vector, numItermax: float, center_dual: bool, potentials: Any
) -> tuple[Optimum, Vector, Vector]:
    """Solve for one b; return the potentials centred as the caller wants."""
    limit = numItermax if numItermax < TUNING.default_pivots else np.inf
    start = None
    if potentials is not None:
        f, g = (np.asarray(given.nx.to_numpy(x), np.float64) for x in potentials)
        start = f, g
    found = optimum(M, given.a, b, numItermax=limit, potentials=start)
    if center_dual or not (given.a.all() and b.all()):
        return found, *centred(found.f, found.g, given.a, b)
    return found, found.f, found.g


@replaces("lp.emd")
def emd(
    a: Any,
    b: Any,
    M: Any,
    numItermax: int = TUNING.default_pivots,
    log: bool = False,
    center_dual: bool = True,
    numThreads: Any = 1,
    check_marginals: bool = True,
    potentials_init: Any = None,
) -> Any:
    """Return an optimal plan, a vertex, as :func:`ot.emd` does.

    ``log=True`` also returns ``cost, u, v, warning, result_code, lower_bound, gap``.

    Examples
    --------
    >>> import epsilot.pot as ot
    >>> ot.emd([0.5, 0.5], [0.5, 0.5], [[0.0, 1.0], [1.0, 0.0]])
    array([[0.5, 0. ],
           [0. , 0.5]])
    """
    given = read(a, b, M, check_marginals=check_marginals)
    with _leaving_infeasible(given):
        found, u, v = _solved(
            given, _cost(given), given.b, numItermax, center_dual, potentials_init
        )
    warn_of_threads(numThreads)
    if not given.is_sparse:
        given.warn_of_integers()
    plan = _plan(given, found)
    if log:
        return plan, _log(given, found, found.value, u, v)
    _warned(found)
    return plan


@contextmanager
def _leaving_infeasible(given: Arguments) -> Iterator[None]:
    """Leave refused problems to POT if it reports them by a warning, on which callers rely."""
    try:
        yield
    except InvalidProblem as error:
        leave_if(isinstance(error, Infeasible) or _is_refused_by_pot(given), str(error))
        raise


def _is_refused_by_pot(given: Arguments) -> bool:
    """Tell whether POT reports a problem that we refuse: arcs, or weights without a plan."""
    weights = given.a, given.b
    return given.is_sparse or not all(np.isfinite(w).all() and w.min() >= 0 for w in weights)


@replaces("lp.emd2")
def emd2(
    a: Any,
    b: Any,
    M: Any,
    processes: int = 1,
    numItermax: int = TUNING.default_pivots,
    log: bool = False,
    return_matrix: bool = False,
    center_dual: bool = True,
    numThreads: Any = 1,
    check_marginals: bool = True,
    potentials_init: Any = None,
) -> Any:
    """Return the optimal cost, differentiable in a, b and M, as :func:`ot.emd2` does.

    ``log=True`` also returns ``cost, u, v, warning, result_code, lower_bound, gap``, and the plan
    ``G`` with ``return_matrix=True``. For b of shape (m, k) the result is a list.

    Examples
    --------
    >>> import epsilot.pot as ot
    >>> ot.emd2([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]])
    0.25
    """
    given = read(a, b, M, check_marginals=check_marginals)
    cost = _cost(given)

    def answer(b: Vector) -> Any:
        found, u, v = _solved(given, cost, b, numItermax, center_dual, potentials_init)
        value = _cost_with_gradients(given, found, u, v)
        if not (log or return_matrix):
            _warned(found)
            return value
        entries = _log(given, found, value, u, v)
        if return_matrix:
            entries["G"] = _plan(given, found)
        return [value, entries]

    with _leaving_infeasible(given):
        found = [answer(np.ascontiguousarray(column)) for column in np.atleast_2d(given.b.T)]
    warn_of_threads(numThreads)
    if not given.is_sparse:
        given.warn_of_integers()
    return found if given.b.ndim > 1 else found[0]


@replaces("lp.emd2_lazy")
def emd2_lazy(
    X_a: Any,
    X_b: Any,
    a: Any = None,
    b: Any = None,
    metric: str = "sqeuclidean",
    numItermax: int = TUNING.default_pivots,
    log: bool = False,
    return_matrix: bool = True,
    center_dual: bool = True,
    check_marginals: bool = True,
    potentials_init: Any = None,
) -> Any:
    """Return the optimal cost between points without a stored cost, as ``ot.emd2_lazy`` does."""
    given, x, y = read_points(a, b, X_a, X_b, check_marginals=check_marginals)
    is_known = metric in METRICS and x.ndim == 2 and y.shape[1:] == x.shape[1:]
    leave_if(not is_known, f"metric={metric!r} is POT's own")
    cloud = cloud_geometry(x, y, metric, lazy=True)
    found, u, v = _solved(given, cloud, given.b, numItermax, center_dual, potentials_init)
    given.warn_of_integers()
    slopes = given.back(u - u.mean()), given.back(v - v.mean())
    value = given.nx.set_gradients(given.back(found.value), given.given[:2], slopes)
    if not (log or return_matrix):
        return value
    entries = _log(given, found, value, u, v)
    if return_matrix:
        entries["G"] = _sparse_plan(given, found)
    return value, entries


def _sparse_plan(given: Arguments, found: Optimum) -> Any:
    """Return the plan as a sparse matrix of the caller's type."""
    values = (given.back(found.flow), *map(given.nx.from_numpy, (found.i, found.j)))
    return given.nx.coo_matrix(*values, shape=found.shape, type_as=given.like)


@replaces("lp.emd_1d")
def emd_1d(
    x_a: Any,
    x_b: Any,
    a: Any = None,
    b: Any = None,
    metric: str = "sqeuclidean",
    p: float = 1.0,
    dense: bool = True,
    log: bool = False,
    check_marginals: bool = True,
) -> Any:
    """Return an optimal plan between points on a line, as :func:`ot.emd_1d` does.

    ``log=True`` also returns ``cost, perms_x_a, perms_x_b, lower_bound, gap``.
    """
    leave_if(not log, "no log was asked")
    given, x, y = read_points(a, b, x_a, x_b, check_marginals=check_marginals)
    is_line = x.size == x.shape[0] and y.size == y.shape[0] and not _is_refused_by_pot(given)
    leave_if(not is_line, "the points are not weighted points on a line")
    found = optimum_on_line(x.ravel(), y.ravel(), _line_metric(metric, p), given.a, given.b)
    given.like = list_to_array(x_a, x_b)[0]
    plan = given.back(found.dense()) if dense else _sparse_plan(given, found)
    entries = {"cost": given.back(found.value), **found.bounds}
    entries["perms_x_a"], entries["perms_x_b"] = map(given.nx.from_numpy, (found.i, found.j))
    return plan, entries


@replaces("lp.emd2_1d")
def emd2_1d(
    x_a: Any,
    x_b: Any,
    a: Any = None,
    b: Any = None,
    metric: str = "sqeuclidean",
    p: float = 1.0,
    dense: bool = True,
    log: bool = False,
) -> Any:
    """Return the optimal cost between points on a line, as :func:`ot.emd2_1d` does.

    ``log=True`` also returns ``G, lower_bound, gap``; without it this is POT's closed form.
    """
    if not log:
        options = a, b, metric, p, False, True
        return original(emd_1d)(x_a, x_b, *options)[1]["cost"]
    plan, entries = emd_1d(x_a, x_b, a, b, metric, p, dense, log=True)
    return entries["cost"], {
        "G": plan,
        **{k: entries[k] for k in ("lower_bound", "gap") if k in entries},
    }


def _line_metric(metric: Any, p: float) -> MetricLike:
    """Return the metric on a line that POT means, or leave it to POT."""
    if metric == "minkowski" and p >= 1:
        return power_metric(p)
    leave_if(metric not in LINE_METRICS, f"metric={metric!r} is POT's own")
    return LINE_METRICS[metric]


def power_metric(p: float) -> MetricLike:
    """Return the metric |x - y|^p on a line."""
    return "sqeuclidean" if p == 2 else as_metric("cityblock", p)


@replaces("lp.wasserstein_1d")
def wasserstein_1d(
    u_values: Any,
    v_values: Any,
    u_weights: Any = None,
    v_weights: Any = None,
    p: float = 1,
    require_sort: bool = True,
    return_plans: Any = False,
    log: bool = False,
) -> Any:
    """Return the optimal cost |x - y|^p on a line, as :func:`ot.wasserstein_1d` does.

    ``log=True``, which POT does not have, also returns ``lower_bound`` and ``gap``, one for each
    column of values; without it this is POT's closed form.

    Examples
    --------
    >>> import numpy as np, epsilot.pot as ot
    >>> x, y = np.array([0.0, 1.0]), np.array([1.0, 3.0])
    >>> cost, log = ot.wasserstein_1d(x, y, log=True)
    >>> float(cost), float(log["lower_bound"].round(12))
    (1.5, 1.5)
    """
    options = u_weights, v_weights, p, require_sort, return_plans
    answer = original(wasserstein_1d)(u_values, v_values, *options)
    if not log:
        return answer
    nx = get_backend(u_values, v_values)
    u, v = (np.asarray(nx.to_numpy(x), np.float64) for x in (u_values, v_values))
    weights = [
        None if w is None else np.asarray(nx.to_numpy(w), np.float64)
        for w in (u_weights, v_weights)
    ]
    found = []
    for k in range(1 if u.ndim == 1 else u.shape[1]):
        x, y, a, b = (w if w is None or w.ndim == 1 else w[:, k].copy() for w in (u, v, *weights))
        given, x, y = read_points(a, b, x, y)
        found.append(optimum_on_line(x, y, power_metric(p), given.a, given.b))
    value, lower = np.array([(x.value, x.lower) for x in found]).T.reshape(2, *u.shape[1:])
    return (*(answer if return_plans else (answer,)), {"lower_bound": lower, "gap": value - lower})


@replaces("utils.dist")
def dist(
    x1: Any,
    x2: Any = None,
    metric: Any = "sqeuclidean",
    p: float = 2,
    w: Any = None,
    backend: str = "auto",
    nx: Any = None,
    use_tensor: bool = False,
) -> Any:
    """Return the costs between points, as :func:`ot.dist` does.

    Arrays of float64 of NumPy get them without cancellation: ``sqeuclidean`` sums squared
    differences, where POT subtracts inner products.
    """
    y = x1 if x2 is None else x2
    is_ours = (
        isinstance(metric, str)
        and metric in METRICS
        and backend == "auto"
        and all(type(x) is np.ndarray and x.dtype == np.float64 and x.ndim == 2 for x in (x1, y))
        and np.isfinite(x1).all()
        and np.isfinite(y).all()
        and 0 not in (*x1.shape, *y.shape)
    )
    leave_if(not is_ours, "costs of this kind are POT's own")
    return PointCloud(x1, y, metric).matrix()
