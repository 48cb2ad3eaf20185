"""Run cases of the fuzzing campaign in worker processes, and summarise them (docs/campaign.md).

    python -m epsilot_lab campaign --minutes 5                     # everyday use
    python -m epsilot_lab campaign --cases 100000 --parts solves   # continues a stopped run
    python -m epsilot_lab campaign --case solves-1234              # repeat one case verbosely

Cases are drawn from a seed. Each becomes one JSON line, so that a second call continues where the
first ended. The exit code is 1 if a case shows a defect.
"""

from __future__ import annotations

import argparse
import json
import os
import re
import resource
import shlex
import sys
import tempfile
import time
import traceback
import zlib
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import closing
from importlib import import_module
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from ..document import (
    Block,
    Command,
    Heading,
    Paragraph,
    Table,
    environment_table,
    to_markdown,
    write_text,
)
from ..environment import machine, versions
from ..store import Line, Store
from ..worker import ONE_BLAS_THREAD, Late, Reply, Worker, follow_parent, replies
from .problems import CaseOutcome, first_line

# -- cases -------------------------------------------------------------------------------------

#: part -> module:function
PARTS = {
    "solves": "solves:solves",
    "scales": "scales:scales",
    "resume": "resume:resume",
    "kills": "resume:kills",
    "kinds": "kinds:kinds",
    "prices": "kinds:prices",
    "arcs": "arcs:arcs",
    "graphs": "arcs:graphs",
    "metrics": "metrics:metrics",
    "gromov": "gromov:gromov",
    "saved": "resume:saved",
    "batches": "batches:batches",
    "barycenters": "barycenters:barycenters",
    "losses": "losses:losses",
    "audits": "kinds:audits",
    "estimators": "estimators:estimators",
    "cluster": "batches:cluster",
    "limits": "limits:limits",
    "abuse": "abuse:abuse",
    "commands": "commands:commands",
}


class Case(NamedTuple):
    """The ``number``-th case of a part."""

    part: str
    number: int
    seed: int = 0

    @property
    def key(self) -> str:
        """The name under which its line is kept, and by which it is run again."""
        return f"{self.part}-{self.number}" + (f"-{self.seed}" if self.seed else "")

    @property
    def identity(self) -> Line:
        """The fields that distinguish its line from all others."""
        return {"case": self.key}

    @classmethod
    def named(cls, text: str) -> Case:
        """Return the case with a name."""
        part, number, *seed = text.split("-")
        return cls(part, int(number), *map(int, seed))

    def generator(self) -> np.random.Generator:
        """Return the generator from which everything in the case is drawn."""
        return np.random.default_rng([self.seed, zlib.crc32(self.part.encode()), self.number])


def part_function(part: str) -> Callable[[np.random.Generator], CaseOutcome]:
    """Return the function that runs cases of a part."""
    module, _, name = PARTS[part].partition(":")
    found: Callable[[np.random.Generator], CaseOutcome] = getattr(
        import_module(f".{module}", __package__), name
    )
    return found


def run_case(case: Case) -> Line:
    """Run a case here and return its line; a failure of the campaign itself is a defect too."""
    began = time.perf_counter()
    try:
        with np.errstate(all="ignore"):  # ours; the library's warnings are recorded by `ask`
            outcome = part_function(case.part)(case.generator())
    except Exception as error:
        where = traceback.extract_tb(error.__traceback__)[-1]
        text = f"the check failed: {type(error).__name__}: {first_line(error)} ({where.name})"
        outcome = CaseOutcome("-", ending="failed", defects=[text])
    return line_of(case, outcome, time.perf_counter() - began)


def line_of(case: Case, outcome: CaseOutcome, seconds: float) -> Line:
    """Return what is stored of a case."""
    line: Line = {
        "case": case.key,
        "part": case.part,
        "kind": outcome.kind,
        "method": outcome.method,
        "ending": outcome.ending,
        "seconds": round(seconds, 3),
        "problems": outcome.problems,
    }
    if outcome.events:
        line["events"] = outcome.events
    if outcome.defects:
        line |= {"defects": outcome.defects, "label": outcome.label}
    return line


# -- workers -----------------------------------------------------------------------------------

