"""Run the studies of the paper's Section 6, and of barycentres, as experiments of the paper."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path
from typing import TYPE_CHECKING

from ..document import Paragraph, Picture
from ..report import Page

if TYPE_CHECKING:
    from rich.console import Console


def section6(out: Path, quick: bool, seeds: int | None, jobs: int, console: Console) -> Page:
    """Measure the suggestions of Section 6."""
    from ..studies.methods import main

    words = ["section6", "--out", str(out), "--jobs", str(jobs)]
    words += ["--seeds", str(seeds)] if seeds else []
    return _page("Suggestions of Section 6", main, words + ["--toy"] * quick, out)


def barycenters(out: Path, quick: bool, seeds: int | None, jobs: int, console: Console) -> Page:
    """Measure barycentres of digits and shapes, which Section 6 names among other problems."""
    from ..studies.barycenters import main

    words = ["--out", str(out)]
    return _page("Wasserstein barycentres", main, words + ["--toy"] * quick, out)


def _page(title: str, main: Callable[[Sequence[str]], None], words: list[str], out: Path) -> Page:
    """Run a study quietly; its page has the pictures that it draws, and names its summary."""
    with redirect_stdout(io.StringIO()):
        main(words)
    text = Paragraph(f"The tables are in `{out.name}/summary.md`.")
    pictures = (Picture(path.name, title) for path in sorted(out.glob("*.svg")))
    return Page(title, (text, *pictures))
