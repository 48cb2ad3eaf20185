"""The registry of methods: adding an algorithm takes one file here and one line below."""

from __future__ import annotations

import dataclasses
import difflib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from importlib import import_module

from ..arguments import check_choice, unknown_argument
from ..errors import InvalidProblem, UnknownMethod, UnknownOption
from ..geometry import Geometry
from ..kernels.small_simplex import is_small
from ..wording import LONGEST_SHOWN, shown
from .base import AnySolver
from .method_info import A_PRIORI, APPENDIX_C, MethodInfo, measured_operations
from .options import converted

#: name -> module:class
REGISTRY: dict[str, str] = {
    "sinkhorn": "sinkhorn:Sinkhorn",
    "sinkhorn_newton": "sinkhorn_newton:SinkhornNewton",
    "greenkhorn": "greenkhorn:Greenkhorn",
    "stochastic_sinkhorn": "greenkhorn:StochasticSinkhorn",
    "accelerated_sinkhorn": "accelerated_sinkhorn:AcceleratedSinkhorn",
    "katyusha_sinkhorn": "katyusha_sinkhorn:KatyushaSinkhorn",
    "aam": "aam:AAM",
    "apdagd": "apdagd:APDAGD",
    "apdamd": "apdagd:APDAMD",
    "apdrcd": "apdrcd:APDRCD",
    "apdgcd": "apdrcd:APDGCD",
    "hybrid_primal_dual": "hybrid_primal_dual:HybridPrimalDual",
    "pdasgd": "pdasmd:PDASGD",
    "pdasmd": "pdasmd:PDASMD",
    "packing_lp": "packing_lp:PackingLP",
    "box_newton": "box_newton:BoxNewton",
    "dual_extrapolation": "dual_extrapolation:DualExtrapolation",
    "dijkstra_dfs": "dijkstra_dfs:DijkstraDFS",
    "exact": "exact:Exact",
    "small_simplex": "small_simplex:SmallSimplex",
    "restricted_simplex": "restricted_simplex:RestrictedSimplex",
    "network_simplex": "network_simplex:NetworkSimplex",
    "auction": "auction:Auction",
    "grid_flow": "grid_flow:GridFlow",
    "monotone": "monotone:Monotone",
    "unbalanced_sinkhorn": "unbalanced_sinkhorn:UnbalancedSinkhorn",
    "unbalanced_pdasmd": "unbalanced_pdasmd:UnbalancedPDASMD",
    "clipped_sinkhorn": "unbalanced_sinkhorn:ClippedSinkhorn",
}

#: Methods that "auto" asks for an offer, each with the class of problems for which it does: points
#: on a "line", cells of a "lattice", "small" stored costs, "sparse" costs, "large" costs (all
#: others), "any", and "fallback" where no other method makes an offer. Modules of other classes are
#: not imported.
AUTO: dict[str, str] = {
    "monotone": "line",
    "grid_flow": "lattice",
    "small_simplex": "small",
    "auction": "large",
    "exact": "large",
    "restricted_simplex": "large",
    "network_simplex": "sparse",
    "sinkhorn": "fallback",
}
PROBLEM_CLASSES = ("line", "lattice", "small", "large", "sparse", "any", "fallback")

_classes: dict[str, type[AnySolver]] = {}


@dataclass(frozen=True)
class Method:
    """A row of the table of methods."""

    name: str
    family: str
    paper: str
    year: int
    complexity: str
    exactness: str
    solves_entropic: bool
    measured: str
    options: tuple[str, ...]
    costs: str  # cost types that the method supports


def register(name: str, solver: type[AnySolver], auto: str | None = None) -> None:
    """Add a method of your own.

    Parameters
    ----------
    name : str
        Its name, for ``method=``.
    solver : type
        Its class, which follows the protocol :class:`~epsilot.solvers.base.Solver`.
    auto : str, optional
        Class of problems for which "auto" asks its ``offer`` (see ``AUTO``); None for none.
    """
    if auto is not None:
        check_choice("auto", auto, PROBLEM_CLASSES)
        AUTO[name] = auto
    REGISTRY[name] = f"{solver.__module__}:{solver.__qualname__}"
    _classes[name] = solver


def unregister(name: str) -> None:
    """Remove a method that ``register`` added."""
    for table in (REGISTRY, AUTO, _classes):
        table.pop(name, None)


def auto_methods(
    geometry: Geometry, *, is_fallback: bool = False
) -> list[tuple[str, type[AnySolver]]]:
    """Return the methods that "auto" asks for an offer on a geometry, and their classes."""
    is_stored = geometry.is_dense and not geometry.is_separable
    if is_fallback:
        classes = {"fallback"}
    else:
        is_small_cost = is_stored and is_small(*geometry.shape)
        is_sparse = geometry.allowed is not None
        classes = {"any", "small" if is_small_cost else "sparse" if is_sparse else "large"}
        if geometry.dimension == 1 and geometry.line is not None:
            classes.add("line")
        if geometry.lattice is not None:
            classes.add("lattice")
    return [(name, solver_class(name)) for name, kind in AUTO.items() if kind in classes]