HANG_SECONDS = 60.0
#: Address space of a worker: what asks for more memory than this gets a MemoryError.
MEMORY = 12 << 30
CACHE = os.environ.get("NUMBA_CACHE_DIR", str(Path.home() / ".cache" / "epsilot-campaign"))


def serve(pipe: Connection, folder: str) -> None:
    """Run cases as they come, in a folder of scratch files, until the other end goes away."""
    follow_parent()
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    os.environ["TMPDIR"] = tempfile.tempdir = folder
    os.chdir(folder)
    while True:
        try:
            case = pipe.recv()
        except EOFError:
            return
        pipe.send(run_case(case))


def run_cases(
    cases: Iterator[Case],
    jobs: int,
    hang_seconds: float = HANG_SECONDS,
    *,
    cache: str | None = CACHE,
    serve: Callable[[Connection, str], None] = serve,
) -> Iterator[Line]:
    """Yield the lines of cases as they end.

    A case that hangs is tried once more, since the first use of a kernel compiles it. Each
    worker has its own part of the kernel ``cache``: two that compile one kernel at the same
    moment can spoil it.
    """
    with tempfile.TemporaryDirectory(prefix="campaign-", ignore_cleanup_errors=True) as scratch:
        workers = []
        for number in range(jobs):
            folder = Path(scratch) / str(number)
            folder.mkdir()
            own = {} if cache is None else {"NUMBA_CACHE_DIR": f"{cache}/worker-{number}"}
            workers.append(Worker(serve, str(folder), variables={**ONE_BLAS_THREAD, **own}))
        with closing(replies(cases, workers, hang_seconds, retries=1)) as found:
            for reply in found:
                yield _line(reply)


def _line(reply: Reply[Case, Line]) -> Line:
    """Return the line of a case that has ended, crashed or hung."""
    if reply.answer is not None:
        return reply.answer
    is_late = isinstance(reply.failure, Late)
    text = f"{reply.failure}, twice" if is_late else str(reply.failure)
    outcome = CaseOutcome("-", ending="hung" if is_late else "crashed", defects=[text])
    return line_of(reply.request, outcome, reply.seconds)


# -- summary -----------------------------------------------------------------------------------

#: Cases named for one defect, and defects listed, at most.
NAMED, LISTED = 5, 60
_NUMBER = re.compile(r"(?<![A-Za-z_])[-+]?\d[\d.]*(e[-+]?\d+)?")


def defect_class(text: str) -> str:
    """Return a defect without its numbers, so that equal ones are counted together."""
    return _NUMBER.sub("#", text)[:160]


def counts(lines: Iterable[Line]) -> dict[str, Any]:
    """Count cases by part, kind, method and ending, and defects by class."""
    table: Counter[tuple[str, str, str, str]] = Counter()
    events: Counter[str] = Counter()
    problems: Counter[str] = Counter()
    defects: dict[tuple[str, str], list[str]] = defaultdict(list)
    for line in lines:
        events.update(line.get("events", {}))
        problems[line["part"]] += line.get("problems", 1)
        table[line["part"], line["kind"], line["method"], line["ending"]] += 1
        for text in {defect_class(text) for text in line.get("defects", ())}:
            defects[line["part"], text].append(line["case"])
    return {
        "events": dict(events),
        "problems": dict(problems),
        "cases": [
            {**dict(zip(KEYS, key, strict=True)), "count": n} for key, n in sorted(table.items())
        ],
        "defects": [
            {"part": part, "defect": text, "count": len(cases), "cases": cases[:NAMED]}
            for (part, text), cases in sorted(defects.items(), key=lambda x: -len(x[1]))
        ],
    }


KEYS = ("part", "kind", "method", "ending")


def write(folder: Path, lines: Sequence[Line], command: str) -> None:
    """Write ``summary.md`` and ``counts.json``."""
    folder.mkdir(parents=True, exist_ok=True)
    found = counts(lines)
    data = {
        "command": command,
        "versions": versions(),
        "machine": machine(),
        "events": found["events"],
        "problems": found["problems"],
        "columns": [*KEYS, "count"],
        "cases": [[row[key] for key in (*KEYS, "count")] for row in found["cases"]],
        "defects": found["defects"][:LISTED],
    }
    write_text(folder / "summary.md", page(found, lines, command))
    write_text(folder / "counts.json", json.dumps(data, indent=0, ensure_ascii=False) + "\n")


