"""Write files atomically, even if the process is killed."""

from __future__ import annotations

import glob
import hashlib
import os
import platform
import re
import secrets
import stat
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import BinaryIO

from .paths import StrPath, check_writable


def write_atomically(path: StrPath, writer: Callable[[BinaryIO], object]) -> None:
    """Write a file completely or not at all.

    Drafts that killed processes left behind are removed.

    Parameters
    ----------
    path
        Where the file goes; an existing file is replaced only once the new one is complete, and
        keeps its permissions.
    writer
        Called with a binary file open for writing, in the directory of `path`.

    Raises
    ------
    InvalidProblem
        When the directory is missing or cannot be written to.
    """
    target = check_writable(path)
    _remove_stale_drafts(target)
    draft = target.with_name(
        f"{_stem(target)}.{_machine()}.{os.getpid()}.{secrets.token_hex(6)}.tmp"
    )
    try:
        with draft.open("xb") as file:
            writer(file)
            file.flush()
            os.fsync(file.fileno())
        if target.exists():
            draft.chmod(stat.S_IMODE(target.stat().st_mode))
        draft.replace(target)
    except BaseException as error:
        draft.unlink(missing_ok=True)
        if isinstance(error, OSError) and error.filename in (None, str(draft)):
            error.filename, error.filename2 = (
                os.fspath(path),
                None,
            )  # not the draft
        raise


def _stem(target: Path) -> str:
    return f".{target.name[:100]}"  # file systems allow 255 bytes


@cache
def _machine() -> str:
    """Return a name of the machine and container, within which process numbers are unique."""
    try:
        space = os.readlink("/proc/self/ns/pid")  # differs between containers
    except OSError:
        space = ""
    return hashlib.sha256(f"{platform.node()} {space}".encode()).hexdigest()[:8]


def _remove_stale_drafts(target: Path) -> None:
    """Remove drafts of the same file whose process on this machine has ended."""
    ours = re.compile(rf"{re.escape(_stem(target))}\.{_machine()}\.(\d+)\.[0-9a-f]{{12}}\.tmp")
    for path in target.parent.glob(f"{glob.escape(_stem(target))}.*.tmp"):
        found = ours.fullmatch(path.name)
        if found is not None and not _is_alive(int(found[1])):
            path.unlink(missing_ok=True)


def _is_alive(process: int) -> bool:
    if os.name == "nt":
        return True  # there is no harmless signal to ask with
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    except (OSError, OverflowError):
        return True
    return True
