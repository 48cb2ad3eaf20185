"""Interrupt, kill and resume runs; save results; damage the files of both."""

from __future__ import annotations

import io
import json
import os
import signal
import tempfile
import time
import zipfile
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import epsilot
from epsilot.engine import storage
from epsilot.engine.interrupts import forget_interrupts

from .arcs import draw_arc_weights, draw_cost
from .arcs import draw_kind as draw_arc_kind
from .kinds import SAFETY_SECONDS, draw_dense, draw_kind, draw_priced_kind
from .problems import (
    Array,
    CallRecord,
    CaseOutcome,
    Drawn,
    Rng,
    ask,
    is_free_of_clock,
    ordinary,
    pick,
)
from .proofs import FuzzKind, bit_defects
from .solves import METHODS, NEEDS_DENSE, NEEDS_LATTICE, NEEDS_ROWS, Goal, drawn_defects

# -- damaged files -----------------------------------------------------------------------------

#: Replacements for a field of a header.
WRONG = (
    None, True, -1, 0, 10**30, -(10**30), 1.5, float("nan"), float("inf"), -float("inf"), "", "x",
    [], [1], {}, {"x": 1},
)  # fmt: skip
DTYPES = ("float32", "float16", "int64", "int8", "complex128", "bool", "U4", "longdouble")
BOMB = 1 << 28  # bytes that a few kilobytes unpack to

Fields = dict[str, Any]
Keywords = dict[str, Any]


def spoil(rng: Rng, path: Path) -> str:
    """Spoil a file in one way, and say which.

    A digest would refuse nearly all of it, so most files are signed anew: what they hold must be
    looked at too.
    """
    way = str(rng.choice(list(WAYS)))
    what = WAYS[way](rng, path)
    if way in FORGEABLE and rng.random() < 0.7:
        forge(path)
        way += ", signed anew"
    return f"{way}: {what}"


def forge(path: Path) -> None:
    """Give a changed file the digest of what it now holds."""
    fields = read(path)
    header = str(fields.get("header", ""))
    rest = {name: x for name, x in fields.items() if name not in ("header", "digest")}
    fields["digest"] = np.array(storage._digest(header, rest))
    write(path, fields)


# -- bytes -------------------------------------------------------------------------------------


def flip(rng: Rng, path: Path) -> str:
    """Change a few bytes."""
    data = bytearray(path.read_bytes())
    places = rng.integers(len(data), size=int(rng.integers(1, 4)))
    for place in places:
        data[place] ^= int(rng.integers(1, 256))
    path.write_bytes(data)
    return f"at {places.tolist()}"


def cut(rng: Rng, path: Path) -> str:
    """Keep only the first bytes."""
    data = path.read_bytes()
    kept = int(rng.integers(len(data)))
    path.write_bytes(data[:kept])
    return f"{kept} of {len(data)} bytes"


def prolong(rng: Rng, path: Path) -> str:
    """Append bytes."""
    junk = rng.bytes(int(rng.integers(1, 1000)))
    path.write_bytes(path.read_bytes() + junk)
    return f"{len(junk)} bytes"


def replace_all(rng: Rng, path: Path) -> str:
    """Write something else altogether."""
    buffer = io.BytesIO()
    np.save(buffer, np.arange(5))
    contents = (b"PK\x03\x04", b"{}", buffer.getvalue(), bytes(1000), "η".encode() * 50)
    path.write_bytes(contents[rng.integers(len(contents))])
    return "other content"


# -- fields ------------------------------------------------------------------------------------


def read(path: Path) -> Fields:
    """Return all fields of an archive."""
    with np.load(path, allow_pickle=False) as file:
        return {name: file[name] for name in file.files}


def write(path: Path, fields: Fields) -> None:
    """Write an archive."""
    with path.open("wb") as file:
        np.savez(file, **fields)


def some_field(rng: Rng, fields: Fields) -> str:
    """Draw an array's name."""
    return str(rng.choice([name for name in fields if name not in ("header", "digest")]))


