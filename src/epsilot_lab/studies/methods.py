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
from epsilot.problems.work import Status

from .. import document
from ..environment import machine, versions
from ..figures import Panel, draw_panels, write_figure
from ..fitting import NO_FIT, Curve, curve, fit_power
from ..instances import Instance, clouds, images, points, random, squared, weights
from ..measuring import timed
from ..runner import in_processes, run_tasks
from ..store import Line, Store, refuse_interrupted

Keywords = Mapping[str, Any]
Pairs = tuple[tuple[str, Any], ...]
#: Problem, size and the label of the target.
Case = tuple[str, int, str]

#: The fields that identify a line.
KEY = ("problem", "n", "seed", "target", "setting", "version")
#: Second total mass of unbalanced problems.
UNBALANCED_TOTAL = 1.4
PAPER: Keywords = {"stop": "paper"}


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


#: name -> (size, seed) -> cost and weights
PROBLEMS: dict[str, Callable[[int, int], Instance]] = {
    "images": lambda n, seed: images(math.isqrt(n), seed),
    "MNIST": lambda n, seed: images(math.isqrt(n), seed, "mnist"),
    "points": points,
    "random": random,
    "spread points": _spread_points,
    "Gaussian points": _gaussian_points,
    "random, Dirichlet(0.3)": _concentrated,
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
    def is_timed(self) -> bool:
        """Tell that running times do not count."""
        return False

    @property
    def variant(self) -> Pairs:
        """The options that decide which kernels are compiled."""
        return self.target[:1] + self.setting

    def warm_up(self) -> None:
        """Compile the kernels on few pixels."""
        replace(self, n=16)._solve(max_iter=2)

    def line(self) -> Line:
        """Solve and return the line."""
        return {**self.identity, **self._solve(), "versions": versions(), "machine": machine()}

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

    ``batches`` gives the batch size of a setting, for exponents. ``kink`` is the share of n up to
    which loops are flat in the batch size by the theory; exponents are then fitted on either side
    of it.
    """

    title: str
    cases: tuple[Case, ...]
    targets: Mapping[str, Keywords]
    settings: Mapping[str, Keywords]
    seeds: int = 3
    toy: tuple[Case, ...] = ()
    batches: Mapping[str, int] = field(default_factory=dict)
    kink: float | None = None

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
        return MethodTask(problem, n, seed, goal, options)

    def tasks(self) -> Iterator[MethodTask]:
        """Yield all solves."""
        for case, setting, seed in product(self.cases, self.settings, range(self.seeds)):
            yield self.task(case, setting, seed)

    def lines(self, found: Mapping[MethodTask, Line], case: Case, setting: str) -> list[Line]:
        """Return the lines of a cell."""
        tasks = (self.task(case, setting, seed) for seed in range(self.seeds))
        return [found[task] for task in tasks if task in found]

    def blocks(self, found: Mapping[MethodTask, Line]) -> Iterator[document.Block]:
        """Yield the table, the means and the exponents."""
        yield document.Heading(self.title)
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
        return f"{median(own, 'loops'):.0f} / {median(own, 'operations') / case[1] ** 2:.0f}{star}"

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


def _both_stops(
    family: str, settings: Mapping[str, Keywords], sizes: Sequence[int], seeds: int
) -> Iterator[MethodComparison]:
    """Yield tables of a family on the paper's images, with its stop and with the certificate."""
    for stop, words in (("paper", PAPER), ("certificate", {})):
        targets = accuracies(0.2, 0.05, 0.02, **words)
        yield MethodComparison(
            f"The {family} family, stop={stop!r}",
            cases(["images"], sizes, targets),
            targets,
            settings,
            seeds=seeds,
            toy=cases(["images"], (36,), ["ε = 0.2"]),
        )


_SINKHORN: dict[str, Keywords] = {
    "Sinkhorn": {"method": "sinkhorn"},
    "Greenkhorn": {"method": "greenkhorn"},
    "Stochastic Sinkhorn": {"method": "stochastic_sinkhorn"},
    "Accelerated, printed": {"method": "accelerated_sinkhorn", "variant": "printed"},
    "Accelerated, corrected": {"method": "accelerated_sinkhorn"},
    "AAM dual, line search": {"method": "aam", "variant": "dual", "search": "line_search"},
    "AAM primal-dual, line search": {
        "method": "aam",
        "variant": "primal_dual",
        "search": "line_search",
    },
    "AAM primal-dual, backtracking": {
        "method": "aam",
        "variant": "primal_dual",
        "search": "backtracking",
    },
}
_ACCELERATED: dict[str, Keywords] = {
    "apdagd, violation": {"method": "apdagd", "rule": "violation"},
    "apdagd, duality": {"method": "apdagd", "rule": "duality"},
    "apdamd": {"method": "apdamd"},
    "hybrid, accelerated": {"method": "hybrid_primal_dual", "form": "accelerated"},
    "hybrid, line search": {"method": "hybrid_primal_dual", "form": "line_search"},
    "apdrcd": {"method": "apdrcd"},
    "apdgcd": {"method": "apdgcd"},
}
_DIRECT: dict[str, Keywords] = {
    name: {"method": name}
    for name in ("dual_extrapolation", "dijkstra_dfs", "packing_lp", "box_newton")
}
_OPTION_TARGETS: dict[str, Keywords] = {
    **accuracies(0.05, 0.02, 0.005, 0.001),
    "η = 0.02, gap 1e-6": {"reg": 0.02, "tol": 1e-6},
    "η = 0.005, gap 1e-5": {"reg": 0.005, "tol": 1e-5},
}
_GROWTH = {"paper, ε = 0.05": {"eps": 0.05, **PAPER}, "certificate, ε = 0.05": {"eps": 0.05}}

STUDIES: dict[str, tuple[MethodComparison, ...]] = {
    "sinkhorn": tuple(_both_stops("Sinkhorn", _SINKHORN, (36, 64, 100, 144), 5)),
    "accelerated": tuple(_both_stops("accelerated", _ACCELERATED, (36, 144), 3)),
    "direct": (
        MethodComparison(
            "The direct methods",
            cases(["images"], (16, 36, 64, 100, 144), ["ε = 0.2", "ε = 0.05", "ε = 0.02"]),
            accuracies(0.2, 0.05, 0.02),
            _DIRECT,
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
        prog="python -m epsilot_lab methods", description=(__doc__ or "").partition("\n")[0]
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
