"""Run the studies of the paper's Section 6, and of barycentres, as experiments of the paper."""

from __future__ import annotations

import io
from collections.abc import Callable, Sequence
from contextlib import redirect_stdout
from pathlib import Path

from ..document import Paragraph, Picture
from ..report import Page
from ..runner import ExperimentSetup


def section6(setup: ExperimentSetup) -> Page:
    """Measure the suggestions of Section 6."""
    from ..studies.methods import main

    words = ["section6", "--out", str(setup.out), "--jobs", str(setup.jobs)]
    words += ["--seeds", str(setup.seeds)] if setup.seeds else []
    return _page("Suggestions of Section 6", main, words + ["--toy"] * setup.quick, setup.out)


def barycenters(setup: ExperimentSetup) -> Page:
    """Measure barycentres of digits and shapes, which Section 6 names among other problems."""
    from ..studies.barycenters import main

    words = ["--out", str(setup.out)]
    return _page("Wasserstein barycentres", main, words + ["--toy"] * setup.quick, setup.out)


def _page(title: str, main: Callable[[Sequence[str]], None], words: list[str], out: Path) -> Page:
    """Run a study quietly; its page has the pictures that it draws, and names its summary."""
    with redirect_stdout(io.StringIO()):
        main(words)
    text = Paragraph(f"The tables are in `{out.name}/summary.md`.")
    pictures = (Picture(path.name, title) for path in sorted(out.glob("*.svg")))
    return Page(title, (text, *pictures))