def solver_class(name: str) -> type[AnySolver]:
    """Return the class behind a method name, or suggest near matches."""
    if name in _classes:
        return _classes[name]
    if name not in REGISTRY:
        near = difflib.get_close_matches(name[:LONGEST_SHOWN], REGISTRY, n=3, cutoff=0.5)
        hint = f"did you mean {' or '.join(near)}?" if near else "see epsilot.methods()"
        raise UnknownMethod(
            f"method {shown(name)} is unknown; it must be 'auto' or the name of a method ({hint})."
        )
    module, _, attribute = REGISTRY[name].partition(":")
    _classes[name] = getattr(import_module(f".{module}", __package__), attribute)
    return _classes[name]


def make_solver(
    name: str, options: dict[str, object], keywords: Mapping[str, str] | None = None
) -> AnySolver:
    """Return a solver with its options; reject unknown options and values.

    ``keywords`` are the arguments of the caller, by every name that a user may give them.
    """
    cls = solver_class(name)
    if not options:
        return _by_default(cls)
    check_option_names(name, options, keywords or {})
    solver: AnySolver = cls(**converted(name, cls, options))
    return solver


@cache
def _by_default(cls: type[AnySolver]) -> AnySolver:
    """Return the solver of a class with its default options."""
    return cls()


def check_option_names(
    method: str, options: Mapping[str, object], keywords: Mapping[str, str]
) -> None:
    """Reject options that a method does not have, or with "auto" that no method has."""
    own = () if method == "auto" or not options else _option_names(solver_class(method))
    for option in options:
        if option not in own:
            having = [name for name in REGISTRY if option in _option_names(solver_class(name))]
            if method != "auto" or not having:
                raise _unknown(method, option, own, having, keywords)


def _unknown(
    method: str,
    option: str,
    own: tuple[str, ...],
    having: list[str],
    keywords: Mapping[str, str],
) -> UnknownOption:
    """Return the error for an unknown option, with the option or the argument that may be meant."""
    near = difflib.get_close_matches(option[:LONGEST_SHOWN], [*own, *keywords], n=1)
    if near and near[0] in own:
        return UnknownOption(f"{method} has no option {shown(option)}; did you mean {near[0]}?")
    if having:
        return UnknownOption(
            f"{method} has no option {shown(option)}, which {' and '.join(having[:3])} have "
            f"(leave it out, or pass method={having[0]!r})."
        )
    return unknown_argument("solve", option, keywords)


def appendix_c(name: str) -> dict[str, object]:
    """Return the options with which ``stop="paper"`` ends a method by Appendix C's criterion.

    That is the criterion of Luo, Xie, Huo: η = ε/(4 log n), smoothed marginals, and the plan's
    violation at most ε'/2 with f(X) + φ <= ε/4. Methods whose own papers have another rule take
    it as an option; the others have no rule but this.

    >>> appendix_c("apdagd"), appendix_c("sinkhorn")
    ({'rule': 'violation'}, {})
    """
    cls = solver_class(name)
    if cls.about.rule == A_PRIORI:
        raise InvalidProblem(
            f"{name} solves no entropic problem and ends by itself; Appendix C's criterion is for "
            "the methods whose solves_entropic is True."
        )
    return {"rule": "violation"} if cls.about.rule != APPENDIX_C else {}


def options_of(solver: AnySolver) -> dict[str, object]:
    """Return the options of a solver, or of the one that it replaces."""
    named = solver.named
    return {name: getattr(named, name) for name in _option_names(type(named))}


@cache
def _option_names(cls: type[AnySolver]) -> tuple[str, ...]:
    return tuple(f.name for f in dataclasses.fields(cls))


def methods() -> list[Method]:
    """Return the table of methods: name, family, paper, complexity, exactness, options.

    Examples
    --------
    >>> import epsilot
    >>> [m.name for m in epsilot.methods()][:1]
    ['sinkhorn']
    """
    rows = []
    for name in REGISTRY:
        cls = solver_class(name)
        about: MethodInfo = cls.about
        rows.append(
            Method(
                name=name,
                family=about.family,
                paper=about.paper,
                year=about.year,
                complexity=about.complexity,
                exactness=about.exactness,
                solves_entropic=about.solves_entropic,
                measured=measured_operations(name),
                options=tuple(f.name for f in dataclasses.fields(cls)),
                costs=about.costs,
            )
        )
    return rows
