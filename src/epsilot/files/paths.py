"""Check where files can be read and written, before any work is done."""

from __future__ import annotations

import json
import os
import zipfile
from pathlib import Path

import numpy as np

from .. import memory
from ..errors import InvalidProblem
from ..wording import first_line, named, shown

StrPath = str | os.PathLike[str]

#: Bytes to which any file may unpack, and the largest ratio to its own size beyond that.
LARGEST_UNPACKED, MOST_EXPANSION = 1 << 30, 100


def existing(path: StrPath) -> Path:
    """Return the path of a nonempty readable file."""
    path = _as_path(path)
    try:
        path.exists()
    except (OSError, ValueError) as error:
        raise InvalidProblem(
            f"{named(path)} cannot be a file ({first_line(error)}); name one that exists."
        ) from None
    if path.is_dir():
        raise InvalidProblem(
            f"{named(path)} is a directory; a file is required (name a file inside it)"
        )
    if not path.exists():
        raise InvalidProblem(
            f"{named(path)} does not exist; a readable file is required (check the path)"
        )
    if not path.is_file():
        raise InvalidProblem(
            f"{named(path)} is a device or a pipe, which has no size; an ordinary file is required "
            "(write what it gives to one)"
        )
    if not os.access(path, os.R_OK):
        raise InvalidProblem(
            f"{named(path)} is not readable by this user; a readable file is required "
            "(change its permissions)"
        )
    if path.stat().st_size == 0:
        raise InvalidProblem(
            f"{named(path)} is empty (0 bytes); a file with numbers is required (write it again)"
        )
    return path


def check_unpacked(path: StrPath, n_bytes: int) -> None:
    """Reject a file that unpacks to far more than its own size, or to more than memory holds."""
    size = os.stat(path).st_size
    if n_bytes > max(LARGEST_UNPACKED, MOST_EXPANSION * size):
        raise InvalidProblem(
            f"{named(path)} has {memory.size_text(size)} and unpacks to "
            f"{memory.size_text(n_bytes)}; more than {memory.size_text(LARGEST_UNPACKED)} are read "
            f"from files of at least a {MOST_EXPANSION}th (save it without compression)."
        )
    memory.ask(n_bytes, f"{named(path)}, unpacked,", "use a smaller file")


def _as_path(path: object) -> Path:
    if not isinstance(path, (str, os.PathLike)):
        raise InvalidProblem(f"the path is {shown(path)}; it must be the name of a file.")
    return Path(path)


def check_writable(path: StrPath) -> Path:
    """Return the resolved path, or raise at once when a file could not be written there.

    Meant for the start of long work, so that its result is not lost at the end.
    """
    try:
        target = Path(os.path.realpath(_as_path(path)))
        target.exists()
    except InvalidProblem:
        raise
    except (OSError, ValueError) as error:
        raise _unwritable(path, first_line(error), "choose another name") from None
    directory = target.parent
    if not directory.is_dir():
        raise _unwritable(path, f"there is no directory {directory}", "create the directory first")
    if target.is_dir():
        raise _unwritable(path, "it is a directory", "name a file inside it")
    if target.exists() and not target.is_file():
        raise _unwritable(path, "it is not a regular file", "name an ordinary file")
    if not os.access(directory, os.W_OK | os.X_OK):
        problem = f"the directory {directory} is read-only"
        raise _unwritable(path, problem, "choose another directory")
    if target.exists() and not os.access(target, os.W_OK):
        raise _unwritable(path, "it exists and is read-only", "change its permissions")
    return target


def check_own(path: StrPath, kind: str) -> None:
    """Reject replacing a file that epsilot did not write, or that has another format.

    Parameters
    ----------
    path
        Where a file of ours is to go; nothing, or an empty file, may be there.
    kind
        How the format of a file that may be replaced begins: "epsilot-checkpoint",
        "epsilot-result".
    """
    target = check_writable(path)
    if target.exists() and target.stat().st_size > 0 and not _format(target).startswith(kind):
        raise InvalidProblem(
            f"{named(path)} exists and is no {kind} file; only such a file would be replaced (move "
            "it away, or choose another name)"
        )


def check_distinct(**paths: StrPath | None) -> None:
    """Reject two outputs of one command with the same path."""
    seen: dict[str, str] = {}
    for name, path in paths.items():
        if path is None:
            continue
        place = os.path.realpath(path)
        if place in seen:
            raise InvalidProblem(
                f"--{seen[place]} and --{name} are both {named(path)}; each needs a file of its "
                "own (choose another name)"
            )
        seen[place] = name


def _format(path: Path) -> str:
    """Return the format in the header of a file of epsilot, or an empty string."""
    try:
        with zipfile.ZipFile(path) as archive:
            if archive.getinfo("header.npy").file_size > (1 << 28):  # bytes
                return ""
            with archive.open("header.npy") as file:
                header = json.loads(str(np.lib.format.read_array(file, allow_pickle=False)))
        return str(header["format"])
    except Exception:  # a file of another program may raise anything
        return ""


def _unwritable(path: StrPath, problem: str, remedy: str) -> InvalidProblem:
    return InvalidProblem(
        f"{named(path)} cannot be written: {problem}; a file in a writable directory is required "
        f"({remedy})"
    )
