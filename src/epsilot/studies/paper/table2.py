"""Table 2: errors on the two moons after adaptation by PDASMD and by Sinkhorn (Appendix H)."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

import numpy as np

from ..._types import Vector
from ..lab.document import (
    Block,
    Claim,
    Command,
    Heading,
    Paragraph,
    Table,
    claim_table,
    environment_table,
    to_markdown,
    verdict,
    write_text,
)
from ..lab.runner import in_processes, run_tasks
from ..lab.store import Line, Store
from .moons import ANGLES, KEY, PAPER, MoonTask

if TYPE_CHECKING:
    from rich.console import Console


#: What the two columns are made with; the other goals show what depends on the choice.
MAIN = ("reg", 0.1)
GOALS = (("reg", 0.01), ("reg", 0.03), MAIN, ("reg", 0.3), ("rtol", 0.01))
#: The paper's own procedure: η, tolerance and smoothed marginals follow from ε.
PUBLISHED = ("eps", 0.5)
METHODS = ("pdasmd", "sinkhorn")


def run(out: Path, quick: bool, seeds: int | None, jobs: int, console: Console) -> None:
    """Solve what is missing, then summarise."""
    n_seeds = seeds or (3 if quick else 10)
    goals = (MAIN, ("rtol", 0.01)) if quick else GOALS
    tasks = list(tasks_of(n_seeds, goals, () if quick else (PUBLISHED,)))
    store = Store(out / "solves.jsonl", KEY)
    lines = run_tasks(tasks, store, console, in_processes(jobs))
    arguments = f"--{'quick' if quick else 'full'}" + (f" --seeds {seeds}" if seeds else "")
    write(out, lines, f"epsilot reproduce table2 {arguments}")


def tasks_of(
    n_seeds: int,
    goals: Sequence[tuple[str, float]],
    published: Sequence[tuple[str, float]] = (),
    angles: Sequence[int] = ANGLES,
    n_moon: int = 150,
) -> Iterator[MoonTask]:
    """Yield the solves of the table."""
    for angle in angles:
        for seed in range(n_seeds):
            yield MoonTask(angle, seed, "none", ("none", 0.0), n_moon)
            for method in METHODS:
                for goal in goals:
                    yield MoonTask(angle, seed, method, goal, n_moon)
            for goal in published:
                yield MoonTask(angle, seed, "pdasmd", goal, n_moon)


def write(out: Path, lines: Sequence[Line], command: str) -> None:
    """Write the summary from the lines alone."""
    n_seeds = len({line["seed"] for line in lines})
    blocks: list[Block] = [
        Paragraph(_INTRODUCTION),
        Command(command),
        Heading("Beside the paper"),
        Paragraph(
            f"Mean error over {n_seeds} repetitions ± standard deviation, with η = {MAIN[1]} "
            "and scikit-learn's default SVM (C = 1, γ = 1/(d·variance)). The last two columns say "
            "whether our mean is at most the paper's plus one standard error of ours."
        ),
        _beside(lines),
        Heading("What the choices left open by the paper do"),
        Paragraph(_CHOICES),
        _sensitivity(lines, "default"),
        Paragraph("The same transported points, with C and γ chosen by 5-fold cross-validation:"),
        _sensitivity(lines, "cross-validated"),
        Heading("Claims of the paper"),
        claim_table(_claims(lines), ""),
        Paragraph(_explanation(lines)),
        Heading("Environment"),
        environment_table(lines),
    ]
    write_text(out / "summary.md", to_markdown("Table 2 of the paper, reproduced", blocks))


def select(
    lines: Sequence[Line],
    angle: int,
    method: str,
    goal: tuple[str, float],
    kind: str = "default",
) -> Vector:
    """Return the errors of all repetitions."""
    return np.array(
        [
            line["errors"][kind]
            for line in lines
            if (line["angle"], line["method"], tuple(line["goal"])) == (angle, method, goal)
        ]
    )


def _angles(lines: Sequence[Line]) -> list[int]:
    return sorted({line["angle"] for line in lines})


def standard_error(errors: Vector) -> float:
    """Return the standard error of a mean; nothing is allowed for one repetition."""
    return float(errors.std(ddof=1) / np.sqrt(errors.size)) if errors.size > 1 else 0.0


def reaches(lines: Sequence[Line], angle: int, method: str) -> bool:
    """Tell whether our mean is at most the paper's plus one standard error."""
    return _is_within(select(lines, angle, method, MAIN), _paper(angle, method))


def _is_within(errors: Vector, bound: float) -> bool:
    return bool(errors.mean() <= bound + standard_error(errors) + 1e-12)


def _paper(angle: int, method: str) -> float:
    return PAPER[method][ANGLES.index(angle)]


def _beside(lines: Sequence[Line]) -> Table:
    columns = (
        "rotation",
        "PDASMD, paper",
        "PDASMD, ours",
        "OT-IT, paper",
        "Sinkhorn, ours",
        "PDASMD as good",
        "Sinkhorn as good",
    )
    rows = []
    for angle in _angles(lines):
        cells = [f"{angle}°"]
        for method in METHODS:
            errors = select(lines, angle, method, MAIN)
            cells += [f"{_paper(angle, method):.3f}", _spread(errors)]
        cells += ["yes" if reaches(lines, angle, method) else "**no**" for method in METHODS]
        rows.append(tuple(cells))
    return Table(columns, tuple(rows))


