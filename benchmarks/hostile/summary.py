"""What a campaign came to: counts by part, kind, method and ending, and every defect."""

from __future__ import annotations

import json
import re
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any

from epsilot.files import write_atomically
from epsilot_lab.environment import machine, versions
from epsilot_lab.store import Line

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
    environment = {"command": command, "versions": versions(), "machine": machine()}
    compact = [[row[key] for key in (*KEYS, "count")] for row in found["cases"]]
    data = {
        **environment,
        "events": found["events"],
        "problems": found["problems"],
        "columns": [*KEYS, "count"],
        "cases": compact,
        "defects": found["defects"][:LISTED],
    }
    for name, text in {
        "summary.md": document(found, lines, environment),
        "counts.json": json.dumps(data, indent=0, ensure_ascii=False) + "\n",
    }.items():
        content = text.encode()
        write_atomically(folder / name, lambda file, content=content: file.write(content))


def document(found: dict[str, Any], lines: Sequence[Line], environment: dict[str, Any]) -> str:
    """Return the summary as text."""
    with_defects = sum("defects" in line for line in lines)
    used = ", ".join(f"{name} {number}" for name, number in environment["versions"].items())
    machine = environment["machine"]
    parts = [
        "# Campaign",
        f"{sum(found['problems'].values()):,} problems in {len(lines):,} cases"
        f"{_events(found['events'])}, **{with_defects:,} with a defect**.",
        f"`{environment['command']}`",
        f"{used}; {machine['processor']}, {machine['cores']} cores, {machine['system']}.",
        "## Defects",
        _defects(found["defects"]),
        "## Parts",
        _parts(found),
        *_tables(found["cases"]),
    ]
    return "\n\n".join(parts) + "\n"


def _events(events: dict[str, int]) -> str:
    """Return the signals sent, in words."""
    return "".join(f", {count:,} {name}" for name, count in sorted(events.items()))


def _parts(found: dict[str, Any]) -> str:
    """Return a table of cases and problems by part."""
    table: Counter[str] = Counter()
    for row in found["cases"]:
        table[row["part"]] += row["count"]
    body = [f"| {part} | {n:,} | {found['problems'][part]:,} |" for part, n in table.items()]
    return "\n".join(["| part | cases | problems |", "| --- | --- | --- |", *body])


def _tables(rows: Sequence[Line]) -> Iterator[str]:
    """Yield the counts of each part: how cases ended, by kind and by method."""
    for part in dict.fromkeys(row["part"] for row in rows):
        own = [row for row in rows if row["part"] == part]
        yield f"## {part}"
        for column in ("kind", "method"):
            if len({row[column] for row in own}) > 1:
                yield _table(own, column)


def _table(rows: Sequence[Line], column: str) -> str:
    """Return a table of counts by a column and by ending."""
    table: Counter[tuple[str, str]] = Counter()
    for row in rows:
        table[row[column], row["ending"]] += row["count"]
    names, endings = (sorted({key[k] for key in table}) for k in (0, 1))
    body = []
    for name in names:
        cells = [table[name, ending] for ending in endings]
        body.append([name, f"{sum(cells):,}", *(f"{n:,}" if n else "" for n in cells)])
    head = [[column, "cases", *endings], ["---"] * (len(endings) + 2)]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in head + body)


def _defects(rows: Sequence[Line]) -> str:
    if not rows:
        return "None."
    body = [
        f"| {row['part']} | {row['count']:,} | {row['defect'].replace('|', '¦')} "
        f"| {', '.join(row['cases'])} |"
        for row in rows[:LISTED]
    ]
    left = len(rows) - LISTED
    more = [f"\nand {left} more kinds."] if left > 0 else []
    return "\n".join(["| part | cases | defect | for example |", "|---" * 4 + "|", *body, *more])
