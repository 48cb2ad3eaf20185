"""Hostile cases by the thousand: no wrong certificate, no crash, no hang (docs/campaign.md).

python benchmarks/campaign.py --minutes 5                     # everyday use
python benchmarks/campaign.py --cases 100000 --parts solves   # a long run; continues if stopped
python benchmarks/campaign.py --case solves-1234              # one case again, with its story

Cases are drawn from a seed, run in worker processes under a watchdog, and stored one JSON line
each; a second call goes on where the first ended. Exits with 1 if any case shows a defect.
"""

from __future__ import annotations

import argparse
import json
import os
import shlex
import sys
import time
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from epsilot_lab.store import Line, Store
from hostile import summary
from hostile.cases import PARTS, Case, part_function
from hostile.workers import HANG_SECONDS, run_cases

#: Cases of each part in a round.
SHARES = {
    "kinds": 400,
    "batches": 12,
    "barycenters": 40,
    "losses": 25,
    "audits": 60,
    "estimators": 10,
    "cluster": 3,
    "limits": 2,
    "places": 2,
    "solves": 50,
    "scales": 30,
    "resume": 20,
    "kills": 1,
    "abuse": 30,
    "commands": 10,
}


def main(arguments: list[str] | None = None) -> int:
    options = parse(arguments)
    if options.case:
        return rerun(Case.named(options.case))
    options.store.parent.mkdir(parents=True, exist_ok=True)
    store = Store(options.store, ["case"])
    lines = run(store, options)
    if options.out is not None:
        summary.write(options.out, lines, command(options, len(lines)))
    report(lines, options.out)
    return int(any("defects" in line for line in lines))


def command(options: argparse.Namespace, count: int) -> str:
    """Return the command that draws the same cases, whatever ended this run."""
    words = ["python", "benchmarks/campaign.py", "--cases", str(count)]
    if options.parts != list(PARTS):
        words += ["--parts", *options.parts]
    return shlex.join(words + (["--seed", str(options.seed)] if options.seed else []))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--minutes", type=float, help="stop after so long (default 5)")
    parser.add_argument("--cases", type=int, help="stop after so many cases, stored ones included")
    parser.add_argument("--case", help="run one case here and tell all, e.g. solves-1234")
    parser.add_argument("--seed", type=int, default=0, help="draws other cases altogether")
    parser.add_argument("--jobs", type=int, default=os.cpu_count() or 1)
    parser.add_argument("--hang", type=float, default=HANG_SECONDS, help="seconds; then killed")
    parser.add_argument("--store", type=Path, default=Path("campaign.jsonl"))
    parser.add_argument("--out", type=Path, help="folder for summary.md and counts.json")
    options = parser.parse_args(arguments)
    if options.minutes is None and options.cases is None:
        options.minutes = 5.0
    return options


def drawn(parts: list[str], seed: int) -> Iterator[Case]:
    """Yield cases for ever, the parts mixed by their shares."""
    numbers = dict.fromkeys(parts, 0)
    while True:
        for part in parts:
            for _ in range(SHARES[part]):
                yield Case(part, numbers[part], seed)
                numbers[part] += 1


def run(store: Store, options: argparse.Namespace) -> list[Line]:
    """Run what the store lacks until time or cases are used up; return all lines."""
    end = time.monotonic() + 60 * options.minutes if options.minutes else float("inf")
    given: list[Case] = []

    def missing() -> Iterator[Case]:
        for case in drawn(options.parts, options.seed):
            if time.monotonic() > end or len(given) == options.cases:
                return
            given.append(case)
            if case not in store:
                yield case

    endings: Counter[str] = Counter()
    console = Console(stderr=True)
    columns = TextColumn("{task.completed:.0f} cases"), BarColumn(), TimeElapsedColumn()
    with Progress(*columns, TextColumn("{task.description}"), console=console) as progress:
        bar = progress.add_task("", total=options.cases)
        for line in run_cases(missing(), options.jobs, options.hang):
            store.append(line)
            endings["defects" if "defects" in line else line["ending"]] += 1
            words = ", ".join(f"{n:,} {name}" for name, n in endings.most_common())
            progress.update(bar, completed=len(given), description=words)
    return store.lines(given)


def report(lines: list[Line], out: Path | None) -> None:
    bad = [line for line in lines if "defects" in line]
    for row in summary.counts(bad)["defects"]:
        print(f"{row['count']:6,}  {row['part']}: {row['defect']}  ({row['cases'][0]})")
    where = f"; see {out / 'summary.md'}" if out else ""
    problems = sum(line.get("problems", 1) for line in lines)
    print(f"{problems:,} problems in {len(lines):,} cases, {len(bad):,} with a defect{where}")


def rerun(case: Case) -> int:
    """Run one case in this process, let its exceptions through and print all it found."""
    outcome = part_function(case.part)(case.generator())
    print(json.dumps(vars(outcome), indent=2, ensure_ascii=False))
    return int(bool(outcome.defects))


if __name__ == "__main__":
    sys.exit(main())
