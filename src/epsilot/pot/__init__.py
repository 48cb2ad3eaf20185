"""POT's functions by POT's names and conventions, solved and certified by epsilot.

``import epsilot.pot as ot`` in the place of ``import ot`` is the only change that a script needs.
The dictionaries of ``log=True`` also hold ``lower_bound`` and ``gap``. Everything that is not
replaced is POT's own function, and calls ours inside.

>>> import epsilot.pot as ot
>>> value, log = ot.emd2([0.5, 0.5], [0.25, 0.75], [[0.0, 1.0], [1.0, 0.0]], log=True)
>>> value, round(log["lower_bound"], 12)
(0.25, 0.25)
"""

from __future__ import annotations

from typing import Any

import ot as _ot

from . import _modules
from ._barycenters import bregman_barycenter as barycenter
from ._batch import solve_batch, solve_sample_batch
from ._entropic import sinkhorn, sinkhorn2
from ._linear import dist, emd, emd2, emd2_1d, emd2_lazy, emd_1d, wasserstein_1d
from ._modules import Installation, UncertifiedWarning
from ._partial import partial_wasserstein, partial_wasserstein2
from ._solvers import solve
from ._unbalanced import sinkhorn_unbalanced, sinkhorn_unbalanced2

__all__ = [
    "Installation",
    "UncertifiedWarning",
    "barycenter",
    "dist",
    "emd",
    "emd2",
    "emd2_1d",
    "emd2_lazy",
    "emd_1d",
    "install",
    "partial_wasserstein",
    "partial_wasserstein2",
    "sinkhorn",
    "sinkhorn2",
    "sinkhorn_unbalanced",
    "sinkhorn_unbalanced2",
    "solve",
    "solve_batch",
    "solve_sample_batch",
    "wasserstein_1d",
]

for _name in (
    "optim.generic_conditional_gradient",  # gromov, weak, and regularisers of da
    "da.sinkhorn_lpl1_mm",
    "partial.partial_wasserstein_lagrange",
):
    _modules.hide_inner_bounds(_name)


def install() -> Installation:
    """Put our functions in the place of POT's inside ``ot``, for libraries that import it.

    Modules that copied a function out of ``ot`` before (``from ot import emd``) keep POT's.

    Returns
    -------
    Installation
        Call its ``undo()`` to put POT's functions back, or use it in a ``with`` statement.

    Examples
    --------
    >>> import ot, epsilot.pot
    >>> with epsilot.pot.install():
    ...     plan, log = ot.emd([], [], [[0.0, 1.0], [1.0, 0.0]], log=True)
    >>> sorted(log)
    ['cost', 'gap', 'lower_bound', 'result_code', 'u', 'v', 'warning']
    """
    return Installation()


def __getattr__(name: str) -> Any:
    return _modules.attribute(name)


def __dir__() -> list[str]:
    return sorted({*__all__, *dir(_ot)})
