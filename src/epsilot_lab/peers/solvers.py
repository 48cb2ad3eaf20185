"""List the solvers of the benchmark, and call each library.

The clock covers a library's own solve. Conversions of the inputs to its types, and a plan that
it only implies by its potentials, are made off the clock.
"""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from importlib import metadata
from pathlib import Path
from tempfile import gettempdir
from typing import Any, Literal, NamedTuple, TypeAlias

import numpy as np

from epsilot._types import Matrix, Potentials, Vector

# -- how each library is called ----------------------------------------------------------------

#: Arguments and results of other libraries, which rarely state types.
Foreign: TypeAlias = Any

#: More than any solve needs: the time limit ends a solve, not a count.
ITERATIONS = 10**8
OTT_ITERATIONS = 50_000  # it stores one error for every ten of them
GEOMLOSS_ITERATIONS = 30


class PeerSetting(NamedTuple):
    """The target of a solve: a relative accuracy, or η and the l1 marginal error."""

    rtol: float | None = None
    reg: float = 0.0
    tol: float = 0.0
    looseness: float = 1.0  # of the tolerance, for a library that takes none


class PeerAnswer(NamedTuple):
    """A plan of any kind that ``certify`` reads, and potentials if the library has them."""

    plan: Foreign
    potentials: Potentials | None = None


class Prepared(NamedTuple):
    """The call to be timed, and how its outcome is read."""

    solve: Callable[[], Foreign]
    answer: Callable[[Foreign], PeerAnswer]


Adapter = Callable[[Matrix, Vector, Vector, PeerSetting], Prepared]


