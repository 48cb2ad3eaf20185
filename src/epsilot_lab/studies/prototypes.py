"""Compare iterations and operations with those of independent prototypes in NumPy.

Configurations are the methods with the options that a prototype ran. Cells map (label, n, ε) to
its (iterations, operations) on the paper's synthetic images. The direct methods are driven here as
their prototypes were, with the same schedule of certificates and the same charge for each.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np
from scipy.special import entr

from epsilot.problems.balanced import Transport
from epsilot.problems.problem import Additive, Entropic, Problem, make_problem
from epsilot.solvers.box_newton import BoxNewton
from epsilot.solvers.dijkstra_dfs import DijkstraDFS
from epsilot.solvers.dual_extrapolation import DualExtrapolation
from epsilot.solvers.packing_lp import PackingLP

from ..instances import Instance
from ..measuring import timed
from ..store import Line

#: (label, n, ε) -> (iterations, operations)
Cells = dict[tuple[str, int, float], tuple[float, float]]

# -- the Sinkhorn family ---------------------------------------------------------------------------

_SINKHORN_SIZES = (36, 64, 100, 144)
#: label -> (method and options, ε -> cells by size), with the paper's stop
_SINKHORN: dict[str, tuple[dict[str, Any], dict[float, list[tuple[int, float]]]]] = {
    "Sinkhorn": ({"method": "sinkhorn"}, {
        0.2: [(202, 1.4e6), (179, 3.8e6), (195, 1.0e7), (212, 2.3e7)],
        0.05: [(1483, 1.0e7), (2364, 5.0e7), (1265, 6.4e7), (1819, 1.9e8)],
        0.02: [(6258, 4.2e7), (6611, 1.4e8), (4937, 2.5e8), (5052, 5.3e8)],
    }),
    "Greenkhorn": ({"method": "greenkhorn"}, {
        0.2: [(3958, 2.7e6), (6959, 8.3e6), (10012, 1.9e7), (18189, 4.9e7)],
        0.05: [(15411, 1.0e7), (43235, 5.1e7), (51913, 9.6e7), (83414, 2.2e8)],
        0.02: [(37319, 2.5e7), (111384, 1.3e8), (154048, 2.9e8), (199635, 5.3e8)],
    }),
    "Stochastic Sinkhorn": ({"method": "stochastic_sinkhorn"}, {
        0.2: [(3389, 2.5e6), (7610, 1.0e7), (12492, 2.6e7), (20445, 6.1e7)],
        0.05: [(21100, 1.6e7), (49508, 6.5e7), (73636, 1.5e8), (93852, 2.8e8)],
        0.02: [(52663, 3.9e7), (135298, 1.8e8), (208097, 4.3e8), (235926, 7.0e8)],
    }),
    "Accelerated, printed": ({"method": "accelerated_sinkhorn", "variant": "printed"}, {
        0.2: [(228, 5.4e6), (363, 2.6e7), (425, 7.4e7), (577, 2.1e8)],
        0.05: [(903, 2.1e7), (1469, 1.1e8), (1463, 2.5e8), (2026, 7.3e8)],
        0.02: [(1841, 4.3e7), (2451, 1.8e8), (2988, 5.2e8), (3992, 1.4e9)],
    }),
    "Accelerated, corrected": ({"method": "accelerated_sinkhorn"}, {
        0.2: [(202, 4.8e6), (179, 1.3e7), (195, 3.4e7), (212, 7.6e7)],
        0.05: [(916, 2.2e7), (1653, 1.2e8), (1264, 2.2e8), (1819, 6.5e8)],
        0.02: [(1840, 4.3e7), (2510, 1.8e8), (3088, 5.4e8), (4509, 1.6e9)],
    }),
    "AAM dual, line search": ({"method": "aam", "variant": "dual", "search": "line_search"}, {
        0.2: [(48, 1.2e6), (56, 4.6e6), (60, 1.0e7), (67, 3.0e7)],
        0.05: [(185, 5.2e6), (203, 1.9e7), (265, 4.9e7), (240, 9.3e7)],
        0.02: [(332, 1.0e7), (359, 3.3e7), (547, 1.2e8), (529, 2.4e8)],
    }),
    "AAM primal-dual, line search": (
        {"method": "aam", "variant": "primal_dual", "search": "line_search"}, {
        0.2: [(21, 7.1e5), (41, 3.8e6), (41, 9.2e6), (31, 1.5e7)],
        0.05: [(101, 3.4e6), (131, 1.4e7), (121, 3.1e7), (141, 7.7e7)],
        0.02: [(231, 8.4e6), (291, 3.4e7), (281, 7.7e7), (331, 1.7e8)],
    }),
    "AAM primal-dual, backtracking": (
        {"method": "aam", "variant": "primal_dual", "search": "backtracking"}, {
        0.2: [(31, 7.4e5), (41, 3.1e6), (41, 7.4e6), (41, 1.5e7)],
        0.05: [(121, 2.9e6), (161, 1.2e7), (151, 2.8e7), (161, 6.2e7)],
        0.02: [(301, 7.3e6), (401, 3.1e7), (391, 7.3e7), (421, 1.6e8)],
    }),
}  # fmt: skip

# -- the accelerated family ------------------------------------------------------------------------

#: n, method, option, then for each ε iterations, operations and the largest gap ÷ ε, with the
#: paper's stop (rule V; "duality" is rule D).
_ACCELERATED_PAPER = """
eps                                   | 0.2               | 0.05              | 0.02
36  apdagd violation                  | 136   6.5e6 0.009 | 572   2.8e7 0.008 | 1432  6.9e7  0.007
36  apdamd                            | 145   6.9e6 0.009 | 621   3.0e7 0.008 | 1557  7.5e7  0.007
36  hybrid_primal_dual accelerated    | 416   6.2e6 0.047 | 1715  2.6e7 0.040 | 4358  6.5e7  0.036
36  hybrid_primal_dual line_search    | 95    3.3e6 0.044 | 381   1.3e7 0.035 | 954   3.3e7  0.033
36  apdrcd                            | 6.1e4 3.4e7 0.008 | 2.8e5 1.6e8 0.007 | 6.9e5 3.8e8  0.007
36  apdgcd                            | 5.4e4 6.5e8 0.006 | 4.9e5 5.9e9 0.010
144 apdagd violation                  | 153   1.1e8 0.010 | 652   4.8e8 0.007 | 1671  1.2e9  0.007
144 apdagd duality                    | 39    3.6e7 0.093 | 174   1.4e8 0.078 | 444   3.4e8  0.070
144 apdamd                            | 178   1.3e8 0.010 | 781   5.7e8 0.007 | 1961  1.4e9  0.007
144 hybrid_primal_dual accelerated    | 867   2.0e8 0.064 | 3776  8.7e8 0.041 | 9557  2.2e9  0.040
144 hybrid_primal_dual line_search    | 100   5.4e7 0.061 | 432   2.3e8 0.039 | 1094  5.9e8  0.037
144 apdrcd                            | 5.4e5 1.2e9 0.010 | 2.3e6 5.2e9 0.007 | 6.0e6 1.3e10 0.006
"""
#: With the certificate (rule G), at the published η.
_ACCELERATED_CERTIFICATE = """
eps                                   | 0.05              | 0.02
144 apdagd                            | 45    4.1e7 0.61  | 158   1.3e8 0.73
144 apdamd                            | 86    7.5e7 0.67  | 333   2.6e8 0.74
144 apdrcd                            | 1.5e5 3.5e8 0.61  | 5.3e5 1.2e9 0.72
144 hybrid_primal_dual plain          | 259   7.6e7 0.84  | 665   1.7e8 0.87
144 hybrid_primal_dual line_search    | 31    2.4e7 0.81  | 74    5.1e7 0.83
"""
_OPTION_NAMES = {"apdagd": "rule", "hybrid_primal_dual": "form"}


def _parsed(table: str) -> tuple[dict[str, dict[str, Any]], Cells]:
    """Return configurations and cells of a text table."""
    head, *rows = ([part.split() for part in row.split("|")] for row in table.split("\n")[1:-1])
    configurations: dict[str, dict[str, Any]] = {}
    cells: Cells = {}
    for (n, method, *option), *numbers in rows:
        label = " ".join([method, *option])
        words = {_OPTION_NAMES[method]: option[0]} if option else {}
        configurations[label] = {"method": method, **words}
        for (eps,), (iterations, operations, _) in zip(head[1:], numbers, strict=False):
            cells[label, int(n), float(eps)] = float(iterations), float(operations)
    return configurations, cells


# -- the direct family -----------------------------------------------------------------------------

_SMALL, _LARGE = (4, 6, 8, 10, 12), (16, 20, 28)  # image sides

#: (method, ε) -> (iterations, operations) of a prototype by image side.
_VERIFIED: dict[tuple[str, float], list[tuple[float, float] | None]] = {
    ("DE-adapt", 0.2): [(20, 2.4e5), (20, 1.2e6), (20, 3.9e6), (20, 9.5e6), (20, 2.0e7)],
    ("DE-adapt", 0.05): [(30, 4.4e5), (40, 2.9e6), (50, 1.1e7), (50, 2.8e7), (50, 5.6e7)],
    ("DE-adapt", 0.02): [(50, 9.2e5), (60, 4.8e6), (90, 2.4e7), (80, 5.3e7), (90, 1.2e8)],
    ("DE-adapt", 0.005): [(90, 1.7e6), (90, 8.0e6), (150, 4.7e7), (130, 8.6e7), (190, 2.7e8)],
    ("LMR", 0.2): [(5, 1.7e4), (6, 8.9e4), (9, 4.5e5), (8, 1.1e6), (7, 1.4e6)],
    ("LMR", 0.05): [(6, 2.2e4), (10, 1.3e5), (17, 7.5e5), (22, 2.7e6), (24, 5.0e6)],
    ("LMR", 0.02): [(7, 2.4e4), (10, 1.4e5), (18, 7.7e5), (25, 2.7e6), (28, 6.2e6)],
    ("LMR", 0.005): [None, None, (20, 9.1e5), None, (30, 6.0e6)],
    ("PR", 0.2): [(15, 1.6e4), (11, 5.9e4), (16, 2.3e5), (25, 8.5e5), (10, 8.5e5)],
    ("PR", 0.05): [(78, 5.8e4), (84, 3.0e5), (83, 9.6e5), (155, 4.3e6), (123, 6.7e6)],
    ("PR", 0.02): [(193, 1.4e5), (314, 1.1e6), (252, 2.7e6), (402, 1.1e7), (289, 1.6e7)],
    ("PR", 0.005): [None, None, (2161, 2.1e7), None, (1663, 8.3e7)],
    ("PK-fast", 0.2): [
        (3780, 1.7e5), (12920, 5.8e5), (40920, 1.8e6), (99960, 4.5e6), (1.0e5, 4.6e6)],
    ("PK-fast", 0.05): [
        (64764, 2.7e6), (4.3e5, 1.8e7), (1.1e6, 4.3e7), (2.0e6, 8.2e7), (5.3e6, 2.2e8)],
    ("PK-fast", 0.02): [
        (2.4e5, 9.7e6), (1.6e6, 6.5e7), (5.1e6, 2.0e8), (1.2e7, 5.0e8), (2.6e7, 1.0e9)],
    ("PK-fast", 0.005): [None, None, (3.2e7, 1.3e9), None, (1.6e8, 6.4e9)],
    ("BCN-fast", 0.2): [(0, 7.9e3), (0, 4.0e4), (0, 1.3e5), (0, 3.1e5), (0, 6.4e5)],
    ("BCN-fast", 0.05): [(6, 6.9e4), (8, 3.6e5), (8, 1.1e6), (8, 2.9e6), (6, 4.3e6)],
    ("BCN-fast", 0.02): [(18, 3.0e5), (22, 1.4e6), (28, 5.0e6), (30, 1.2e7), (20, 1.8e7)],
    ("BCN-fast", 0.005): [(88, 1.5e6), (102, 1.4e7), (136, 4.7e7), (166, 8.7e7), (126, 2.3e8)],
    ("DE-pub", 0.2): [(460, 6.4e6), (490, 3.4e7), (530, 1.2e8), (500, 2.8e8), (610, 7.4e8)],
    ("DE-pub", 0.05): [(1770, 2.6e7), (2360, 1.8e8), (2820, 6.9e8), (2770, 1.6e9), (3270, 4.1e9)],
    ("DE-pub", 0.02): [(2800, 4.5e7), (4190, 3.2e8), (4820, 1.2e9), (5390, 3.4e9), (6600, 8.7e9)],
    ("DE-sharp", 0.2): [(40, 4.6e5), (40, 2.3e6), (40, 7.5e6), (40, 1.9e7), (40, 3.9e7)],
    ("DE-sharp", 0.05): [(100, 1.3e6), (140, 8.8e6), (150, 3.0e7), (160, 8.2e7), (190, 2.0e8)],
    ("DE-sharp", 0.02): [(200, 2.9e6), (250, 1.7e7), (310, 7.0e7), (320, 1.8e8), (370, 4.3e8)],
    ("LMR-pub", 0.2): [(5, 1.8e4), (9, 1.3e5), (12, 4.9e5), (14, 1.6e6), (10, 1.8e6)],
    ("LMR-pub", 0.05): [(6, 2.2e4), (10, 1.4e5), (18, 7.5e5), (24, 2.9e6), (29, 5.1e6)],
    ("LMR-pub", 0.02): [(6, 2.2e4), (10, 1.4e5), (18, 8.2e5), (23, 2.9e6), (28, 5.9e6)],
    ("PK-pub", 0.2): [(5.3e5, 2.1e7), (1.6e6, 6.5e7), (3.0e6, 1.2e8), None, (9.0e6, 3.7e8)],
    ("PK-pub", 0.05): [(9.4e6, 3.8e8), (1.1e8, 4.3e9), (1.5e8, 6.1e9), None, (1.3e9, 5.2e10)],
    ("PK-pub", 0.02): [(4.6e7, 1.8e9), None, None, None, None],
    ("PK-safe", 0.2): [
        (10584, 4.7e5), (25840, 1.2e6), (61380, 2.8e6), (1.5e5, 6.7e6), (2.1e5, 9.3e6)],
    ("PK-safe", 0.05): [
        (2.4e5, 9.7e6), (1.6e6, 6.5e7), (3.9e6, 1.6e8), (7.3e6, 3.0e8), (2.0e7, 8.0e8)],
    ("PK-safe", 0.02): [
        (1.2e6, 4.6e7), (5.9e6, 2.4e8), (1.9e7, 7.5e8), (4.6e7, 1.8e9), (9.5e7, 3.8e9)],
    ("BCN-exact", 0.2): [(0, 6.1e3), (0, 3.1e4), (0, 9.8e4), (0, 2.4e5), (0, 5.0e5)],
    ("BCN-exact", 0.05): [(25, 6.6e5), (31, 6.6e6), (42, 4.2e7), (35, 1.1e8), (23, 2.1e8)],
    ("BCN-exact", 0.02): [(120, 2.8e6), (135, 2.6e7), (196, 1.9e8), (197, 6.3e8), (142, 1.5e9)],
}  # fmt: skip
_VERIFIED_LARGE: dict[tuple[str, float], list[tuple[float, float] | None]] = {
    ("DE-adapt", 0.05): [(55, 2.0e8), (60, 5.5e8), (65, 2.4e9)],
    ("DE-adapt", 0.02): [(105, 4.4e8), (120, 1.3e9), (135, 5.4e9)],
    ("LMR", 0.05): [(31, 2.3e7), (32, 5.4e7), (28, 1.7e8)],
    ("LMR", 0.02): [(57, 3.8e7), (67, 1.1e8), (65, 3.8e8)],
    ("PR", 0.05): [(138, 2.4e7), (134, 5.8e7), (114, 1.8e8)],
    ("PR", 0.02): [(390, 6.7e7), (388, 1.6e8), (475, 7.0e8)],
    ("PK-fast", 0.05): [(6.0e6, 2.5e8), (1.5e7, 6.2e8), None],
    ("BCN-fast", 0.05): [(9, 2.0e7), (9, 4.3e7), (5, 1.0e8)],
    ("BCN-fast", 0.02): [(31, 7.7e7), (41, 2.3e8), (23, 5.7e8)],
}


@dataclass(frozen=True)
class Prototype:
    """A method as its prototype ran."""

    solver: Any
    checks: Callable[[], Iterator[int]]  # steps after which a certificate is tried
    charge: int  # operations of a check, in units of n m
    counter: str | None = None  # field of the state that counts iterations; None: steps


def _every(k: int, start: int) -> Callable[[], Iterator[int]]:
    return lambda: count(start, k)


def _growing() -> Iterator[int]:
    at = 5
    while True:
        yield at
        at = math.ceil(1.3 * at)


def _newton(constants: str, spacing: int) -> Prototype:
    return Prototype(BoxNewton(constants=constants), _every(spacing, 0), 14)


def _extrapolation(constants: str) -> Prototype:
    return Prototype(DualExtrapolation(constants=constants, average=True), _every(10, 10), 28)


def _packing(constants: str) -> Prototype:
    return Prototype(PackingLP(constants=constants), _growing, 24, "n_total")


def _lahn(variant: str, constants: str) -> Prototype:
    solver = DijkstraDFS(variant=variant, constants=constants)
    return Prototype(solver, lambda: iter(()), 14, "n_phases")


SPECIFIED = {
    "DE-adapt": _extrapolation("practical"),
    "DE-sharp": _extrapolation("sharp"),
    "DE-pub": _extrapolation("published"),
    "LMR": _lahn("search", "practical"),
    "LMR-pub": _lahn("search", "published"),
    "PR": _lahn("push_relabel", "practical"),
    "PK-fast": _packing("practical"),
    "PK-safe": _packing("safe"),
    "PK-pub": _packing("published"),
    "BCN-fast": _newton("practical", 2),
    "BCN-exact": _newton("published", 1),
}


def target(name: str, problem: Problem, epsilon: float) -> Additive | Entropic:
    """Return the problem that a configuration solves."""
    geometry, p, q = problem.geometry, problem.p, problem.q
    if name == "BCN-fast":
        return Entropic(geometry, epsilon / (2 * entr(p).sum()), p, q)
    if name == "BCN-exact":
        return Entropic(geometry, epsilon / (4 * math.log(p.size)), p, q)
    return Additive(geometry, epsilon, p, q)


def run(name: str, instance: Instance, epsilon: float, seed: int) -> Line:
    """Run a configuration of a prototype; return its numbers as fields of a line."""
    problem = make_problem(*instance)
    goal = target(name, problem, epsilon)
    rng = np.random.default_rng(seed)
    seconds, found = timed(lambda: _driven(SPECIFIED[name], problem, goal, epsilon, rng))
    iterations, operations, gap = found
    return {
        "has_ended": True,
        "loops": iterations,
        "operations": operations,
        "certificate_operations": 0,
        "gap": gap / epsilon,
        "processor": seconds.processor,
    }


def _driven(
    entry: Prototype, problem: Problem, goal: Any, epsilon: float, rng: np.random.Generator
) -> tuple[float, float, float]:
    """Run a method with its schedule of checks; return iterations, operations and the gap."""
    solver = entry.solver
    state, work = solver.init(goal, rng)
    upper, lower, n_steps, n_checks = math.inf, -math.inf, 0, 0
    checks = entry.checks()
    due = next(checks, -1)
    while True:
        is_done = bool(getattr(state, "is_done", False))
        if n_steps == due or is_done:
            for core, row in solver.candidates(goal, state):
                found = Transport(problem).evaluate(core, row)
                upper, lower = min(upper, found.upper), max(lower, found.lower)
            n_checks += 1
            if upper - lower <= epsilon or is_done:
                break
            due = next(checks, -1)
        work += solver.step(goal, state, rng)
        n_steps += 1
    n, m = problem.shape
    operations = work.operations + n_checks * entry.charge * n * m
    iterations = n_steps if entry.counter is None else getattr(state, entry.counter)
    return iterations, operations, upper - lower


# -- all of them -----------------------------------------------------------------------------------


def _direct_cells() -> Cells:
    return {
        (name, side**2, epsilon): cell
        for verified, sides in ((_VERIFIED, _SMALL), (_VERIFIED_LARGE, _LARGE))
        for (name, epsilon), cells in verified.items()
        for side, cell in zip(sides, cells, strict=False)
        if cell is not None and cell[1] <= MAX_OPERATIONS
    }


def _sinkhorn_cells() -> Cells:
    return {
        (label, n, epsilon): cell
        for label, (_, by_epsilon) in _SINKHORN.items()
        for epsilon, cells in by_epsilon.items()
        for n, cell in zip(_SINKHORN_SIZES, cells, strict=True)
    }


#: Cells of the direct methods with more operations are left out.
MAX_OPERATIONS = 2e9
_PAPER, _CERTIFICATE = _parsed(_ACCELERATED_PAPER), _parsed(_ACCELERATED_CERTIFICATE)
#: label -> method and options, or the name of a configuration of the direct family
CONFIGURATIONS: Mapping[str, dict[str, Any]] = {
    **{label: words for label, (words, _) in _SINKHORN.items()},
    **_PAPER[0],
    **_CERTIFICATE[0],
    **{name: {"specified": name} for name in SPECIFIED},
}
#: (family, stop) -> cells
CELLS: dict[tuple[str, str], Cells] = {
    ("sinkhorn", "paper"): _sinkhorn_cells(),
    ("accelerated", "paper"): _PAPER[1],
    ("accelerated", "certificate"): _CERTIFICATE[1],
    ("direct", "certificate"): _direct_cells(),
}
