"""PDASMD beside Sinkhorn on Kullback-Leibler unbalanced problems, in operations.

    python benchmarks/unbalanced.py --out docs/results/unbalanced    # some minutes
    python benchmarks/unbalanced.py --toy                            # seconds, to see that it runs

Outer loops (sweeps) and operations, which no load of the machine changes, to a certified gap;
totals 1 and 1.4, largest cost 1, medians over seeds. Without an entropy both methods hold plans to
the last one by the same proximal term, whose η is varied.
"""

from __future__ import annotations

import argparse
import statistics
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import epsilot
from beyond import FAMILIES, PRICES, table
from epsilot.solvers.unbalanced_sinkhorn import TUNING
from epsilot_lab.document import write_text
from epsilot_lab.environment import machine, versions

METHODS: dict[str, dict[str, Any]] = {
    "unbalanced_sinkhorn": {"method": "unbalanced_sinkhorn"},
    "unbalanced_pdasmd": {"method": "unbalanced_pdasmd"},
    "the same, hybrid": {"method": "unbalanced_pdasmd", "hybrid": "sinkhorn"},
}
PROVED = {"method": "unbalanced_pdasmd", "is_adaptive": False, "batch_size": 1}
#: Relative gap without an entropy; η of the entropy, and the gap with one.
RTOL, REG, TOL = 0.01, 0.005, 1e-5
MOST = 5000


def cell(family: str, n: int, price: float, seeds: int, keywords: dict[str, Any]) -> str:
    """Return loops / operations in n², with a star where a run did not end."""
    loops, operations, star = [], [], ""
    for seed in range(seeds):
        M, a, b = FAMILIES[family](n, seed)
        limits = {"seed": seed, "n_threads": 1, "max_iter": MOST, "on_limit": "ignore"}
        result = epsilot.solve(M, a, 1.4 * b, unbalanced=price, **limits, **keywords)
        star = star if result.converged else "*"
        loops.append(result.n_iter)
        operations.append(result.work.operations / M.size)
    return f"{statistics.median(loops):.0f} / {statistics.median(operations):.0f}{star}"


def proximal_rows(sizes: Sequence[int], seeds: int) -> Iterator[tuple[str, ...]]:
    """Yield rows without an entropy, for the η of Sinkhorn, half (PDASMD's) and a quarter of it."""
    for family in FAMILIES:
        for n in sizes:
            for price in PRICES:
                usual = TUNING.high_price_eta if price > TUNING.high_price else TUNING.low_price_eta
                for share in (usual, usual / 2, usual / 4):
                    goal = {"rtol": RTOL, "step_share": share}
                    cells = (cell(family, n, price, seeds, goal | x) for x in METHODS.values())
                    yield family, f"{n}", f"{price:g}", f"{share:g}", *cells


def entropic_rows(sizes: Sequence[int], seeds: int) -> Iterator[tuple[str, ...]]:
    """Yield rows with an entropy; steps that are proved are tried at the smallest size."""
    goal = {"reg": REG, "tol": TOL}
    for family in FAMILIES:
        for n in sizes:
            for price in PRICES:
                cells = [cell(family, n, price, seeds, goal | x) for x in METHODS.values()]
                proved = cell(family, n, price, seeds, goal | PROVED) if n == sizes[0] else ""
                yield family, f"{n}", f"{price:g}", *cells, proved


def main(argv: Sequence[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--out", type=Path, help="a folder for summary.md")
    parser.add_argument("--toy", action="store_true", help="seconds, to see that it runs")
    asked = parser.parse_args(argv)
    sizes, seeds = ((16,), 1) if asked.toy else ((256, 1024), 3)
    facts = "; ".join(f"{name} {value}" for name, value in (machine() | versions()).items())
    names = " | ".join(METHODS)
    lines = [
        "# Unbalanced PDASMD",
        "`python benchmarks/unbalanced.py --out docs/results/unbalanced`",
        facts,
        f"Outer loops (sweeps) / operations in n², medians of {seeds} seeds; a star marks settings "
        f"in which a run was stopped at {MOST:,} loops. What it means: "
        "[Section 6](../../section6.md#unbalanced-problems).",
        f"## Without an entropy, to {RTOL:.0%}",
        *table(f"problem | n | λ | proximal η | {names}", proximal_rows(sizes, seeds)),
        f"## With reg = {REG:g}, to a gap of {TOL:g}",
        *table(f"problem | n | λ | {names} | proved steps, B = 1", entropic_rows(sizes, seeds)),
    ]
    text = "\n\n".join(lines).replace("|\n\n|", "|\n|") + "\n"
    print(text)
    if asked.out is not None:
        asked.out.mkdir(parents=True, exist_ok=True)
        write_text(asked.out / "summary.md", text)


if __name__ == "__main__":
    main()
