"""A linear solver for OTT-JAX, with the interface of its Sinkhorn solver.

>>> import numpy as np, jax.numpy as jnp
>>> from ott.geometry.geometry import Geometry
>>> from ott.problems.linear.linear_problem import LinearProblem
>>> from epsilot.adapters.ott import CertifiedSinkhorn
>>> M = jnp.array([[0.0, 1.0], [1.0, 0.0]])
>>> output = CertifiedSinkhorn()(LinearProblem(Geometry(M, epsilon=0.5)))
>>> np.float64(output.matrix).round(3)
array([[0.44, 0.06],
       [0.06, 0.44]])
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from .._types import Array
from ..api.solve import solve
from ..arguments import check_choice
from ..arithmetic import keeping_subnormals
from ..errors import MissingExtra

try:
    import jax
    import jax.numpy as jnp
    from ott.problems.linear.linear_problem import LinearProblem
    from ott.solvers.linear.sinkhorn import SinkhornOutput
except ImportError as error:
    raise MissingExtra("epsilot.adapters.ott", "OTT-JAX", "bench-all") from error

__all__ = ["CertifiedSinkhorn"]


@jax.tree_util.register_static
@dataclass(frozen=True)
class CertifiedSinkhorn:
    """Solve linear problems of OTT to a certified entropic gap.

    It replaces ``ott.solvers.linear.sinkhorn.Sinkhorn``, also as the ``linear_solver`` of other
    solvers. Compiled code calls back: problems are solved on the CPU in float64, with a stored
    cost, and those of a ``vmap`` one after the other.

    Parameters
    ----------
    rtol : float
        Gap, divided by the largest cost and the mass.
    reg_type : {"entropy", "kl"}
        Term of unbalanced problems. "entropy" returns the plan of OTT's solver, "kl" the minimum of
        its ``reg_ot_cost``, which is another plan. Balanced problems have the same plan with both.

    Examples
    --------
    >>> import jax.numpy as jnp
    >>> from ott.geometry.pointcloud import PointCloud
    >>> from ott.problems.linear.linear_problem import LinearProblem
    >>> from epsilot.adapters.ott import CertifiedSinkhorn
    >>> x = jnp.array([[0.0], [1.0], [2.0]])
    >>> problem = LinearProblem(PointCloud(x, x + 0.5, epsilon=0.1))
    >>> output = CertifiedSinkhorn(rtol=1e-8)(problem)
    >>> print(f"{output.primal_cost:.3f}, optimal to {output.errors[0]:.6f}")
    0.250, optimal to 0.000000
    """

    rtol: float = 1e-12
    reg_type: str = "entropy"

    #: Number of errors in an output; other solvers of OTT make room for them.
    outer_iterations = 1

    def __post_init__(self) -> None:
        check_choice("reg_type", self.reg_type, ("entropy", "kl"))

    def __call__(
        self, ot_prob: LinearProblem, init: tuple[Any, Any] | None = None, **keywords: Any
    ) -> SinkhornOutput:
        """Return the potentials of a problem, and the certified gap as the only error.

        ``init`` and ``keywords`` are accepted as OTT passes them, and not needed.
        """
        geometry, dtype = ot_prob.geom, ot_prob.dtype
        n, m = geometry.shape
        f, g, gap, converged = jax.pure_callback(
            partial(_solved, self, (ot_prob.tau_a, ot_prob.tau_b), np.dtype(dtype)),
            (
                jax.ShapeDtypeStruct((n,), dtype),
                jax.ShapeDtypeStruct((m,), dtype),
                jax.ShapeDtypeStruct((), dtype),
                jax.ShapeDtypeStruct((), bool),
            ),
            *map(
                jax.lax.stop_gradient,
                (geometry.cost_matrix, ot_prob.a, ot_prob.b, jnp.asarray(ot_prob.epsilon)),
            ),
            vmap_method="sequential",
        )
        output = SinkhornOutput(
            potentials=(f, g),
            errors=gap[None],
            ot_prob=ot_prob,
            threshold=jnp.asarray(self.rtol, dtype),
            converged=converged,
            inner_iterations=1,
        )
        # The gradient of the optimal cost is that at fixed potentials.
        return output.set_cost(ot_prob, lse_mode=True, use_danskin=True)


def _solved(
    solver: CertifiedSinkhorn, taus: tuple[float, float], dtype: Any, *given: Any
) -> tuple[Array, Array, Array, Array]:
    """Solve a problem; return OTT's potentials, the gap, and whether it is small enough."""
    M, a, b, reg = (np.asarray(z, np.float64) for z in given)
    eta, total = float(reg), max(float(a.sum()), float(b.sum()))
    options: dict[str, Any] = {"reg_type": "kl"}
    with np.errstate(divide="ignore"):  # the potential of a point without mass is -inf
        shifts = [eta * np.log(w) for w in (a, b)]
    if taus == (1.0, 1.0):
        b = b * (a.sum() / b.sum())  # totals differ in the last digit of float32
    else:
        prices = (math.inf if tau == 1.0 else eta * tau / (1 - tau) for tau in taus)
        options["unbalanced"] = tuple(prices)
        if solver.reg_type == "entropy":
            options["reg_type"] = "entropy"
            M = M - eta  # OTT's entropy has no term of the mass
            shifts = [np.where(w > 0, 0.0, -np.inf) for w in (a, b)]
    options["tol"] = solver.rtol * max(float(np.abs(M).max()), eta) * total
    with keeping_subnormals():  # XLA calls back from threads that do not
        found = solve(M, a, b, reg=eta, on_limit="ignore", **options)
    f, g = ((z + shift).astype(dtype) for z, shift in zip(found.potentials, shifts, strict=True))
    return f, g, np.array(found.gap, dtype), np.array(found.converged)
