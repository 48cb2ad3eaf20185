"""Compare the bits of results across processes, caches, threads and processors.

    python -m epsilot_lab same-bits            # the whole table, under every setting
    python -m epsilot_lab same-bits --quick    # what the tests run

Each setting is a fresh process that solves the table and prints a hash of every result: its
trace, plan and potentials. Settings of another processor are instruction sets that this one must
be able to run; those it lacks are left out.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
from numpy._core._multiarray_umath import __cpu_dispatch__

import epsilot
from epsilot.frameworks.losses import CloudLoss, SelfLoss, partners

#: Instruction sets that NumPy chooses among when it is loaded, by the names of its version.
NUMPY_ALL = " ".join(__cpu_dispatch__)
NUMPY_AVX512 = " ".join(x for x in __cpu_dispatch__ if x.startswith(("AVX512", "X86_V4")))
#: Generic x86 with what every machine since Haswell has.
AVX2 = "+sse3,+ssse3,+sse4.1,+sse4.2,+popcnt,+avx,+avx2,+bmi,+bmi2,+fma,+lzcnt,+f16c,+movbe"


@dataclass(frozen=True)
class ProcessSetting:
    """The differences of a process from the first one; ``cache`` names its compilation cache."""

    name: str
    cache: str = "native"
    variables: dict[str, str] = field(default_factory=dict)
    n_threads: int = 1
    seed: int = 0  # of the order of the table, and of where arrays lie; 0: as they are


def target(name: str, features: str = "") -> ProcessSetting:
    """Return a setting that compiles for another processor, with what LLVM knows it to have."""
    variables = {"NUMBA_CPU_NAME": name, "NUMBA_CPU_FEATURES": features}
    return ProcessSetting(f"code for {name}", name, variables)


FIRST = ProcessSetting("cold cache")
ELSEWHERE = ProcessSetting(
    "warm cache, two threads, arrays elsewhere, older NumPy and BLAS",
    n_threads=2,
    seed=1,
    variables={"NPY_DISABLE_CPU_FEATURES": NUMPY_AVX512, "OPENBLAS_CORETYPE": "Haswell"},
)
QUICK = [FIRST, ELSEWHERE, target("haswell")]
SETTINGS = [
    FIRST,
    ProcessSetting("warm cache"),
    ProcessSetting("two threads", n_threads=2),
    *(
        ProcessSetting(f"arrays elsewhere, order {seed}", seed=seed, n_threads=2)
        for seed in (1, 2, 3)
    ),
    ProcessSetting("another cold cache, another order", cache="again", seed=4),
    ProcessSetting("NumPy without AVX-512", variables={"NPY_DISABLE_CPU_FEATURES": NUMPY_AVX512}),
    ProcessSetting(
        "NumPy without AVX2",
        variables={"NPY_DISABLE_CPU_FEATURES": NUMPY_ALL},
    ),
    ProcessSetting("BLAS for Haswell", variables={"OPENBLAS_CORETYPE": "Haswell"}),
    ProcessSetting("BLAS for Zen", variables={"OPENBLAS_CORETYPE": "Zen"}),
    ProcessSetting("BLAS on one thread", variables={"OPENBLAS_NUM_THREADS": "1"}),
    ProcessSetting("no assertions, no docstrings", variables={"PYTHONOPTIMIZE": "2"}),
    ProcessSetting("Turkish locale", variables={"LC_ALL": "tr_TR.UTF-8"}),
    ProcessSetting("POSIX locale", variables={"LC_ALL": "C", "PYTHONUTF8": "0"}),
    ProcessSetting("another hash seed", variables={"PYTHONHASHSEED": "7"}),
    target("haswell"),
    target("skylake-avx512"),
    target("znver3"),
    target("znver4"),
    target("generic", AVX2),
]

# -- the table -------------------------------------------------------------------------------


class ArrayPlacement:
    """Puts arrays at places that depend on a seed."""

    def __init__(self, seed: int) -> None:
        self.random, self.seed, self.kept = random.Random(seed), seed, []

    def __call__(self, x):
        """Return a copy of an array, somewhere else."""
        if not self.seed:
            return x.copy()
        sizes = [self.random.randrange(1, 80) for _ in range(self.random.randrange(40))]
        self.kept = [*self.kept[-5:], [np.empty(size) for size in sizes]]
        arena = np.empty(x.size + 64)
        start = self.random.randrange(64)
        out = arena[start : start + x.size].reshape(x.shape)
        out[:] = x
        return out


def masses(rng, size):
    """Return positive masses; plain arithmetic only, so that inputs are the same everywhere."""
    weights = 0.1 + rng.random(size)
    return weights / weights.sum()


def dense(n, m, place, n_values=None, **options):
    """Solve a problem with a random cost, perhaps of few values."""
    rng = np.random.default_rng(n)
    M, a, b = rng.random((n, m)), masses(rng, n), masses(rng, m)
    M = M if n_values is None else np.floor(n_values * M)
    return epsilot.solve(place(M), place(a), place(b), **options)


def cloud(n, place, d=3, **options):
    """Solve a problem of two clouds that are not stored."""
    rng = np.random.default_rng(n)
    X, Y = rng.random((n, d)), rng.random((n + 7, d)) + 0.1
    return epsilot.solve_sample(place(X), place(Y), lazy=True, **options)


def grid(shape, place, **options):
    """Solve a problem of two images."""
    rng = np.random.default_rng(len(shape))
    A, B = (masses(rng, shape) for _ in range(2))
    return epsilot.solve_grid(place(A), place(B), **options)


def batch(size, place, n_threads, **_):
    """Solve many problems of all sizes up to one, some of them uniform or with ties."""
    rng = np.random.default_rng(size)
    shapes = rng.integers(1, size, (60, 2))
    M = [place(rng.random(shape)) for shape in shapes] + [place(rng.random((size, size)))] * 2
    M = [np.floor(4 * C) if k % 3 == 0 else C for k, C in enumerate(M)]
    a, b = (
        [None if k % 5 == 0 else place(masses(rng, C.shape[c])) for k, C in enumerate(M)]
        for c in (0, 1)
    )
    return epsilot.solve_batch(M, a, b, plans=True, potentials=True, n_threads=n_threads)


def loss(n, d, place, reg=None, n_threads=1, **_):
    """Return values, potentials and slopes of a transport loss, of two clouds or of one."""
    rng = np.random.default_rng(n)
    x, y = (place(rng.random((1, n, d))) for _ in range(2))
    losses = CloudLoss(reg=reg, n_threads=n_threads), SelfLoss(reg=reg, n_threads=n_threads)
    kept = [losses[0]([x, y, None, None], [True, True, False, False])]
    if reg is not None:
        kept.append(losses[1]([x, None], [True, False]))
    return [z for found in kept for z in (*found[:4], *found.slopes) if z is not None]


def matched(n, d, place, n_threads=1, **_):
    """Return the partners of points."""
    rng = np.random.default_rng(n)
    x, y = (place(rng.random((1, n, d))) for _ in range(2))
    return list(partners(x, y, None, None, n_threads=n_threads))


def loss_cases(is_quick: bool) -> dict[str, Callable]:
    """Return losses, and the partners that points of minibatches get."""
    sizes = [] if is_quick else [(40, 2), (40, 20), (130, 300), (300, 2), (300, 40)]
    found = {}
    for n, d in sizes:
        found[f"match {n} x {d}"] = partial(matched, n, d)
        found[f"loss {n} x {d}"] = partial(loss, n, d)
        found[f"entropic loss {n} x {d}"] = partial(loss, n, d, reg=0.002 * d)
    return found


def barycenter(place, metric, **options):
    """Find the barycentre of three images, on a grid or with a random cost."""
    rng = np.random.default_rng(7)
    A = [place(masses(rng, (12, 11))) for _ in range(3)]
    if metric is not None:
        return epsilot.barycenter_grid(A, metric=metric, **options)
    return epsilot.barycenter([x.ravel() for x in A], place(rng.random((132, 132))), **options)


def dense_cases(is_quick: bool) -> dict[str, Callable]:
    """Return every method on stored costs, with every kind of goal."""
    found = {}
    for method in (method for method in epsilot.methods() if method.costs == "any"):
        goals = [{"eps": 0.03}]
        if not is_quick:
            goals += [{"rtol": 0.1}, {"eps": 0.1, "stop": "paper"}]
            goals += [{"reg": 0.05}] if method.solves_entropic else []
        shapes = [(33, 41)] if is_quick else [(5, 7), (33, 41), (64, 64), (130, 121)]
        for (n, m), goal, n_values in product(shapes, goals, [None] if is_quick else [None, 8]):
            unit = n_values or 1  # costs are 0 to 7, or in [0, 1]
            scaled = {k: unit * v if k in ("eps", "reg") else v for k, v in goal.items()}
            options = {"n_values": n_values, "method": method.name, **scaled}
            found[f"dense {n} x {m} {options}"] = partial(dense, n, m, **options)
    return found


def cloud_cases(is_quick: bool) -> dict[str, Callable]:
    """Return methods on clouds whose costs are not stored."""
    metrics, methods, sizes = ["sqeuclidean"], ["sinkhorn", "auto"], [60]
    if not is_quick:
        metrics += ["euclidean", "cityblock", "cosine"]
        methods += ["pdasmd", "aam", "apdagd", "box_newton", "dual_extrapolation"]
        sizes += [300]
    found = {}
    for metric, method, n in product(metrics, methods, sizes):
        options = {"metric": metric, "method": method, "rtol": 0.1}
        found[f"cloud {n} {options}"] = partial(cloud, n, **options)
    for metric, n in product(metrics, sizes):
        found[f"line {n} {metric}"] = partial(cloud, n, d=1, metric=metric, method="monotone")
    for metric, n in product([] if is_quick else metrics, sizes):
        found[f"cloud {n} {metric} reg"] = partial(cloud, n, metric=metric, reg=0.05)
    return found


def grid_cases(is_quick: bool) -> dict[str, Callable]:
    """Return grids of one to three axes, up to where BLAS would use threads."""
    shapes, goals = [(13, 9), (103, 131)], [{"rtol": 0.2}]
    if not is_quick:
        shapes += [(5, 6, 4), (50,)]
        goals += [{"rtol": 0.05}, {"reg": 0.5}]
    found = {}
    for metric, shape, goal in product(["cityblock", "sqeuclidean"], shapes, goals):
        if metric == "cityblock" and "rtol" in goal:
            found[f"flow {shape} {goal}"] = partial(grid, shape, method="grid_flow", **goal)
            goal = {**goal, "method": "sinkhorn"}
        found[f"grid {metric} {shape} {goal}"] = partial(grid, shape, metric=metric, **goal)
    return found


def batch_cases(is_quick: bool) -> dict[str, Callable]:
    """Return batches of small problems."""
    return {f"batch {size}": partial(batch, size) for size in ([40] if is_quick else [9, 40, 200])}


def barycenter_cases(is_quick: bool) -> dict[str, Callable]:
    """Return barycentres by every method whose numbers are all our own, unless it must be quick."""
    methods = [] if is_quick else ["anderson", "ibp", "lbfgs", "pdasmd"]
    found = {}
    for method, metric in product(methods, [None, "cityblock", "sqeuclidean"]):
        options = {"method": method, "metric": metric, "rtol": 0.01}
        found[f"barycentre {options}"] = partial(barycenter, **options)
    return found


def cases(is_quick: bool) -> dict[str, Callable]:
    """Return the table: name -> solve(place=, **options)."""
    kinds = dense_cases, cloud_cases, grid_cases, batch_cases, loss_cases, barycenter_cases
    return {name: case for kind in kinds for name, case in kind(is_quick).items()}


def digest(result) -> str:
    """Return a hash of the trace, the plan and the potentials of a result, a batch or arrays."""
    h = hashlib.sha256()
    if isinstance(result, list):
        for x in result:
            h.update(np.ascontiguousarray(x).tobytes())
        return h.hexdigest()[:16]
    if isinstance(result, epsilot.BatchResult):
        kept = *result.plans.arrays().values(), *result.potentials.arrays().values()
        for x in (result.value, result.lower_bound, result.marginal_error, *kept):
            h.update(x.tobytes())
        return h.hexdigest()[:16]
    for r in result.history:
        numbers = r.n_iter, r.operations, r.upper, r.lower, r.gap, r.marginal_error, r.reg
        h.update(repr(numbers).encode())
    if isinstance(result, epsilot.BarycenterResult):
        for x in (result.barycenter, *(x for pair in result.potentials for x in pair)):
            h.update(x.tobytes())
        return h.hexdigest()[:16]
    plan = result.plan_operator
    parts = [*result.potentials, *plan.marginals(), plan.row(0)]
    if plan.shape[0] * plan.shape[1] < 1 << 20:
        parts.append(plan.toarray())
    for x in (*parts, result.value, result.lower_bound):
        h.update(np.ascontiguousarray(x).tobytes())
    return h.hexdigest()[:16]


def solve_all(is_quick: bool, n_threads: int, seed: int) -> dict[str, str]:
    """Return the hash of every case, solved in an order that depends on the seed."""
    place, table = ArrayPlacement(seed), list(cases(is_quick).items())
    if seed:
        random.Random(seed).shuffle(table)
    limits = {"on_limit": "ignore", "max_iter": 60, "n_threads": n_threads}
    return {name: digest(solve(place=place, **limits)) for name, solve in table}


# -- the processes ---------------------------------------------------------------------------


def run(setting: ProcessSetting, caches: Path, is_quick: bool) -> dict[str, str]:
    """Return the hashes of a fresh process under a setting."""
    environment = {
        **os.environ,
        **setting.variables,
        "NUMBA_CACHE_DIR": str(caches / setting.cache),
    }
    environment.pop("PYTEST_XDIST_WORKER", None)
    command = [
        sys.executable,
        "-W",
        "ignore",
        "-m",
        "epsilot_lab",
        "same-bits",
        "--child",
        str(setting.n_threads),
        str(setting.seed),
        *(["--quick"] if is_quick else []),
    ]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise RuntimeError(f"{setting.name}: {done.stderr.strip()[-2000:]}")
    hashes: dict[str, str] = json.loads(done.stdout)
    return hashes


def can_run(setting: ProcessSetting) -> bool:
    """Tell whether this processor has the instructions of a setting."""
    if "NUMBA_CPU_NAME" not in setting.variables:
        return True
    from llvmlite import binding

    has = binding.get_host_cpu_features()
    needs_avx512 = setting.cache in ("skylake-avx512", "znver4")
    is_zen = setting.cache.startswith("znver")
    if needs_avx512 and not has.get("avx512vl"):
        return False
    if is_zen and not has.get("clzero"):
        return False
    return bool(has.get("avx2") and has.get("fma"))


def differences(settings: list[ProcessSetting], is_quick: bool, report=lambda line: None):
    """Return {setting: cases whose bits differ from the first setting's}, and the number of cases.

    Settings that this processor cannot run are left out.
    """
    found = {}
    with tempfile.TemporaryDirectory() as caches:
        expected = run(settings[0], Path(caches), is_quick)
        for setting in filter(can_run, settings[1:]):
            hashes = run(setting, Path(caches), is_quick)
            wrong = sorted(name for name in expected if hashes.get(name) != expected[name])
            found[setting.name] = wrong
            report(f"{len(wrong):4d} of {len(expected)} differ: {setting.name}")
            for name in wrong[:10]:
                report(f"       {name}")
    return found, len(expected)


def main(arguments: list[str] | None = None) -> None:
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--quick", action="store_true", help="the table and settings of the tests")
    parser.add_argument("--child", type=int, nargs=2, metavar=("THREADS", "SEED"))
    chosen = parser.parse_args(arguments)
    if chosen.child:
        json.dump(solve_all(chosen.quick, *chosen.child), sys.stdout)
        return
    settings = QUICK if chosen.quick else SETTINGS
    found, n_cases = differences(settings, chosen.quick, partial(print, flush=True))
    n_wrong = sum(map(len, found.values()))
    print(f"{n_cases} solves under {len(found) + 1} settings: {n_wrong} differ from the first.")
    sys.exit(n_wrong > 0)