def _spread(errors: Vector) -> str:
    deviation = errors.std(ddof=1) if errors.size > 1 else 0.0
    return f"{errors.mean():.3f} ± {deviation:.3f}"


def _goal_text(method: str, goal: tuple[str, float]) -> str:
    names = {"pdasmd": "PDASMD", "sinkhorn": "Sinkhorn"}
    texts = {
        "none": "no adaptation",
        "reg": f"{names.get(method)}, η = {goal[1]:g}",
        "rtol": f"{names.get(method)}, certified to {goal[1]:.0%} of OT",
        "eps": f"{names.get(method)}, the paper's procedure, ε = {goal[1]:g}",
    }
    return texts[goal[0]]


def _sensitivity(lines: Sequence[Line], kind: str) -> Table:
    angles = _angles(lines)
    series = dict.fromkeys((line["method"], tuple(line["goal"])) for line in lines)
    rows = [
        ("*PDASMD, paper*", *(f"{_paper(a, 'pdasmd'):.3f}" for a in angles), "", ""),
        ("*OT-IT, paper*", *(f"{_paper(a, 'sinkhorn'):.3f}" for a in angles), "", ""),
    ]
    for method, goal in sorted(series, key=lambda s: (s[0] != "none", s[0], s[1])):
        found = [select(lines, a, method, goal, kind) for a in angles]
        rows.append(
            (
                _goal_text(method, goal),
                *(f"{errors.mean():.3f}" for errors in found),
                *(_n_within(found, angles, column) for column in METHODS),
            )
        )
    columns = ("", *(f"{a}°" for a in angles), "within PDASMD's", "within OT-IT's")
    return Table(columns, tuple(rows))


def _n_within(found: Sequence[Vector], angles: Sequence[int], column: str) -> str:
    """Return at how many angles errors are within a column of the paper."""
    pairs = zip(found, angles, strict=True)
    count = sum(_is_within(errors, _paper(angle, column)) for errors, angle in pairs)
    return f"{count} of {len(angles)}"


def _claims(lines: Sequence[Line]) -> Iterator[Claim]:
    angles = _angles(lines)
    for method, column in (("pdasmd", "PDASMD"), ("sinkhorn", "OT-IT")):
        good = [a for a in angles if reaches(lines, a, method)]
        yield Claim(
            f"errors as low as the column {column}",
            "Table 2",
            f"{len(good)} of {len(angles)} angles with `{method}`",
            verdict(len(good) == len(angles)),
        )
    yield Claim(
        "PDASMD has a lower error than Sinkhorn beyond 50°",
        "Appendix H",
        f"their mean errors differ by at most {_difference(lines):.4f} at the same η",
        verdict(all(_is_better(lines, a) for a in angles if a > 50)),
    )


def _is_better(lines: Sequence[Line], angle: int) -> bool:
    """Tell whether PDASMD's error is lower by more than a standard error of the difference."""
    first, second = (select(lines, angle, method, MAIN) for method in METHODS)
    return bool(second.mean() - first.mean() > standard_error(second - first))


def _difference(lines: Sequence[Line]) -> float:
    means = [[select(lines, a, m, MAIN).mean() for m in METHODS] for a in _angles(lines)]
    return float(max(abs(first - second) for first, second in means))


def _explanation(lines: Sequence[Line]) -> str:
    gaps = [line["gap"] for line in lines if line["method"] != "none" and line["goal"][0] == "reg"]
    count = sum(line["is_certified"] for line in lines if "is_certified" in line)
    total = sum("is_certified" in line for line in lines)
    return (
        f"{count} of {total} plans reached their certified target. At the same η the two methods "
        "solve one strictly convex problem, whose solution is unique: entropic gaps of at most "
        f"{max(gaps):.1g} are certified for every plan, and the classifiers trained on either "
        f"differ by at most {_difference(lines):.4f} in mean error. The differences between the "
        "paper's two columns are therefore not of the methods, but of the protocols behind them: "
        "the paper takes the column OT-IT from Courty et al., whose samples, regularisation and "
        "classifier need not be its own. The tables above show which choices make differences of "
        "that size: η (from 0.01 to 0.3) and the classifier. Cross-validation sees transported "
        "points only, where nothing tells labels that were carried onto the wrong moon from "
        "others; it chooses C = 100 where the default is C = 1 (seen on three samples at 40°), "
        "reproduces them, and with little regularisation its errors are close to the paper's "
        "column for PDASMD: a likely account of that column."
    )


_INTRODUCTION = (
    "150 labelled points of each moon (`make_moons`, noise 0.05) are the source; an independent "
    "sample of the same size, rotated about the centre of the moons, is the unlabelled target. "
    "The source is moved to the target by the barycentric map of a plan for the squared "
    "Euclidean distance, an SVM with Gaussian kernel is trained on it and tested on 2,000 further "
    "points of the target. This page was made from `solves.jsonl` by"
)
_CHOICES = (
    "The paper gives neither the noise of the moons, nor ε or η, nor the parameters of the SVM. "
    'η is in units of the squared distance; the largest cost is about 9. "Certified to 1 % of '
    'OT" is the unregularised problem, whose gap is proved. "The paper\'s procedure" is '
    '`stop="paper"`: η = ε/(4 log n), smoothed marginals and the printed stopping rule. '
    "η = 0.1 was fixed for the table above after a pilot of three repetitions on other samples, "
    "by their test errors, which nobody has in practice. The last two columns therefore count, "
    "for every choice, the angles at which the mean error is at most one standard error above "
    "each column of the paper."
)
