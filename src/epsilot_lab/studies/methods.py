"""Compare methods and their options: outer loops, operations and gaps, medians over seeds.

    python -m epsilot_lab methods hybrid                      # print one study
    python -m epsilot_lab methods section6 --out FOLDER       # keep its solves, write its page
    python -m epsilot_lab methods accelerated --toy           # seconds, to see that it runs

A study is data: tables of cases (problem, size, target) by settings (a method with options). Solves
are stored and resumed like those of the paper. Operations do not depend on the load of the machine.
"""

from __future__ import annotations

import argparse
import math
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import partial
from itertools import product
from pathlib import Path
from typing import Any

import numpy as np
from rich.console import Console

import epsilot
from epsilot.engine.status import Status
from epsilot.solvers.apdrcd import steps_per_epoch

from .. import document
from ..environment import machine, versions
from ..figures import Panel, draw_panels, write_figure
from ..fitting import NO_FIT, Curve, curve, fit_power
from ..instances import Instance, clouds, images, points, random, squared, weights
from ..measuring import repeated, timed
from ..runner import in_processes, run_tasks
from ..store import Line, Store, refuse_interrupted
from . import prototypes

Keywords = Mapping[str, Any]
Pairs = tuple[tuple[str, Any], ...]
#: Problem, size and the label of the target.
Case = tuple[str, int, str]

#: The fields that identify a line.
KEY = ("problem", "n", "seed", "target", "setting", "version")
#: Second total mass of unbalanced problems.
UNBALANCED_TOTAL = 1.4
PAPER: Keywords = {"stop": "paper"}
#: Wall seconds that the repeats of a timed solve share.
MAX_REPEAT_SECONDS = 1.0


# -- problems ------------------------------------------------------------------------------------


