"""epsilot: discrete optimal transport with a proven bound on the error.

>>> import numpy as np, epsilot
>>> M = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
>>> result = epsilot.solve(M, a=[0.1, 0.2, 0.3, 0.4], b=[0.4, 0.3, 0.2, 0.1], eps=0.01)
>>> round(result.value, 6), round(result.lower_bound, 6)
(1.0, 1.0)
"""

from __future__ import annotations

from importlib import import_module
from inspect import isfunction
from typing import TYPE_CHECKING

from .version import __version__

if TYPE_CHECKING:
    from . import applications as applications
    from . import distributed, finite_sum, theory
    from . import jax as jax
    from . import pot as pot
    from . import scipy as scipy
    from . import torch as torch
    from .api.barycenter import barycenter, barycenter_grid, barycenter_sample
    from .api.batch import solve_batch, solve_sample_batch
    from .api.certify import certify, round_plan
    from .api.graph import solve_graph
    from .api.grid import solve_grid
    from .api.gromov import gromov_bounds, solve_gromov
    from .api.methods import methods
    from .api.pairwise import pairwise
    from .api.sample import solve_sample
    from .api.solve import exact, solve
    from .api.warmup import warmup
    from .api.wasserstein import Distance, wasserstein, wasserstein_1d, wasserstein_grid
    from .applications.color_transfer import ColorTransfer as ColorTransfer
    from .applications.domain_adaptation import DomainAdapter as DomainAdapter
    from .applications.pairwise_transport import PairwiseTransport as PairwiseTransport
    from .applications.shape_matching import ShapeMatcher as ShapeMatcher
    from .barycenters.free_support import SampleBarycenterResult
    from .barycenters.result import BarycenterResult
    from .engine.batch.result import BatchResult
    from .engine.certificate import Certificate
    from .engine.result import Result
    from .errors import (
        CertificateError,
        ConvergenceWarning,
        Infeasible,
        Interrupted,
        InvalidProblem,
        NotConverged,
        UnknownMethod,
        UnknownOption,
        UnsavedWarning,
    )
    from .geometry import Dense, Geometry, Grid, PointCloud, Sparse
    from .graphs.result import GraphResult
    from .gromov.matrix_bounds import GromovBounds
    from .gromov.result import GromovResult
    from .problems.plan import Plan
    from .problems.work import Record, Status

# Public names load their module on first use, so that importing the package is fast.
_HOMES = {
    "applications.color_transfer": ("ColorTransfer",),
    "applications.domain_adaptation": ("DomainAdapter",),
    "api.solve": ("exact", "solve"),
    "api.warmup": ("warmup",),
    "api.wasserstein": ("Distance", "wasserstein", "wasserstein_1d", "wasserstein_grid"),
    "api.batch": ("solve_batch", "solve_sample_batch"),
    "barycenters.free_support": ("SampleBarycenterResult",),
    "api.barycenter": ("barycenter", "barycenter_grid", "barycenter_sample"),
    "barycenters.result": ("BarycenterResult",),
    "api.certify": ("certify", "round_plan"),
    "api.pairwise": ("pairwise",),
    "engine.certificate": ("Certificate",),
    "errors": (
        "CertificateError",
        "ConvergenceWarning",
        "Infeasible",
        "Interrupted",
        "InvalidProblem",
        "NotConverged",
        "UnknownMethod",
        "UnknownOption",
        "UnsavedWarning",
    ),
    "geometry": ("Dense", "Geometry", "Grid", "PointCloud", "Sparse"),
    "problems.plan": ("Plan",),
    "problems.work": ("Record", "Status"),
    "engine.batch.result": ("BatchResult",),
    "engine.result": ("Result",),
    "api.methods": ("methods",),
    "api.graph": ("solve_graph",),
    "graphs.result": ("GraphResult",),
    "api.grid": ("solve_grid",),
    "api.gromov": ("gromov_bounds", "solve_gromov"),
    "applications.pairwise_transport": ("PairwiseTransport",),
    "applications.shape_matching": ("ShapeMatcher",),
    "gromov.matrix_bounds": ("GromovBounds",),
    "gromov.result": ("GromovResult",),
    "api.sample": ("solve_sample",),
}
#: Public modules.
_MODULES = ("applications", "distributed", "finite_sum", "jax", "pot", "scipy", "theory", "torch")
_HOME = {name: module for module, names in _HOMES.items() for name in names}

# Names that need an extra (estimators, torch, jax) are left out, so that star imports work.
__all__ = [
    "BarycenterResult",
    "BatchResult",
    "Certificate",
    "CertificateError",
    "ConvergenceWarning",
    "Dense",
    "Distance",
    "Geometry",
    "GraphResult",
    "Grid",
    "GromovBounds",
    "GromovResult",
    "Infeasible",
    "Interrupted",
    "InvalidProblem",
    "NotConverged",
    "Plan",
    "PointCloud",
    "Record",
    "Result",
    "SampleBarycenterResult",
    "Sparse",
    "Status",
    "UnknownMethod",
    "UnknownOption",
    "UnsavedWarning",
    "__version__",
    "barycenter",
    "barycenter_grid",
    "barycenter_sample",
    "certify",
    "distributed",
    "exact",
    "finite_sum",
    "gromov_bounds",
    "methods",
    "pairwise",
    "round_plan",
    "solve",
    "solve_batch",
    "solve_graph",
    "solve_grid",
    "solve_gromov",
    "solve_sample",
    "solve_sample_batch",
    "theory",
    "warmup",
    "wasserstein",
    "wasserstein_1d",
    "wasserstein_grid",
]


#: Names that scripts written for POT look for.
_NAMES_OF_POT = ("da", "dist", "emd", "emd2", "sinkhorn", "sinkhorn2", "unif")


def __getattr__(name: str) -> object:
    if name in _HOME:
        value = getattr(import_module(f".{_HOME[name]}", __name__), name)
        if isfunction(value):
            from .engine.request import public

            value = public(value, __name__)
        globals()[name] = value
        return value
    if name in _MODULES:
        return import_module(f".{name}", __name__)
    hint = "; the functions of POT are in epsilot.pot" if name in _NAMES_OF_POT else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{hint}")


def __dir__() -> list[str]:
    return sorted({*__all__, *_HOME})