def epsilot_auto(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return our own solve."""
    return _epsilot(M, a, b, setting, "auto")


def epsilot_restricted(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return our restricted simplex."""
    return _epsilot(M, a, b, setting, "restricted_simplex")


def epsilot_exact(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return our call of the network simplex."""
    return _epsilot(M, a, b, setting._replace(rtol=1e-6), "exact")


def _epsilot(M: Matrix, a: Vector, b: Vector, setting: PeerSetting, method: str) -> Prepared:
    from epsilot import solve

    _compile()

    def run() -> Foreign:
        return solve(M, a, b, rtol=setting.rtol, method=method, on_limit="ignore")

    return Prepared(run, lambda result: PeerAnswer(result.plan_operator, result.potentials))


@cache
def _compile() -> None:
    """Compile what auto may choose, off the clock."""
    from epsilot import solve

    M = np.random.default_rng(0).random((64, 64))
    for method in ("exact", "restricted_simplex"):
        for rtol in (0.1, 1e-6):
            solve(M, rtol=rtol, method=method, on_limit="ignore")


def emd2(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return POT's network simplex, with the plan that it always forms."""
    import ot

    def run() -> Foreign:
        return ot.emd2(a, b, M, numItermax=10**9, log=True, return_matrix=True)

    return Prepared(run, lambda out: PeerAnswer(out[1]["G"], (out[1]["u"], out[1]["v"])))


def pot_sinkhorn(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return POT's Sinkhorn in the kernel domain."""
    import ot

    return _pot(ot.sinkhorn, M, a, b, setting)


def pot_sinkhorn_log(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return POT's Sinkhorn in the logarithmic domain."""
    import ot

    return _pot(ot.bregman.sinkhorn_log, M, a, b, setting)


def _pot(solver: Foreign, M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    tol = _euclidean(setting.tol, a)

    def run() -> Foreign:
        return solver(a, b, M, setting.reg, numItermax=ITERATIONS, stopThr=tol, warn=False)

    return Prepared(run, PeerAnswer)


def _euclidean(tol: float, a: Vector) -> float:
    """Return the l2 error that goes with an l1 error spread evenly over the weights."""
    return tol / float(np.sqrt(a.size))


def regot_bcd(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return regot's block coordinate descent, which is Sinkhorn."""
    return _regot("sinkhorn_bcd", M, a, b, setting)


def regot_lbfgs(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return regot's L-BFGS on the dual."""
    return _regot("sinkhorn_lbfgs_dual", M, a, b, setting)


def regot_splr(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return regot's sparse plus low-rank quasi-Newton method."""
    return _regot("sinkhorn_splr", M, a, b, setting)


def regot_ssns(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return regot's safe and sparse Newton method."""
    return _regot("sinkhorn_ssns", M, a, b, setting)


def _regot(name: str, M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    import regot

    by_columns, tol = np.asfortranarray(M), _euclidean(setting.tol, a)

    def run() -> Foreign:
        solver = getattr(regot, name)
        return solver(by_columns, a, b, setting.reg, tol=tol, max_iter=ITERATIONS)

    return Prepared(run, lambda result: PeerAnswer(np.ascontiguousarray(result.plan)))


def ott(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return OTT-JAX's Sinkhorn in float64, compiled for this shape off the clock."""
    import jax

    jax.config.update("jax_enable_x64", True)
    jax.config.update("jax_compilation_cache_dir", str(Path(gettempdir()) / "epsilot-bench-jax"))
    jax.config.update("jax_persistent_cache_min_compile_time_secs", 0.1)
    arrays = tuple(jax.numpy.asarray(array) for array in (M, a, b))
    compiled = _compiled_ott(M.shape)

    def run() -> Foreign:
        return jax.block_until_ready(compiled(*arrays, setting.reg, setting.tol))

    def answer(potentials: Foreign) -> PeerAnswer:
        f, g = (np.asarray(potential) for potential in potentials)
        return PeerAnswer(np.exp((f[:, None] + g[None, :] - M) / setting.reg))

    return Prepared(run, answer)


_OTT: dict[tuple[int, ...], Foreign] = {}


def _compiled_ott(shape: tuple[int, ...]) -> Foreign:
    """Return OTT's solver for a shape: (M, a, b, η, l1 error) -> potentials."""
    import jax
    from ott.geometry.geometry import Geometry
    from ott.problems.linear.linear_problem import LinearProblem
    from ott.solvers.linear.sinkhorn import Sinkhorn

    def run(M: Foreign, a: Foreign, b: Foreign, reg: Foreign, tol: Foreign) -> Foreign:
        solver = Sinkhorn(threshold=tol, max_iterations=OTT_ITERATIONS)
        out = solver(LinearProblem(Geometry(cost_matrix=M, epsilon=reg), a, b))
        return out.f, out.g

    if shape not in _OTT:
        number = jax.ShapeDtypeStruct((), jax.numpy.float64)
        vectors = [jax.ShapeDtypeStruct((length,), jax.numpy.float64) for length in shape]
        matrix = jax.ShapeDtypeStruct(shape, jax.numpy.float64)
        _OTT[shape] = jax.jit(run).lower(matrix, *vectors, number, number).compile()
    return _OTT[shape]


def geomloss(M: Matrix, a: Vector, b: Vector, setting: PeerSetting) -> Prepared:
    """Return GeomLoss on a cost matrix; it takes a number of iterations, not a tolerance."""
    import torch
    from geomloss import ot

    C, p, q = (torch.from_numpy(array) for array in (M, a, b))
    n_iter = round(GEOMLOSS_ITERATIONS / setting.looseness)

    def run() -> Foreign:
        result = ot.solve(C, reg=setting.reg, a=p, b=q, max_iter=n_iter)
        result.potential_a.sum()
        return result

    return Prepared(run, lambda result: PeerAnswer(result.plan.numpy()))


# -- the solvers of the benchmark --------------------------------------------------------------

OURS = "epsilot"
REFERENCE = "emd2"

Kind = Literal["exact", "certified", "entropic"]


@dataclass(frozen=True)
class BenchmarkSolver:
    """A solver: ``exact`` ones are run once, ``certified`` ones for each accuracy.

    ``entropic`` ones know no accuracy: they are tuned over values of η and tolerances, and the
    fastest run that turned out accurate enough counts.
    """

    name: str
    label: str
    kind: Kind
    adapter: str  # module:function, imported by the process that runs it
    package: str  # as it is imported
    distribution: str  # as it is installed
    largest: int | None = None

    @property
    def is_installed(self) -> bool:
        """Tell whether its package can be imported."""
        return importlib.util.find_spec(self.package) is not None

    @property
    def version(self) -> str:
        """Return the version of its package."""
        return metadata.version(self.distribution) if self.is_installed else "not installed"


def _ours(name: str, label: str, kind: Kind, function: str, **more: object) -> BenchmarkSolver:
    adapter = f"epsilot_lab.peers.solvers:{function}"
    return BenchmarkSolver(name, label, kind, adapter, "epsilot", "epsilot", **more)  # type: ignore[arg-type]


def _peer(name: str, label: str, function: str, package: str, distribution: str) -> BenchmarkSolver:
    adapter = f"epsilot_lab.peers.solvers:{function}"
    kind: Kind = "exact" if name == REFERENCE else "entropic"
    return BenchmarkSolver(name, label, kind, adapter, package, distribution)


#: Our variants show what auto chooses between, up to the sizes where the choice is clear.
SOLVERS: dict[str, BenchmarkSolver] = {
    solver.name: solver
    for solver in (
        _ours(OURS, "epsilot", "certified", "epsilot_auto"),
        _peer(REFERENCE, "ot.emd2", "emd2", "ot", "POT"),
        _ours("epsilot-exact", "epsilot exact", "exact", "epsilot_exact", largest=1024),
        _ours(
            "epsilot-restricted",
            "epsilot restricted_simplex",
            "certified",
            "epsilot_restricted",
            largest=512,
        ),
        _peer("sinkhorn", "ot.sinkhorn", "pot_sinkhorn", "ot", "POT"),
        _peer("sinkhorn_log", "ot sinkhorn_log", "pot_sinkhorn_log", "ot", "POT"),
        _peer("regot-bcd", "regot BCD", "regot_bcd", "regot", "regot"),
        _peer("regot-lbfgs", "regot L-BFGS", "regot_lbfgs", "regot", "regot"),
        _peer("regot-splr", "regot SPLR", "regot_splr", "regot", "regot"),
        _peer("regot-ssns", "regot SSNS", "regot_ssns", "regot", "regot"),
        _peer("ott", "OTT-JAX", "ott", "ott", "ott-jax"),
        _peer("geomloss", "GeomLoss", "geomloss", "geomloss", "geomloss"),
    )
}


@dataclass(frozen=True)
class RelativeSetting:
    """A setting as the lines name it, relative to the problem.

    ``rtol`` for certified solvers. For entropic ones η = ``reg`` times the optimal cost, and the
    marginal error is such that mending it at the mean cost adds ``tol`` times η: tuning uses
    the optimum, which users do not know.
    """

    rtol: float | None = None
    reg: float | None = None
    tol: float | None = None

    def absolute(self, value: float, mean_cost: float) -> PeerSetting:
        """Return the absolute setting for a problem of which the optimal cost is known."""
        if self.reg is None or self.tol is None:
            return PeerSetting(self.rtol)
        eta = self.reg * value
        return PeerSetting(None, eta, self.tol * eta / mean_cost, self.tol)


@dataclass(frozen=True)
class Tuning:
    """The settings that entropic solvers are tuned over, coarse first."""

    regs: tuple[float, ...]
    tols: tuple[float, ...]

    def settings(self, solver: BenchmarkSolver, rtols: tuple[float, ...]) -> list[RelativeSetting]:
        """Return the settings a solver runs with."""
        if solver.kind == "exact":
            return [RelativeSetting()]
        if solver.kind == "certified":
            return [RelativeSetting(rtol) for rtol in rtols]
        return [RelativeSetting(None, reg, tol) for reg in self.regs for tol in self.tols]
