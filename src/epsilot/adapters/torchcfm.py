"""A plan sampler for flow matching, with the constructor and the methods of torchcfm.

>>> import torch
>>> from epsilot.adapters.torchcfm import OTPlanSampler
>>> x = torch.tensor([[0.0], [1.0]])
>>> x0, x1 = OTPlanSampler("exact").sample_plan(x, x.flip(0) + 0.1, replace=False)
>>> (x1 - x0).ravel().round(decimals=6).tolist()
[0.10000000149011612, 0.10000000149011612]
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import ot

from .. import pot
from .._types import Array, Index, Matrix
from ..errors import InvalidProblem, MissingExtra
from ..frameworks.torch import FRONT

try:
    import torch
    from torch import Tensor
except ImportError as error:
    raise MissingExtra("epsilot.adapters.torchcfm", "PyTorch", "torch") from error

__all__ = ["OTPlanSampler"]

#: Plans with less mass than this are replaced by the uniform one, as torchcfm does.
MIN_MASS = 1e-8


class OTPlanSampler:
    """Pair the points of two minibatches by draws from a transport plan, with squared costs.

    It replaces ``torchcfm.optimal_transport.OTPlanSampler``. Draws use ``np.random``: with the same
    seed they are torchcfm's, except where costs are equal. Exact plans of equally many points are
    permutations, and no matrix of them is stored.

    Parameters
    ----------
    method : {"exact", "sinkhorn", "unbalanced", "partial"}
        The plan: of :func:`epsilot.torch.match`, or of ``sinkhorn``, ``sinkhorn_knopp_unbalanced``
        and ``entropic_partial_wasserstein`` of ``epsilot.pot``.
    reg : float
        Weight of the entropy.
    reg_m : float
        Penalty of the marginals of unbalanced plans.
    normalize_cost : bool
        Divide the costs by the largest.
    num_threads : int or "max"
        Number of threads of exact plans, which do not depend on it.
    warn : bool
        Warn if a plan has no mass, and is replaced by the uniform one.

    Examples
    --------
    >>> import torch
    >>> from epsilot.adapters.torchcfm import OTPlanSampler
    >>> x = torch.tensor([[0.0], [1.0], [2.0]])
    >>> OTPlanSampler("exact").get_map(x, x.flip(0)).round(3)
    array([[0.   , 0.   , 0.333],
           [0.   , 0.333, 0.   ],
           [0.333, 0.   , 0.   ]])
    """

    def __init__(
        self,
        method: str,
        reg: float = 0.05,
        reg_m: float = 1.0,
        normalize_cost: bool = False,
        num_threads: int | str = 1,
        warn: bool = True,
    ) -> None:
        plans: dict[str, Callable[..., Any]] = {
            "exact": pot.emd,
            "sinkhorn": partial(pot.sinkhorn, reg=reg),
            "unbalanced": partial(pot.unbalanced.sinkhorn_knopp_unbalanced, reg=reg, reg_m=reg_m),
            "partial": partial(pot.partial.entropic_partial_wasserstein, reg=reg),
        }
        if method not in plans:
            raise InvalidProblem(
                f"Unknown method: {method!r}; it must be one of {', '.join(map(repr, plans))}."
            )
        self.ot_fn = plans[method]
        self.method = method
        self.reg = reg
        self.reg_m = reg_m
        self.normalize_cost = normalize_cost
        self.num_threads: Any = None if num_threads == "max" else num_threads
        self.warn = warn

    def get_map(self, x0: Tensor, x1: Tensor) -> Matrix:
        """Return the plan of two minibatches as an array."""
        if self._is_permutation(x0, x1):
            plan = np.zeros((len(x0), len(x1)))
            plan[np.arange(len(x0)), self._partners(x0, x1)] = 1 / len(x0)
            return plan
        M = torch.cdist(_flat(x0), _flat(x1)) ** 2
        M = (M / M.max() if self.normalize_cost else M).detach().cpu().double().numpy()
        plan = np.asarray(self.ot_fn(ot.unif(len(x0)), ot.unif(len(x1)), M))
        if abs(plan.sum()) < MIN_MASS:
            if self.warn:
                warnings.warn(
                    "Numerical errors in OT plan, reverting to uniform plan.", stacklevel=2
                )
            plan = np.full_like(plan, 1 / plan.size)
        return plan

    def sample_map(self, pi: Matrix, batch_size: int, replace: bool = True) -> tuple[Index, Index]:
        """Draw pairs (i, j) from a plan, with or without replacement."""
        weights = np.ravel(pi)
        drawn = _draws(weights / weights.sum(), batch_size, replace=replace)
        i, j = np.divmod(drawn, np.shape(pi)[1])
        return i, j

    def sample_plan(self, x0: Tensor, x1: Tensor, replace: bool = True) -> tuple[Tensor, Tensor]:
        """Return as many pairs of points as x0 has, drawn from the plan."""
        i, j = self._pairs(x0, x1, replace=replace)
        return x0[i], x1[j]

    def sample_plan_with_labels(
        self,
        x0: Tensor,
        x1: Tensor,
        y0: Tensor | None = None,
        y1: Tensor | None = None,
        replace: bool = True,
    ) -> tuple[Tensor, Tensor, Tensor | None, Tensor | None]:
        """Return pairs of points with their labels, drawn from the plan."""
        i, j = self._pairs(x0, x1, replace=replace)
        return x0[i], x1[j], None if y0 is None else y0[i], None if y1 is None else y1[j]

    def sample_trajectory(self, X: Tensor) -> Array:
        """Return trajectories through minibatches X[:, 0], X[:, 1], ..., drawn from their plans."""
        places = [np.arange(len(X))]
        steps = range(X.shape[1])
        plans = [self.get_map(X[:, t], X[:, t + 1]) for t in steps[:-1]]
        for plan in plans:
            rows = [plan[i] / plan[i].sum() for i in places[-1]]
            places.append(np.array([int(_draws(row, None)) for row in rows]))
        paths = [X[:, t][places[t]].detach().cpu().numpy() for t in steps]
        return np.stack(paths, axis=1)

    def _is_permutation(self, x0: Tensor, x1: Tensor) -> bool:
        """Whether the plan is an assignment."""
        return self.method == "exact" and len(x0) == len(x1)

    def _partners(self, x0: Tensor, x1: Tensor) -> Index:
        """Return the partner of each point in the assignment of least cost."""
        found = FRONT.match(_flat(x0).detach(), _flat(x1).detach(), n_threads=self.num_threads)
        assert isinstance(found, Tensor)
        partners: Index = found.cpu().numpy()
        return partners

    def _pairs(self, x0: Tensor, x1: Tensor, *, replace: bool) -> tuple[Index, Index]:
        """Draw pairs (i, j) from the plan."""
        n = len(x0)
        if not self._is_permutation(x0, x1):
            return self.sample_map(self.get_map(x0, x1), n, replace=replace)
        i = _draws(np.full(n, 1 / n), n, replace=replace)
        return i, self._partners(x0, x1)[i]


def _flat(x: Tensor) -> Tensor:
    """Return points as rows."""
    return x.reshape(len(x), -1)


def _draws(weights: Array, size: int | None, *, replace: bool = True) -> Index:
    """Draw indices from NumPy's global generator, as torchcfm does."""
    drawn: Index = np.random.choice(len(weights), size=size, replace=replace, p=weights)  # noqa: NPY002
    return drawn