def drop(rng: Rng, path: Path) -> str:
    """Leave a field out."""
    fields = read(path)
    name = str(rng.choice(list(fields)))
    del fields[name]
    write(path, fields)
    return name


def reshape(rng: Rng, path: Path) -> str:
    """Shorten, lengthen or bend an array."""
    fields = read(path)
    name = some_field(rng, fields)
    x = fields[name]
    shapes: dict[str, Callable[[], Any]] = {
        "empty": lambda: x.ravel()[:0],
        "shorter": lambda: x.ravel()[: max(x.size - 1, 0)],
        "half": lambda: x[: len(x) // 2] if x.ndim else x,
        "longer": lambda: np.concatenate([x.ravel(), x.ravel()]),
        "column": lambda: x.reshape(-1, 1),
        "row": lambda: x.reshape(1, -1),
        "scalar": lambda: x.ravel()[0] if x.size else np.float64(0),
        "transposed": lambda: x.T.copy(),
    }
    how = str(rng.choice(list(shapes)))
    fields[name] = shapes[how]()
    write(path, fields)
    return f"{name} {how}"


def retype(rng: Rng, path: Path) -> str:
    """Change the type of an array."""
    fields = read(path)
    name, dtype = some_field(rng, fields), str(rng.choice(DTYPES))
    with np.errstate(all="ignore"):
        fields[name] = fields[name].astype(dtype)
    write(path, fields)
    return f"{name} to {dtype}"


def overwrite(rng: Rng, path: Path) -> str:
    """Fill an array, or one entry of it, with a number."""
    fields = read(path)
    name = some_field(rng, fields)
    number = rng.choice([np.nan, np.inf, -np.inf, -1.0, 0.0, 1e300, -1e300, 1e-310, 1.0, 1e9])
    x = fields[name].copy()
    with np.errstate(all="ignore"):
        if x.ndim and x.size and rng.random() < 0.5:
            x.flat[rng.integers(x.size)] = np.asarray(number).astype(x.dtype)
        else:
            x = np.full_like(x, np.asarray(number).astype(x.dtype))
    fields[name] = x
    write(path, fields)
    return f"{name} with {number}"


def exchange(rng: Rng, path: Path) -> str:
    """Exchange two arrays."""
    fields = read(path)
    one, two = some_field(rng, fields), some_field(rng, fields)
    fields[one], fields[two] = fields[two], fields[one]
    write(path, fields)
    return f"{one} and {two}"


def bomb(rng: Rng, path: Path) -> str:
    """Let an array unpack to far more than it should, or claim to."""
    fields = read(path)
    name = some_field(rng, fields)
    count = 10**13 if rng.random() < 0.7 else BOMB // 8
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (count,)}
    )
    del fields[name]
    write(path, fields)
    chunk = bytes(1 << 20)
    with (
        zipfile.ZipFile(path, "a", zipfile.ZIP_DEFLATED, compresslevel=1) as archive,
        archive.open(f"{name}.npy", "w") as file,
    ):
        file.write(head.getvalue())
        for _ in range(BOMB // len(chunk) if count == BOMB // 8 else 1):
            file.write(chunk)
    return f"{name} of {8 * count} bytes"


# -- headers -----------------------------------------------------------------------------------


def edit(rng: Rng, path: Path) -> str:
    """Remove or replace one field of the header."""
    fields = read(path)
    header = json.loads(str(fields["header"]))
    key = str(rng.choice(list(header)))
    if rng.random() < 0.2:
        del header[key]
        how = "removed"
    else:
        header[key] = WRONG[rng.integers(len(WRONG))]
        how = repr(header[key])
    fields["header"] = np.array(json.dumps(header))
    write(path, fields)
    return f"{key} {how}"


def improve(rng: Rng, path: Path) -> str:
    """Claim better bounds than were proved."""
    fields = read(path)
    header = json.loads(str(fields["header"]))
    names = [k for k in ("upper", "lower", "value", "lower_bound", "value_linear") if k in header]
    for name in names:
        header[name] = 0.0
    fields["header"] = np.array(json.dumps(header))
    write(path, fields)
    return f"{' and '.join(names)} 0"


def header_type(rng: Rng, path: Path) -> str:
    """Make the header something other than a JSON object."""
    fields = read(path)
    texts: tuple[Any, ...] = ("", "[]", "null", "{", "1", '{"format": 1}', np.arange(3), 7.5)
    which = int(rng.integers(len(texts)))
    fields["header"] = np.array(texts[which])
    write(path, fields)
    return repr(texts[which])


WAYS: dict[str, Callable[[Rng, Path], str]] = {
    "bytes flipped": flip,
    "cut": cut,
    "prolonged": prolong,
    "replaced": replace_all,
    "field dropped": drop,
    "field reshaped": reshape,
    "field retyped": retype,
    "field overwritten": overwrite,
    "fields exchanged": exchange,
    "unpacks to more": bomb,
    "header edited": edit,
    "bounds improved": improve,
    "header of another type": header_type,
}
FORGEABLE = [name for name in WAYS if name.startswith(("field", "header", "bounds"))]


# -- interrupted runs --------------------------------------------------------------------------

LIMITS: dict[str, Any] = {"max_seconds": 5.0, "on_limit": "ignore"}
#: Keywords of a target.
GOAL = ("eps", "rtol", "reg", "tol", "stop")
#: Epochs of the whole run and, at most, of its interrupted part.
EPOCHS, FIRST = 400, 60


def resume(rng: Rng) -> CaseOutcome:
    """Draw a run, interrupt it, and go on from its checkpoint in one of several ways."""
    problem = ordinary(rng)
    goal = draw_goal(rng)
    method = draw_method(rng, problem, goal)
    keywords = {**goal, "method": method, "seed": int(rng.integers(100)), **LIMITS}
    way = pick(rng, {"same call": 2, "another call": 4, "spoilt checkpoint": 4})
    outcome = CaseOutcome(way, method, label=f"{problem.label}; {goal}")
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "run.npz"
        stop = {"max_iter": int(rng.integers(1, FIRST))}
        if rng.random() < 0.3:
            stop = {"max_iter": EPOCHS, "callback": lambda record: rng.random() < 0.5}
        first = ask(solve, problem, {**keywords, **stop, "checkpoint": str(path)})
        outcome.blame(*first.defects)
        if not path.exists():
            outcome.ending = "no checkpoint"
            return outcome
        keywords |= {"max_iter": EPOCHS, "resume": str(path)}
        if way == "same call":
            return _same(outcome, problem, goal, keywords)
        if way == "another call":
            return _another(rng, outcome, problem, goal, keywords)
        how = spoil(rng, path)
        outcome.kind += f", {how.partition(':')[0]}"
        outcome.label += f"; {how}"
        return _judged(outcome, ask(solve, problem, keywords), problem, goal)


def solve(problem: Drawn, keywords: dict[str, Any]) -> epsilot.Result:
    """Call the library."""
    return epsilot.solve(problem.M, problem.a, problem.b, **keywords)


def draw_goal(rng: Rng) -> Goal:
    """Draw a target that takes some hundred epochs; costs are at most about one."""
    kind = pick(rng, {"eps": 3, "rtol": 2, "reg": 3, "paper": 1})
    if kind == "eps":
        return {"eps": float(10 ** rng.uniform(-7, -1))}
    if kind == "rtol":
        return {"rtol": float(10 ** rng.uniform(-6, -1))}
    if kind == "paper":
        return {"eps": float(10 ** rng.uniform(-1.5, -0.5)), "stop": "paper"}
    tol = {"tol": float(10 ** rng.uniform(-10, -4))} if rng.random() < 0.7 else {}
    return {"reg": float(10 ** rng.uniform(-3, 0)), **tol}


def draw_method(rng: Rng, problem: Drawn, goal: Goal) -> str:
    """Draw a method that can reach the goal."""
    names = ["auto", *METHODS]
    if "reg" in goal:
        names = [name for name in names if name == "auto" or METHODS[name].solves_entropic]
    unfit = {"dense": (), "lazy cloud": NEEDS_DENSE, "grid": NEEDS_ROWS}[problem.kind]
    if getattr(problem.M, "lattice", None) is None:
        unfit = (*unfit, *NEEDS_LATTICE)
    return str(rng.choice([name for name in names if name not in unfit]))


# -- ways to go on -----------------------------------------------------------------------------


def _same(outcome: CaseOutcome, problem: Drawn, goal: Goal, keywords: Keywords) -> CaseOutcome:
    """Go on by the same call, and compare with a run that nothing interrupted."""
    resumed = ask(solve, problem, keywords)
    whole = ask(solve, problem, {k: v for k, v in keywords.items() if k != "resume"})
    outcome.blame(*whole.defects)
    _judged(outcome, resumed, problem, goal)
    if resumed.value is None or whole.value is None:
        return outcome.blame(*([f"not resumed: {resumed.error}"] if resumed.is_refused else []))
    if is_free_of_clock(LIMITS["max_seconds"], resumed, whole):
        outcome.blame(*bit_defects(resumed.value, whole.value, "the resumed run"))
    return outcome


def _another(
    rng: Rng, outcome: CaseOutcome, problem: Drawn, goal: Goal, keywords: Keywords
) -> CaseOutcome:
    """Go on by a call that differs in its goal, its method, its seed or its problem."""
    what = str(rng.choice(["goal", "goal", "goal", "method", "seed", "M", "a", "scaled M"]))
    if what == "goal":
        goal = draw_goal(rng)
        kept = {k: v for k, v in keywords.items() if k not in GOAL}
        keywords = {**kept, **goal}
    elif what == "method":
        keywords["method"] = draw_method(rng, problem, goal)
    elif what == "seed":
        keywords["seed"] += 1
    else:
        problem = changed(rng, problem, what)
    outcome.kind += f", other {what}"
    outcome.label += f" then {goal}, {keywords['method']}"
    return _judged(outcome, ask(solve, problem, keywords), problem, goal)


def changed(rng: Rng, problem: Drawn, what: str) -> Drawn:
    """Return a problem that differs a little in one argument."""
    if what == "a":
        a = np.asarray(problem.weights[0], dtype=float).copy()
        i, j = rng.integers(len(a), size=2)
        part = float(rng.choice([1.0, 0.5, 1e-9])) * a[i]
        a[i], a[j] = a[i] - part, a[j] + part
        return problem.with_new(a=a, b=np.asarray(problem.weights[1], dtype=float))
    cost = problem.cost * 2 if what == "scaled M" else problem.cost.copy()
    cost.flat[rng.integers(cost.size)] += float(rng.choice([1.0, -0.5, 1e-12]))
    return problem.with_new(M=cost, cost=cost, kind="dense")


def _judged(outcome: CaseOutcome, answer: CallRecord, problem: Drawn, goal: Goal) -> CaseOutcome:
    """Accept a refusal, or a result that is right."""
    result = outcome.settled(answer)
    if result is None:
        return outcome
    outcome.blame(*drawn_defects(result, problem, goal, with_history=False))
    if not (result.n_iter >= 0 and 0 <= result.seconds < np.inf and result.work.operations >= 0):
        outcome.blame(f"counters {result.n_iter}, {result.seconds}, {result.work.operations}")
    return outcome


# -- killed runs -------------------------------------------------------------------------------

SIGNALS = {"SIGKILL": 3.0, "SIGTERM": 1.5, "SIGINT": 1.5}
KILLED_METHODS = (
    "sinkhorn",
    "pdasmd",
    "apdagd",
    "accelerated_sinkhorn",
    "aam",
    "apdrcd",
    "box_newton",
)
KILLED_EPOCHS = 300
MOST_KILLS = 4
#: Exit code of a forked run whose signal found no handler of the library.
RUDE = 77


def kills(rng: Rng) -> CaseOutcome:
    """Draw a run, kill it a few times, finish it, and compare."""
    n, m = (int(k) for k in rng.integers(60, 160, 2))
    M, a, b = rng.random((n, m)), rng.dirichlet(np.ones(n)), rng.dirichlet(np.ones(m))
    method = str(rng.choice(KILLED_METHODS))
    goal = {"reg": 0.005, "tol": 1e-9} if rng.random() < 0.3 else {"eps": 1e-7}
    keywords = {
        "method": method,
        "max_iter": KILLED_EPOCHS,
        "seed": int(rng.integers(100)),
        **goal,
    }
    outcome = CaseOutcome("forked", method, label=f"{n} x {m} {keywords}")
    with tempfile.TemporaryDirectory() as folder:
        run = Forked(Path(folder), M, a, b, keywords)
        seconds = run.reference()
        for _ in range(int(rng.integers(1, MOST_KILLS + 1))):
            name = pick(rng, SIGNALS)
            outcome.label += f", {name}"
            outcome.events[name] = outcome.events.get(name, 0) + 1
            outcome.blame(*run.killed(getattr(signal, name), rng.uniform(0, seconds)))
        outcome.ending = "resumed" if run.checkpoint.exists() else "started again"
        return outcome.blame(*run.finished())


class Forked:
    """A run in a child of this process."""

    def __init__(self, folder: Path, M: Any, a: Any, b: Any, keywords: dict[str, Any]) -> None:
        self.folder, self.problem, self.keywords = folder, (M, a, b), keywords
        self.checkpoint = folder / "run.npz"
        self.result: Any = None

    def solve(self, **changes: Any) -> epsilot.Result:
        """Solve with one thread, as forked processes must."""
        return epsilot.solve(
            *self.problem, **self.keywords, n_threads=1, on_limit="ignore", **changes
        )

    def again(self) -> epsilot.Result:
        """Start the run, or continue it if it was saved."""
        saved = {"resume": str(self.checkpoint)} if self.checkpoint.exists() else {}
        return self.solve(checkpoint=str(self.checkpoint), **saved)

    def reference(self) -> float:
        """Solve without interruption and return the seconds that takes with a checkpoint."""
        self.result = self.solve()
        began = time.perf_counter()
        self.solve(checkpoint=str(self.folder / "timing.npz"))
        (self.folder / "timing.npz").unlink(missing_ok=True)
        return time.perf_counter() - began

    def killed(self, number: int, after: float) -> list[str]:
        """Run in a child, send a signal, and say what it left behind that it should not have."""
        child = os.fork()
        if child == 0:
            self._child()
        time.sleep(after)
        os.kill(child, number)
        _, status = os.waitpid(child, 0)
        found = file_defects(self.checkpoint)
        if os.waitstatus_to_exitcode(status) == RUDE:
            found.append(f"{signal.Signals(number).name} was not handled in the middle of a run")
        return found

    def _child(self) -> None:
        """Run; a signal that reaches us in the middle of the loop was not handled there."""

        def unhandled(number: int, frame: Any) -> None:
            names = set()
            while frame is not None:
                names.add(frame.f_code.co_name)
                frame = frame.f_back
            os._exit(RUDE if "drive" in names else 0)

        try:
            forget_interrupts()  # those of the parent
            for number in (signal.SIGINT, signal.SIGTERM):
                signal.signal(number, unhandled)
            self.again()
        finally:
            os._exit(0)

    def finished(self) -> list[str]:
        """Finish the run here and compare it with the uninterrupted one."""
        answer = ask(self.again)
        found = answer.defects
        if answer.value is None:
            return found or [f"not resumed: {answer.error}"]
        found += bit_defects(answer.value, self.result, "the resumed run")
        return found + draft_defects(self.folder, {"run.npz"})


def file_defects(path: Path) -> list[str]:
    """Say whether a file is half written."""
    if not path.exists():
        return []
    try:
        with np.load(path) as file:
            for name in file.files:
                file[name]
    except Exception as error:
        return [f"a half-written file: {type(error).__name__}"]
    return []


def draft_defects(folder: Path, expected: set[str]) -> list[str]:
    """Name what a finished run has left lying about."""
    left = sorted({path.name for path in folder.iterdir()} - expected)
    return [f"files left behind: {len(left)} drafts"] if left else []


SAVED_LIMITS = {"max_seconds": SAFETY_SECONDS, "max_iter": 200, "on_limit": "ignore"}
#: Fields that are read as they were written.
FIELDS = (
    "value", "value_linear", "lower_bound", "gap", "converged", "status", "method", "reg", "seed",
    "n_iter", "marginal_error", "target", "mass_price", "problem_hash", "choice",
)  # fmt: skip


def saved(rng: Rng) -> CaseOutcome:
    """Draw a problem, save its result, and read it with its problem, without, or damaged."""
    M, a, b, kind, drawn = draw_problem(rng)
    keywords = kind.keywords
    outcome = CaseOutcome(kind.label, label=f"{drawn}; {keywords}")
    answer = ask(epsilot.solve, M, a, b, **keywords, **SAVED_LIMITS)
    if answer.value is None:
        outcome.ending = "refused" if answer.is_refused else "raised"
        return outcome.blame(*(answer.defects if not answer.is_refused else []))
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "result.npz"
        answer.value.save(path)
        way = pick(rng, {"alone": 3, "with its problem": 4, "another problem": 2, "damaged": 4})
        outcome.ending = way
        given = () if way in ("alone", "damaged") else (M, a, b)
        if way == "another problem":
            given = (M, a, b * (1 + 1e-9 * (np.arange(b.size) == 0)))
        if way == "damaged":
            outcome.label += "; " + spoil(rng, path)
        words = {name: x for name, x in keywords.items() if name != "reg" and given}
        read = ask(epsilot.Result.load, path, *given, **words)
    outcome.blame(*read.defects)
    if way == "damaged":
        return outcome
    if way == "another problem":
        is_other = b.size > 1 and given[2][0] != b[0] and b[0] > 1e-3 * b.sum()
        if is_other and read.value is not None and kind.name != "balanced":
            outcome.blame("the result of another problem was read as that of this one")
        return outcome
    if read.value is None:
        return outcome.blame(f"a saved result was refused: {read.error}")
    return outcome.blame(*differences(answer.value, read.value, a, b, way))


def differences(first: Any, second: Any, a: Array, b: Array, way: str) -> Iterator[str]:
    """Yield where a result that was read differs from the one that was saved."""
    for name in FIELDS:
        was, now = getattr(first, name), getattr(second, name)
        if was != now and not (was != was and now != now):
            yield f"{name} was {was!r} and is read as {now!r}"
    pairs = list(zip(first.potentials, second.potentials, strict=True))
    if way != "alone" or can_show(second):
        pairs.append((first.plan, second.plan))
    if any(x.tobytes() != y.tobytes() for x, y in pairs):
        yield "the plan or the potentials differ in their bits"


def can_show(result: Any) -> bool:
    """Tell whether a plan needs no costs: those of potentials do."""
    return ask(lambda: result.plan).error is None


def draw_problem(rng: Rng) -> tuple[Any, Array, Array, FuzzKind, str]:
    """Draw a dense problem of any kind, one with prices per point, or one on arcs."""
    how = pick(rng, {"any": 4, "prices": 2, "arcs": 2})
    if how == "arcs":
        cost = draw_cost(rng, *(int(k) for k in rng.integers(1, 9, 2)))
        a, b, words = draw_arc_weights(rng, cost.matrix)
        kind = draw_arc_kind(rng, cost.matrix, a, b)
        return cost.given, a, b, kind, f"{cost.words}, {words}"
    C, a, b, words = draw_dense(rng)
    make = draw_kind if how == "any" else draw_priced_kind
    return C, a, b, make(rng, C, a, b), words