def _spread_points(n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    M = squared(*clouds(n, rng, 2, "spread"))
    a, b = rng.dirichlet(np.ones(n), 2)
    return M / M.max(), a, b


def _gaussian_points(n: int, seed: int) -> Instance:
    M = squared(*clouds(n, np.random.default_rng(seed), 3, "normal"))
    equal = np.full(n, 1 / n)
    return M / M.max(), equal, equal.copy()


def _concentrated(n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    a, b = weights(n, rng, 0.3)
    return rng.random((n, n)), a, b


def _half_zero(n: int, seed: int) -> Instance:
    M, a, b = images(math.isqrt(n), seed)
    a[::2] = 0
    b[1::2] = 0
    return M, a / a.sum(), b / b.sum()


def _shifted(n: int, seed: int) -> Instance:
    M, a, b = images(math.isqrt(n), seed)
    return M + 10.0, a, b


def _separable(n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    a, b = weights(n, rng, 0.3)
    return rng.random((n, 1)) + rng.random((1, n)), a, b


def _wide(n: int, seed: int) -> Instance:
    rng = np.random.default_rng(seed)
    return rng.random((n, 2 * n)), np.full(n, 1 / n), rng.dirichlet(np.ones(2 * n))


#: name -> (size, seed) -> cost and weights
PROBLEMS: dict[str, Callable[[int, int], Instance]] = {
    "images": lambda n, seed: images(math.isqrt(n), seed),
    "MNIST": lambda n, seed: images(math.isqrt(n), seed, "mnist"),
    "points": points,
    "random": random,
    "spread points": _spread_points,
    "Gaussian points": _gaussian_points,
    "random, Dirichlet(0.3)": _concentrated,
    "half the masses zero": _half_zero,
    "cost + 10": _shifted,
    "separable": _separable,
    "m = 2n": _wide,
}


# -- solves --------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodTask:
    """A method with options on a problem, to a target; ``eps`` is a share of the largest cost."""

    problem: str
    n: int
    seed: int
    target: Pairs
    setting: Pairs
    is_timed: bool = False

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {
            "problem": self.problem,
            "n": self.n,
            "seed": self.seed,
            "target": dict(self.target),
            "setting": dict(self.setting),
            "version": epsilot.__version__,
        }

    @property
    def label(self) -> str:
        """A few words for the progress line."""
        return f"{dict(self.setting).get('method')}, {self.problem}, n = {self.n}"

    @property
    def seconds(self) -> float:
        """Expected time, a rough guess."""
        return 0.1 + 1e-5 * self.n**2

    @property
    def variant(self) -> Pairs:
        """The options that decide which kernels are compiled."""
        return self.target[:1] + self.setting

    def warm_up(self) -> None:
        """Compile the kernels on few pixels."""
        replace(self, n=16)._solve(max_iter=2)

    def line(self) -> Line:
        """Solve and return the line."""
        if "specified" in dict(self.setting):
            numbers = prototypes.run(
                dict(self.setting)["specified"],
                PROBLEMS[self.problem](self.n, self.seed),
                dict(self.target)["eps"],
                self.seed,
            )
        else:
            numbers = self._solve()
        return {**self.identity, **numbers, "versions": versions(), "machine": machine()}

    def _solve(self, **limits: int) -> Line:
        M, a, b = PROBLEMS[self.problem](self.n, self.seed)
        keywords = {"seed": self.seed, "n_threads": 1, **dict(self.target), **dict(self.setting)}
        keywords |= limits
        if "eps" in keywords:
            keywords["eps"] *= M.max()
        if "unbalanced" in keywords:
            b = UNBALANCED_TOTAL * b
        solve = partial(epsilot.solve, M, a, b, on_limit="ignore", **keywords)
        with refuse_interrupted():
            seconds, result = timed(solve)
            if self.is_timed and not limits:  # the first call may have compiled
                seconds = repeated(solve, MAX_REPEAT_SECONDS, most=5).least
        allowed = keywords.get("eps") or keywords.get("tol") or keywords["rtol"] * result.value
        gap = result.gap
        if keywords.get("stop") == "paper":
            gap = result.value - epsilot.exact(M, a, b).value
        return {
            "has_ended": result.status in (Status.CERTIFIED, Status.PUBLISHED_STOP),
            "loops": result.n_iter,
            "operations": result.work.operations,
            "certificate_operations": result.work.certificate,
            "gap": gap / allowed,
            "processor": seconds.processor,
            "wall": seconds.wall,
        }


# -- tables ---------------------------------------------------------------------------------------


@dataclass(frozen=True)
class MethodComparison:
    """Cases by settings; cells hold loops and operations.

    ``expected`` has iterations and operations of a prototype by setting, n and target.
    ``iterations`` returns how many of them one of our loops holds. ``batches`` gives the batch
    size of a setting, for exponents. ``kink`` is the share of n up to which loops are flat in the
    batch size by the theory; exponents are then fitted on either side of it.
    """

    title: str
    cases: tuple[Case, ...]
    targets: Mapping[str, Keywords]
    settings: Mapping[str, Keywords]
    seeds: int = 3
    toy: tuple[Case, ...] = ()
    expected: Mapping[tuple[str, int, str], tuple[float, float]] = field(default_factory=dict)
    iterations: Mapping[str, Callable[[int], int]] = field(default_factory=dict)
    batches: Mapping[str, int] = field(default_factory=dict)
    kink: float | None = None
    extra: float = 0.0  # operations that a prototype counts besides ours, in units of n²
    is_timed: bool = False

    def small(self) -> MethodComparison:
        """Return the table at toy size: its toy cases, or its first one, and one seed."""
        return replace(self, cases=self.toy or self.cases[:1], seeds=1)

    def task(self, case: Case, setting: str, seed: int) -> MethodTask:
        """Return one solve."""
        problem, n, target = case
        goal, options = (
            tuple(sorted(words.items(), key=lambda item: item[0]))
            for words in (self.targets[target], self.settings[setting])
        )
        return MethodTask(problem, n, seed, goal, options, self.is_timed)

    def tasks(self) -> Iterator[MethodTask]:
        """Yield all solves; those of a prototype only where it has numbers."""
        for case, setting, seed in product(self.cases, self.settings, range(self.seeds)):
            if self._is_wanted(case, setting):
                yield self.task(case, setting, seed)

    def _is_wanted(self, case: Case, setting: str) -> bool:
        return not self.expected or (setting, *case[1:]) in self.expected

    def lines(self, found: Mapping[MethodTask, Line], case: Case, setting: str) -> list[Line]:
        """Return the lines of a cell."""
        tasks = (self.task(case, setting, seed) for seed in range(self.seeds))
        return [found[task] for task in tasks if task in found]

    def blocks(self, found: Mapping[MethodTask, Line]) -> Iterator[document.Block]:
        """Yield the table, the exponents, and the comparison with the prototype."""
        yield document.Heading(self.title)
        if self.expected:
            yield self._beside_prototype(found)
        else:
            rows = [
                (
                    problem,
                    f"{n}",
                    target,
                    *(self._cell(found, (problem, n, target), s) for s in self.settings),
                )
                for problem, n, target in self.cases
            ]
            yield document.Table(("problem", "n", "target", *self.settings), tuple(rows))
            yield from self._means(found)
        yield from self._exponents(found)
        gaps = [line["gap"] for task in self.tasks() for line in [found[task]] if line["has_ended"]]
        if gaps:
            yield document.Paragraph(f"Largest gap, as a share of the target: {max(gaps):.3g}.")

    def _cell(self, found: Mapping[MethodTask, Line], case: Case, setting: str) -> str:
        own = self.lines(found, case, setting)
        star = "" if all(line["has_ended"] for line in own) else "*"
        text = f"{median(own, 'loops'):.0f} / {median(own, 'operations') / case[1] ** 2:.0f}{star}"
        return f"{text} / {1e3 * median(own, 'wall'):.3g} ms" if self.is_timed else text

    def _means(self, found: Mapping[MethodTask, Line]) -> Iterator[document.Table]:
        """Yield the geometric means of the operations over the problems, if there are several."""
        rows = []
        for target in dict.fromkeys(case[2] for case in self.cases):
            own = [case for case in self.cases if case[2] == target]
            if len(own) > 1:
                logs = [
                    [math.log(line["operations"]) for c in own for line in self.lines(found, c, s)]
                    for s in self.settings
                ]
                rows.append((target, *(f"{math.exp(np.mean(x)):.2g}" for x in logs)))
        if rows:
            caption = "Operations, geometric means over problems, sizes and seeds."
            yield document.Table(("target", *self.settings), tuple(rows), caption)

    def _exponents(self, found: Mapping[MethodTask, Line]) -> Iterator[document.Table]:
        """Yield the exponents of n and of the batch size, where there are three values at least."""
        rows = []
        for problem, target in dict.fromkeys((c[0], c[2]) for c in self.cases):
            own = [case for case in self.cases if (case[0], case[2]) == (problem, target)]
            if len(own) > 2:
                fits = (
                    _fit([(case[1], x) for case in own for x in self.lines(found, case, s)])
                    for s in self.settings
                )
                rows.append((problem, target, *fits))
        if rows:
            caption = "Exponents of n, of loops and of operations."
            yield document.Table(("problem", "target", *self.settings), tuple(rows), caption)
        if len(self.batches) > 2:
            parts = (
                ("",)
                if self.kink is None
                else (f"B ≤ n/{1 / self.kink:g}", f"B ≥ n/{1 / self.kink:g}")
            )
            grown = [
                (*map(str, case), *(self._exponent_of_batch(found, case, part) for part in parts))
                for case in self.cases
            ]
            columns = (f"exponents of B{': ' * bool(x)}{x}: loops, operations" for x in parts)
            yield document.Table(("problem", "n", "target", *columns), tuple(grown))

    def _exponent_of_batch(self, found: Mapping[MethodTask, Line], case: Case, part: str) -> str:
        """Fit on one side of the kink, which belongs to both; two batch sizes are needed."""
        end = (self.kink or 0) * case[1]
        wanted = {
            s: B
            for s, B in self.batches.items()
            if not part or (end >= B if "≤" in part else end <= B)
        }
        pairs = [(B, x) for s, B in wanted.items() for x in self.lines(found, case, s)]
        return _fit(pairs) if len(wanted) > 1 else "–"

    def _beside_prototype(self, found: Mapping[MethodTask, Line]) -> document.Table:
        rows = []
        for setting, case in product(self.settings, self.cases):
            if not self._is_wanted(case, setting):
                continue
            own, n = self.lines(found, case, setting), case[1]
            loops, operations = self.expected[setting, n, case[2]]
            ours = median(own, "loops")
            if setting in self.iterations:
                ours *= self.iterations[setting](n)
            work = [
                line["operations"]
                + self.extra * n**2
                + (line["certificate_operations"] if "stop" not in line["target"] else 0)
                for line in own
            ]
            rows.append(
                (
                    *(setting, f"{n}", case[2], f"{loops:.4g}", f"{ours:.4g}"),
                    *(f"{operations:.2g}", f"{np.median(work):.2g}"),
                    f"{np.median(work) / operations:.2f}",
                    f"{max(line['gap'] for line in own):.3f}",
                )
            )
        columns = (
            *("method", "n", "target", "iterations of the prototype", "ours"),
            *("operations of the prototype", "ours", "ratio", "largest gap / target"),
        )
        return document.Table(columns, tuple(rows))


def median(lines: Sequence[Line], name: str) -> float:
    """Return the median of a field."""
    return float(np.median([line[name] for line in lines]))


def _fit(pairs: Sequence[tuple[float, Line]]) -> str:
    x = [at for at, _ in pairs]
    slopes = (
        fit_power(x, [max(line[name], 1) for _, line in pairs]).slope
        for name in ("loops", "operations")
    )
    return ", ".join(f"{slope:.2f}" for slope in slopes)


def cases(
    problems: Iterable[str], sizes: Iterable[int], targets: Iterable[str]
) -> tuple[Case, ...]:
    """Return all combinations."""
    return tuple(product(problems, sizes, targets))


def accuracies(*values: float, **more: Any) -> dict[str, Keywords]:
    """Return targets by their label: ε as a share of the largest cost."""
    return {f"ε = {eps:g}": {"eps": eps, **more} for eps in values}


# -- studies --------------------------------------------------------------------------------------

_STOPPED = {"max_iter": 20_000}
_LIMITED = {"max_iter": 2000}
_THREE = ("images", "points", "random")
_CONFIGURATIONS = prototypes.CONFIGURATIONS


def _specified(family: str, stop: str, toy: tuple[Case, ...]) -> MethodComparison:
    """Return the table of a family that compares solves with its prototype."""
    cells = prototypes.CELLS[family, stop]
    settings = {label: _CONFIGURATIONS[label] for label, *_ in cells}
    labels = {eps: f"ε = {eps:g}" for _, _, eps in cells}
    coordinate = {
        "greenkhorn": lambda n: 2 * n,
        "stochastic_sinkhorn": lambda n: 2 * n,
        "apdrcd": lambda n: 2 * n,
        "apdgcd": lambda n: steps_per_epoch(n, n),
    }
    return MethodComparison(
        f"The {family} family beside its prototype, stop={stop!r}",
        cases(["images"], sorted({n for _, n, _ in cells}), labels.values()),
        accuracies(*labels, **(PAPER if stop == "paper" else {})),
        settings,
        seeds=5 if family == "sinkhorn" else 3,
        toy=toy,
        expected={(label, n, labels[eps]): found for (label, n, eps), found in cells.items()},
        iterations={
            label: coordinate[words["method"]]
            for label, words in settings.items()
            if words.get("method") in coordinate
        },
        extra=11.0 if family == "sinkhorn" else 0.0,
    )


def _batches(
    cases: tuple[Case, ...], targets: Mapping[str, Keywords], **options: Any
) -> MethodComparison:
    batches = {f"B = {B}": B for B in (1, 2, 4, 8, 16, 32)}
    return MethodComparison(
        "Batches",
        cases,
        targets,
        {label: {"method": "pdasmd", "batch_size": B} for label, B in batches.items()},
        toy=(("images", 36, next(iter(targets))),),
        batches=batches,
        **options,
    )


_PDASMD_HYBRID: dict[str, Keywords] = {
    "pdasmd": {"method": "pdasmd"},
    "pdasmd, hybrid": {"method": "pdasmd", "hybrid": "sinkhorn"},
    "pdasgd": {"method": "pdasgd"},
    "pdasgd, hybrid": {"method": "pdasgd", "hybrid": "sinkhorn"},
    "sinkhorn": {"method": "sinkhorn"},
}
_SECTION6_METHODS: dict[str, Keywords] = {
    "sinkhorn": {"method": "sinkhorn"},
    "stochastic_sinkhorn": {"method": "stochastic_sinkhorn"},
    "accelerated_sinkhorn": {"method": "accelerated_sinkhorn"},
    "pdasmd": {"method": "pdasmd"},
    "pdasmd, hybrid": {"method": "pdasmd", "hybrid": "sinkhorn"},
    "katyusha_sinkhorn": {"method": "katyusha_sinkhorn"},
}
#: Batching -> its name in tables.
BATCHINGS = {
    "paper": "PDASMD-B, as printed",
    "long": "long steps, independent rows",
    "strata": "long steps, one row per stratum",
}
_UNBALANCED: dict[str, Keywords] = {
    "unbalanced_sinkhorn": {"method": "unbalanced_sinkhorn"},
    "unbalanced_pdasmd": {"method": "unbalanced_pdasmd"},
    "the same, hybrid": {"method": "unbalanced_pdasmd", "hybrid": "sinkhorn"},
}
#: Marginal penalty λ -> the proximal η of Sinkhorn, half and a quarter of it.
_PROXIMAL = {0.05: (0.02, 0.01, 0.005), 0.5: (0.02, 0.01, 0.005), 5.0: (0.05, 0.025, 0.0125)}


def _section6() -> Iterator[MethodComparison]:
    yield MethodComparison(
        "Katyusha Sinkhorn beside the methods it combines",
        (
            *cases(_THREE, (64, 256, 1024), ["ε = 0.01"]),
            *cases(_THREE, (64, 256), ["ε = 0.001"]),
        ),
        accuracies(0.01, 0.001, **_STOPPED) | accuracies(0.05, **_STOPPED),
        _SECTION6_METHODS,
        toy=cases(["images"], (16, 25, 36), ["ε = 0.05"]),
    )
    sizes = (1, 2, 4, 8, 16, 32, 64)
    certified, printed = accuracies(0.01, **_STOPPED), accuracies(0.1, **PAPER, **_STOPPED)
    for batching, words in BATCHINGS.items():
        settings = {
            f"B = {B}": {"method": "pdasgd", "batching": batching, "batch_size": B} for B in sizes
        }
        for stop, targets, ns in (
            ("certificate", certified, (256, 1024)),
            ("paper", printed, (64,)),
        ):
            yield MethodComparison(
                f"{words[0].upper()}{words[1:]}, stop={stop!r}",
                cases(_THREE, ns, targets),
                targets,
                settings,
                toy=cases(["images"], (64,), targets),
                batches=dict(zip(settings, sizes, strict=True)),
                kink=None if batching == "paper" else 1 / 8,
            )


def _unbalanced() -> Iterator[MethodComparison]:
    problems, sizes = ("images", "spread points", "random"), (256, 1024)
    limit = {"max_iter": 5000}
    proximal = {
        f"λ = {price:g}, η = {share:g}": {
            "unbalanced": price,
            "step_share": share,
            "rtol": 0.01,
            **limit,
        }
        for price, shares in _PROXIMAL.items()
        for share in shares
    }
    yield MethodComparison(
        "Without an entropy, to 1 %",
        cases(problems, sizes, proximal),
        proximal,
        _UNBALANCED,
        toy=cases(["images", "random"], (16,), list(proximal)[:1]),
    )
    entropic = {
        f"λ = {price:g}": {"unbalanced": price, "reg": 0.005, "tol": 1e-5, **limit}
        for price in _PROXIMAL
    }
    table = MethodComparison(
        "With reg = 0.005, to a gap of 1e-5",
        cases(problems, sizes, entropic),
        entropic,
        _UNBALANCED,
        toy=cases(["random"], (16,), ["λ = 5"]),
    )
    yield table
    proved = {"method": "unbalanced_pdasmd", "is_adaptive": False, "batch_size": 1}
    yield replace(
        table,
        title="The same with proved steps",
        cases=cases(problems, sizes[:1], entropic),
        settings={"proved steps, B = 1": proved},
    )


def _sinkhorn() -> Iterator[MethodComparison]:
    toy = cases(["images"], (36,), ["ε = 0.2"])
    table = _specified("sinkhorn", "paper", toy)
    yield table
    yield replace(
        table,
        title="Operations with stop='certificate'",
        targets=accuracies(0.2, 0.05, 0.02),
        expected={},
    )


_HARD = {**accuracies(0.05, 0.02, 0.005)}
_OPTION_TARGETS: dict[str, Keywords] = {
    **accuracies(0.05, 0.02, 0.005, 0.001),
    "η = 0.02, gap 1e-6": {"reg": 0.02, "tol": 1e-6},
    "η = 0.005, gap 1e-5": {"reg": 0.005, "tol": 1e-5},
}
_GROWTH = {"paper, ε = 0.05": {"eps": 0.05, **PAPER}, "certificate, ε = 0.05": {"eps": 0.05}}

STUDIES: dict[str, tuple[MethodComparison, ...]] = {
    "sinkhorn": tuple(_sinkhorn()),
    "accelerated": (
        _specified("accelerated", "paper", cases(["images"], (36,), ["ε = 0.2"])),
        _specified("accelerated", "certificate", ()),
    ),
    "direct": (
        _specified("direct", "certificate", cases(["images"], (16,), ["ε = 0.2"])),
        MethodComparison(
            "The same problems by epsilot.solve",
            cases(["images"], (64, 144), ["ε = 0.05", "ε = 0.02"]),
            accuracies(0.2, 0.05, 0.02),
            {
                name: {"method": name}
                for name in ("dual_extrapolation", "dijkstra_dfs", "packing_lp", "box_newton")
            },
            toy=cases(["images"], (16,), ["ε = 0.2"]),
        ),
    ),
    "options": (
        MethodComparison(
            "Options of Sinkhorn, beside AAM",
            (
                *cases(["images"], (64, 144), _OPTION_TARGETS),
                *cases(["Gaussian points", "random, Dirichlet(0.3)"], (100,), _OPTION_TARGETS),
            ),
            _OPTION_TARGETS,
            {
                "log, ω = 1": {"method": "sinkhorn", "domain": "log", "relaxation": 1.0},
                "kernel, ω = 1": {"method": "sinkhorn", "relaxation": 1.0},
                "log, ω adapted": {"method": "sinkhorn", "domain": "log"},
                "kernel, ω adapted": {"method": "sinkhorn"},
                "aam": {"method": "aam"},
            },
            toy=cases(["images"], (36,), ["ε = 0.05", "η = 0.02, gap 1e-6"]),
        ),
    ),
    "hard": (
        MethodComparison(
            "Hard instances",
            (
                *cases(["half the masses zero"], (64, 100), ["ε = 0.05", "ε = 0.02"]),
                ("images", 36, "ε = 0.005"),
                ("cost + 10", 64, "ε = 0.05"),
                *cases(["random, Dirichlet(0.3)", "separable", "m = 2n"], (50,), ["ε = 0.02"]),
            ),
            _HARD,
            {label: _CONFIGURATIONS[label] for label, *_ in prototypes.CELLS["sinkhorn", "paper"]},
            seeds=1,
            toy=cases(["half the masses zero", "m = 2n"], (16,), ["ε = 0.05"]),
        ),
    ),
    "hybrid": (
        MethodComparison(
            "PDASMD with Sinkhorn steps at the snapshot",
            cases(_THREE, (100, 400, 1024), ["ε = 0.02", "ε = 0.005"]),
            accuracies(0.02, 0.005, **_LIMITED),
            _PDASMD_HYBRID,
            seeds=5,
            toy=cases(["images", "random"], (16,), ["ε = 0.005"]),
        ),
    ),
    "pdasmd": (
        MethodComparison(
            "Growth with n",
            cases(["images", "MNIST"], (25, 49, 100, 196, 400), _GROWTH),
            _GROWTH,
            {"pdasmd": {"method": "pdasmd"}, "pdasgd": {"method": "pdasgd"}},
            seeds=5,
            toy=cases(["images"], (16, 25, 36), list(_GROWTH)[1:]),
        ),
        _batches(
            (("images", 256, "paper, ε = 0.05"), ("images", 256, "certificate, ε = 0.02")),
            {"paper, ε = 0.05": {"eps": 0.05, **PAPER}, "certificate, ε = 0.02": {"eps": 0.02}},
        ),
    ),
    "batches": (
        _batches(
            cases(["images"], (400, 1024, 2304), ["ε = 0.02"]), accuracies(0.02), is_timed=True
        ),
        replace(
            _batches(
                cases(["images"], (400, 1024, 2304), ["all threads, ε = 0.02"]),
                {"all threads, ε = 0.02": {"eps": 0.02, "n_threads": None}},
                is_timed=True,
            ),
            title="Batches on all threads",
        ),
    ),
    "section6": tuple(_section6()),
    "unbalanced": tuple(_unbalanced()),
}


# -- the command ----------------------------------------------------------------------------------


def _section6_figure(
    tables: Sequence[MethodComparison], found: Mapping[MethodTask, Line]
) -> list[Panel]:
    """Return panels for images: loops and operations against B, operations against n."""
    methods, *batched = tables

    def against_batch(stop: str, name: str) -> tuple[Curve, ...]:
        curves = []
        for table in batched:
            if stop in table.title:
                case = [c for c in table.cases if c[0] == "images"][-1]
                own = [line for s in table.settings for line in table.lines(found, case, s)]
                label = table.title.partition(", stop")[0]
                found_curve = curve(
                    label, own, lambda x: x["setting"]["batch_size"], lambda x: x[name]
                )
                if table.kink is not None:  # no power law
                    found_curve = replace(found_curve, fit=NO_FIT)
                curves.append(found_curve)
        return tuple(curves)

    first = methods.cases[0][2]
    lines = [
        (
            setting,
            [
                x
                for c in methods.cases
                if c[0] == "images" and c[2] == first
                for x in methods.lines(found, c, setting)
            ],
        )
        for setting in methods.settings
    ]
    grown = tuple(curve(s, own, lambda x: x["n"], lambda x: x["operations"]) for s, own in lines)
    return [
        Panel(
            "Outer loops, paper's stop",
            "batch size B",
            "outer loops",
            against_batch("'paper'", "loops"),
            0.5,
        ),
        Panel(
            f"Operations to {first}",
            "batch size B",
            "operations",
            against_batch("'certificate'", "operations"),
            0.5,
        ),
        Panel(f"Operations to {first}", "pixels n", "operations", grown, 2.0),
    ]


def run(name: str, tables: Sequence[MethodComparison], out: Path, jobs: int, command: str) -> str:
    """Solve the tasks that the folder lacks, write its page, and return the page."""
    tasks = list(dict.fromkeys(task for table in tables for task in table.tasks()))
    store = Store(out / "solves.jsonl", KEY)
    lines = run_tasks(tasks, store, Console(stderr=True), in_processes(jobs))
    found = dict(zip(tasks, lines, strict=True))
    blocks: list[document.Block] = [
        document.Command(command),
        document.Paragraph(
            "Cells are outer loops / operations in n², medians over the seeds. A star marks cells "
            "in which a run was stopped at its limit."
        ),
    ]
    if name == "section6":
        figure = draw_panels([_section6_figure(tables, found)], "Section 6 of the paper (images)")
        caption = "Outer loops and operations against the batch size; operations against n."
        blocks.append(document.Picture(write_figure(figure, out, name), caption))
    blocks += [block for table in tables for block in table.blocks(found)]
    blocks += [document.Heading("Environment"), document.environment_table(lines)]
    text = document.to_markdown(f"Methods: {name}", blocks)
    document.write_text(out / "summary.md", text)
    return text


def main(argv: Sequence[str] | None = None) -> None:
    """Print one study; with a folder, keep its solves there."""
    parser = argparse.ArgumentParser(
        prog="python -m epsilot_lab methods", description=__doc__.splitlines()[0]
    )
    parser.add_argument("study", choices=list(STUDIES))
    parser.add_argument("--out", type=Path, help="folder of solves.jsonl and summary.md")
    parser.add_argument("--toy", action="store_true", help="seconds, to see that it runs")
    parser.add_argument("--largest", type=int, default=10**9, help="leave out larger n")
    parser.add_argument("--seeds", type=int, help="seeds per cell")
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    options = parser.parse_args(argv)
    tables = [
        replace(
            table,
            cases=tuple(case for case in table.cases if case[1] <= options.largest),
            seeds=options.seeds or table.seeds,
        )
        for table in (table.small() if options.toy else table for table in STUDIES[options.study])
    ]
    command = f"python -m epsilot_lab methods {options.study}{' --toy' if options.toy else ''}"
    if options.out is None:
        with tempfile.TemporaryDirectory() as folder:
            print(run(options.study, tables, Path(folder), options.jobs, command))
    else:
        options.out.mkdir(parents=True, exist_ok=True)
        print(run(options.study, tables, options.out, options.jobs, command))
