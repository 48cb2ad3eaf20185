"""Run commands with wrong words: exit code 2 and one sentence, and no half-written file."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import subprocess
import sys
import tempfile
import traceback
import warnings
from pathlib import Path

import numpy as np
from PIL import Image

from epsilot.cli import main

from .problems import CaseOutcome, Rng, first_line

COMMAND = (sys.executable, "-c", "from epsilot.cli import main; main()")
NUMBERS = ("0.1", "1", "3", "0", "-1", "nan", "inf", "x", "", "1e400", "1e-320", "1.5", "1e3")
COSTS = (
    "M.npy", "M.npy", "M.npy", "M.csv", "all.npz:M", "all.npz", "all.npz:c", "none.npy", ".", "",
    "empty.csv", "word.csv", "nan.npy", "objects.npy", "scalar.npy", "bomb.npy", "cut.npy",
    "deep.npy", "complex.npy", "words.npy", "notes.docx", "binary.csv", "x.csv", "one.png",
    "/dev/null", "zip.npz", "ragged.csv", "header.csv",
)  # fmt: skip
VECTORS = ("a.npy", "b.csv", "M.npy", "none.npy", "nan.npy", "scalar.npy", "a2.npy", "words.npy")
POINTS = ("x.csv", "y.txt", "M.npy", "nan.npy", "scalar.npy", "deep.npy", "none.csv", "one.png")
IMAGES = ("one.png", "two.png", "black.png", "small.png", "broken.png", "M.npy", "none.png", ".")
OUTPUTS = ("out.npz", "out.npz", "none/out.npz", ".", "", "/dev/full", "/proc/x", "x" * 300)
PICTURES = ("out.png", "out.svg", "out.doc", "out", "none/out.png", ".", "/dev/full")
FILES = ("none.npz", "all.npz", "M.npy", ".", "zip.npz", "empty.csv", "checkpoint.npz")
WORDS = ("auto", "sinkhorn", "exact", "pdasmd", "sinkorn", "", "all", "x,y", "-", "η")
METRICS = ("sqeuclidean", "euclidean", "cosine", "euclid", "", "cityblock")
OPTIONS = (
    "batch_size=2", "batch_size=1e3", "batch_size=1.5", "batch_size=x", "batch_size=", "eps=1",
    "batch_size", "=", "", "average=x", "norm=x", "inner_loops=1000000000000", "max_pivots=-1",
)  # fmt: skip
PROBLEM = {
    "--cost": (COSTS,),
    "--points": (POINTS, POINTS),
    "--images": (IMAGES, IMAGES),
    "--metric": (METRICS,),
    "--a": (VECTORS,),
    "--b": (VECTORS,),
    "--normalize": (),
    "--json": (),
}
TARGETS = {f"--{name}": (NUMBERS,) for name in ("eps", "rtol", "reg", "tol", "max-iter", "seed")}
#: Words that keep a command short, and its options with the words that may follow.
GRAMMAR: dict[str, tuple[tuple[str, ...], dict[str, tuple[tuple[str, ...], ...]]]] = {
    "solve": (
        ("--max-seconds", "0.5"),
        {**PROBLEM, **TARGETS, "--method": (WORDS,), "--stop": (("paper", "x", ""),),
         "--option": (OPTIONS,), "--threads": (NUMBERS,), "--out": (OUTPUTS,),
         "--checkpoint": (OUTPUTS,), "--resume": (FILES,), "--plot": (PICTURES,)},
    ),
    "certify": (
        (),
        {**PROBLEM, "--plan": (COSTS,), "--potentials": (VECTORS, VECTORS), "--result": (FILES,)},
    ),
    "compare": (
        ("--max-seconds", "0.2"),
        {**PROBLEM, **TARGETS, "--methods": (("exact,sinkhorn", "exakt", ",", "", "exact,"),),
         "--plot": (PICTURES,)},
    ),
    "transfer": (
        ("--colors", "4", "--max-seconds", "0.5"),
        {"one.png": (), "two.png": (), "broken.png": (), "none.png": (), "-o": (PICTURES,),
         "--back": (PICTURES,), "--palette": (("sample", "x", ""),), "--smoothing": (NUMBERS,),
         **TARGETS, "--method": (WORDS,)},
    ),
    "demo": (("--side", "1"), {"--eps": (NUMBERS,), "--seed": (NUMBERS,), "--out": (PICTURES,)}),
    "methods": ((), {"--json": (), "x": (), "--nothing": ()}),
    "reproduce": (
        ("nothing",), {"--data": (COSTS,), "--seeds": (NUMBERS,), "--out": (OUTPUTS,)},
    ),
    "bench": (
        ("--sizes", "none"), {"--solvers": (WORDS,), "--rtol": (NUMBERS,), "--out": (OUTPUTS,)},
    ),
    "nothing": ((), {"--cost": (COSTS,), "--version": (), "--help": ()}),
}  # fmt: skip
#: Files that a command may write when it succeeds.
MAY_APPEAR = {"out.npz", "out.png", "out.svg", "out"}


def commands(rng: Rng) -> CaseOutcome:
    """Draw a command and judge what it prints, returns and leaves behind."""
    words = draw_words(rng)
    outcome = CaseOutcome(words[0], label=f"epsilot {' '.join(map(repr, words[1:]))}")
    with tempfile.TemporaryDirectory() as name, contextlib.chdir(name):
        folder = Path(name)
        furnish(folder)
        before = snapshot(folder)
        as_process = rng.random() < 0.02
        code, out, err, defects = (run_process if as_process else run_here)(words)
        outcome.blame(*defects)
        outcome.ending = f"exit {code}"
        outcome.blame(*exit_defects(code, out, err, "--json" in words))
        outcome.blame(*folder_defects(code, before, snapshot(folder)))
    return outcome


def draw_words(rng: Rng) -> list[str]:
    """Draw a command line."""
    names = list(GRAMMAR)
    shares = np.array(
        [8.0 if name == "solve" else 3.0 if name == "certify" else 1.0 for name in names]
    )
    command = names[rng.choice(len(names), p=shares / shares.sum())]
    fixed, options = GRAMMAR[command]
    words = [command, *fixed]
    if "--cost" in options and rng.random() < 0.6:
        words += ["--cost", "M.npy"]
    count = min(len(options), int(rng.integers(0, 4)))
    for option in rng.choice(list(options), size=count, replace=False):
        words.append(str(option))
        words += [str(rng.choice(pool)) for pool in options[str(option)]]
    return words


def furnish(folder: Path) -> None:
    """Fill a folder with one problem in many forms, most of them broken."""
    rng = np.random.default_rng(0)
    M = rng.random((4, 5))
    arrays = {
        "M": M,
        "a": np.full(4, 0.25),
        "a2": np.full(4, 0.5),
        "scalar": np.array(3.0),
        "nan": np.where(M < 0.2, np.nan, M),
        "deep": M[None],
        "complex": M + 0j,
        "words": M.astype(str),
    }
    for name, x in arrays.items():
        np.save(folder / f"{name}.npy", x)
    np.save(folder / "objects.npy", np.array([None]), allow_pickle=True)
    np.savez(folder / "all.npz", M=M, a=arrays["a"], b=np.full(5, 0.2))
    np.savetxt(folder / "M.csv", M, delimiter=",")
    np.savetxt(folder / "b.csv", np.full(5, 0.2))
    np.savetxt(folder / "x.csv", rng.random((4, 2)), delimiter=",")
    np.savetxt(folder / "y.txt", rng.random((5, 2)))
    whole = (folder / "M.npy").read_bytes()
    texts = {
        "cut.npy": whole[:-9],
        "empty.csv": b"",
        "word.csv": b"1,2\nword,3\n",
        "ragged.csv": b"1,2\n3\n",
        "header.csv": b"a,b\n",
        "binary.csv": bytes(range(256)),
        "notes.docx": b"PK",
        "zip.npz": b"PK\x03\x04",
        "broken.png": b"\x89PNG\r\n\x1a\n",
        "checkpoint.npz": (folder / "all.npz").read_bytes(),
    }
    head = io.BytesIO()
    np.lib.format.write_array_header_1_0(
        head, {"descr": "<f8", "fortran_order": False, "shape": (10**6, 10**6)}
    )
    texts["bomb.npy"] = head.getvalue() + bytes(64)
    for name, content in texts.items():
        (folder / name).write_bytes(content)
    pixels = {
        "one": rng.integers(0, 255, (3, 4)),
        "two": rng.integers(0, 255, (3, 4)),
        "black": np.zeros((3, 4)),
        "small": np.ones((1, 1)),
    }
    for name, x in pixels.items():
        Image.fromarray(x.astype(np.uint8)).save(folder / f"{name}.png")


def snapshot(folder: Path) -> dict[str, str]:
    """Return what a folder holds."""
    return {
        path.name: hashlib.sha256(path.read_bytes()).hexdigest() if path.is_file() else "folder"
        for path in folder.iterdir()
    }


Ran = tuple[int, str, str, list[str]]


def run_here(words: list[str]) -> Ran:
    """Run a command in this process, as the shell would."""
    out, err, found = io.StringIO(), io.StringIO(), []
    argv, sys.argv = sys.argv, ["epsilot", *words]
    code = 0
    try:
        with (
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(record=True) as caught,
        ):
            warnings.simplefilter("always")
            try:
                main()
            except SystemExit as ended:
                code = ended.code if isinstance(ended.code, int) else int(bool(ended.code))
            except BaseException as error:
                where = traceback.extract_tb(error.__traceback__)[-1]
                found.append(f"raised {type(error).__name__}: {first_line(error)} ({where.name})")
                code = -1
    finally:
        sys.argv = argv
    found += [
        f"warned: {w.category.__name__}: {w.message}"
        for w in caught
        if not issubclass(w.category, ResourceWarning)
    ]
    return code, out.getvalue(), err.getvalue(), found


def run_process(words: list[str]) -> Ran:
    """Run a command as a process."""
    done = subprocess.run(
        [*COMMAND, *words],
        capture_output=True,
        text=True,
        stdin=subprocess.DEVNULL,
        env={**os.environ, "COLUMNS": "200"},
    )
    return done.returncode, done.stdout, done.stderr, []


def exit_defects(code: int, out: str, err: str, is_json: bool) -> list[str]:
    """Say what is wrong with the way a command ended."""
    found = []
    if code not in (-1, 0, 1, 2):
        found.append(f"exit code {code}")
    if "Traceback" in err:
        found.append(f"a traceback: {err.strip().splitlines()[-1][:150]}")
    if code == 2:
        if out:
            found.append(f"printed beside its refusal: {out[:80]!r}")
        if err.startswith("epsilot: ") and not (err.count("\n") == 1 and err.endswith(".\n")):
            found.append(f"not one sentence: {err[:200]!r}")
        if not err.strip():
            found.append("refused without a word")
    if code in (0, 1) and is_json:
        try:
            json.loads(out, parse_constant=lambda name: (_ for _ in ()).throw(ValueError(name)))
        except ValueError as error:
            found.append(f"not JSON: {error}")
    return found


def folder_defects(code: int, before: dict[str, str], after: dict[str, str]) -> list[str]:
    """Say what a command changed or left that it should not have."""
    new = set(after) - set(before)
    found = [f"changed {name}" for name in before if after.get(name) != before[name]]
    if code == 2 and new:
        found.append(f"refused, and left {', '.join(sorted(new))[:100]}")
    strange = {name for name in new if name.endswith(".tmp") or name[:1] == "."}
    if strange or (code in (0, 1) and new - MAY_APPEAR):
        found.append(f"left {', '.join(sorted(strange or new - MAY_APPEAR))[:100]}")
    return found