def page(found: dict[str, Any], lines: Sequence[Line], command: str) -> str:
    """Return the summary as text."""
    with_defects = sum("defects" in line for line in lines)
    events = "".join(f", {count:,} {name}" for name, count in sorted(found["events"].items()))
    cases: Counter[str] = Counter()
    for row in found["cases"]:
        cases[row["part"]] += row["count"]
    blocks: list[Block] = [
        Paragraph(
            f"{sum(found['problems'].values()):,} problems in {len(lines):,} cases{events}, "
            f"**{with_defects:,} with a defect**."
        ),
        Command(command),
        Heading("Defects"),
        _defects(found["defects"]),
        Heading("Parts"),
        Table(
            ("part", "cases", "problems"),
            tuple((part, f"{n:,}", f"{found['problems'][part]:,}") for part, n in cases.items()),
        ),
    ]
    for part in cases:
        own = [row for row in found["cases"] if row["part"] == part]
        blocks.append(Heading(part))
        varied = [c for c in ("kind", "method") if len({row[c] for row in own}) > 1]
        blocks += [_table(own, column) for column in varied]
    blocks += [Heading("Environment"), environment_table([])]
    return to_markdown("Campaign", blocks)


def _table(rows: Sequence[Line], column: str) -> Table:
    """Return a table of counts by a column and by ending."""
    table: Counter[tuple[str, str]] = Counter()
    for row in rows:
        table[row[column], row["ending"]] += row["count"]
    names, endings = (sorted({key[k] for key in table}) for k in (0, 1))
    body = []
    for name in names:
        cells = [table[name, ending] for ending in endings]
        body.append((name, f"{sum(cells):,}", *(f"{n:,}" if n else "" for n in cells)))
    return Table((column, "cases", *endings), tuple(body))


def _defects(rows: Sequence[Line]) -> Block:
    if not rows:
        return Paragraph("None.")
    body = tuple(
        (row["part"], f"{row['count']:,}", row["defect"], ", ".join(row["cases"]))
        for row in rows[:LISTED]
    )
    more = f"and {len(rows) - LISTED} more kinds." if len(rows) > LISTED else ""
    return Table(("part", "cases", "defect", "for example"), body, more)


# -- the command -------------------------------------------------------------------------------

DESCRIPTION = "Fuzz epsilot: find wrong certificates, crashes and hangs."
#: Cases of each part in a round.
SHARES = {
    "kinds": 400,
    "prices": 60,
    "arcs": 50,
    "graphs": 30,
    "metrics": 20,
    "gromov": 5,
    "saved": 15,
    "batches": 60,
    "barycenters": 40,
    "losses": 25,
    "audits": 60,
    "estimators": 10,
    "cluster": 3,
    "limits": 2,
    "solves": 50,
    "scales": 30,
    "resume": 20,
    "kills": 1,
    "abuse": 30,
    "commands": 10,
}


def main(arguments: list[str] | None = None) -> int:
    """Run cases, report defects, and return 1 if there are any."""
    options = parse(arguments)
    if options.case:
        return rerun(Case.named(options.case))
    options.store.parent.mkdir(parents=True, exist_ok=True)
    store = Store(options.store, ["case"])
    lines = run(store, options)
    if options.out is not None:
        write(options.out, lines, command(options, len(lines)))
    report(lines, options.out)
    return int(any("defects" in line for line in lines))


def command(options: argparse.Namespace, count: int) -> str:
    """Return the command that draws the same cases, whatever ended this run."""
    words = ["python", "benchmarks/campaign.py", "--cases", str(count)]
    if options.parts != list(PARTS):
        words += ["--parts", *options.parts]
    return shlex.join(words + (["--seed", str(options.seed)] if options.seed else []))


def parse(arguments: list[str] | None) -> argparse.Namespace:
    """Parse the command line."""
    parser = argparse.ArgumentParser(description=DESCRIPTION)
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
    """Print the defects and the totals."""
    bad = [line for line in lines if "defects" in line]
    for row in counts(bad)["defects"]:
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
