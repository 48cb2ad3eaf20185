r"""Solve transport along the edges of a graph: a minimum-cost flow, without a cost of all pairs.

.. math:: \min_{0 \le x \le u} \sum_e c_e x_e \quad \text{outflow}(v) - \text{inflow}(v) = a_v - b_v

Its dual is :math:`\max \sum_v (a_v - b_v) π_v - \sum_e u_e \max(0, π_{s(e)} - π_{t(e)} - c_e)` over
one potential per node. Any potentials prove a bound. With costs of at least 0, some optimal flow
has no cycle, so that no edge carries more than the mass S that moves: edges without a capacity have
the capacity S in this bound.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from numpy.typing import ArrayLike

from ..arguments import check_flag
from ..engine.clock import started
from ..engine.request import Request
from ..graphs.execute import execute
from ..graphs.problem import make_flow_problem
from ..graphs.result import GraphResult
from ..problems.work import Record


def solve_graph(
    G: Any,
    a: ArrayLike | Mapping[Any, float],
    b: ArrayLike | Mapping[Any, float],
    *,
    weight: str = "weight",
    capacity: Any = None,
    directed: bool | None = None,
    normalize: bool = False,
    rtol: float = 1e-9,
    max_seconds: float | None = None,
    progress: bool = False,
    callback: Callable[[Record], object] | None = None,
    checkpoint: str | None = None,
    resume: str | None = None,
    on_limit: str = "warn",
    on_interrupt: str = "return",
) -> GraphResult:
    """Move masses along the edges of a graph at least cost: a minimum-cost flow.

    Parameters
    ----------
    G : networkx graph, or (n, n) scipy.sparse array
        Edges and their costs per unit of mass, at least 0. Stored entries of an array are edges
        from row to column, explicit zeros included.
    a, b : (n,) array-like, or mapping from nodes to masses
        Masses at the nodes before and after, of equal totals. Nodes of a networkx graph have the
        order of ``list(G)``; nodes that a mapping leaves out have none.
    weight : str
        Edge attribute of networkx with the cost; edges without it cost 1.
    capacity : str, number or (n, n) sparse array, optional
        Largest flow of an edge in one direction: an edge attribute of networkx (edges without it
        have no limit), one number for all edges, or an array with an entry for every edge of G.
    directed : bool, optional
        Whether edges lead in one direction only. By default that of a networkx graph; True for an
        array.
    normalize : bool
        Rescale both masses to total 1.
    rtol : float
        Requested gap, relative to the lower bound. The method is exact; it stops at an optimum.
    max_seconds, progress, callback, checkpoint, resume, on_limit, on_interrupt
        As in :func:`solve`.

    Returns
    -------
    GraphResult
        With ``flows`` (sparse), ``potentials`` (one per node), ``value``, ``lower_bound``, ``gap``.

    Raises
    ------
    Infeasible
        If the edges cannot carry the mass. ``sources`` are the nodes of a cut, ``targets`` the
        nodes that its full edges lead to, and ``excess`` is the mass that cannot leave the cut.

    Examples
    --------
    >>> import numpy as np, epsilot
    >>> from scipy.sparse import csr_array
    >>> G = csr_array(np.array([[0, 1, 5], [0, 0, 1], [0, 0, 0]]))
    >>> epsilot.solve_graph(G, [1, 0, 0], [0, 0, 1]).value
    2.0
    """
    check_flag("directed", directed)
    check_flag("normalize", normalize)
    request = Request(
        rtol=rtol,
        max_seconds=max_seconds,
        progress=progress,
        callback=callback,
        checkpoint=checkpoint,
        resume=resume,
        on_limit=on_limit,
        on_interrupt=on_interrupt,
    )
    with started(request.max_seconds) as clock:
        problem = make_flow_problem(G, a, b, weight, capacity, directed, normalize)
        return execute(problem, request, clock)
