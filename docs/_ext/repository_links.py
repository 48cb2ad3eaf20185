"""Links of Markdown pages that are meant for a repository, made to work on a site as well.

A folder leads to its index, a script of the gallery to its page; what is a page is resolved by
MyST, and a link to nothing is its warning.
"""

import os
import re
from pathlib import Path, PurePosixPath

from sphinx.application import Sphinx

LINK = re.compile(r"\]\((?!\w+:|#)([^)#\s]+)(#[^)\s]*)?\)")
#: Pages that stand for their folder.
INDEXES = ("index.md", "README.md")


def on_site(target: str, folder: Path, drawn: Path) -> str:
    """Return what a link in a page of ``folder`` leads to on the site."""
    path = folder / target
    for name in INDEXES if path.is_dir() else ():
        if (path / name).is_file():
            return str(PurePosixPath(target) / name)
    page = drawn / f"{path.stem}.rst"
    if path.suffix == ".py" and path.parent.name == "gallery" and page.is_file():
        return Path(os.path.relpath(page, folder)).as_posix()
    return target


def rewrite(app: Sphinx, docname: str, source: list[str]) -> None:
    """Rewrite the links of one page."""
    path = Path(app.env.doc2path(docname))
    if path.suffix != ".md":
        return
    drawn = Path(app.srcdir) / app.config.sphinx_gallery_conf["gallery_dirs"]

    def replaced(match: re.Match[str]) -> str:
        target, anchor = match.groups(default="")
        return f"]({on_site(target, path.parent, drawn)}{anchor})"

    source[0] = LINK.sub(replaced, source[0])


def setup(app: Sphinx) -> dict[str, bool]:
    """Rewrite links as pages are read."""
    app.connect("source-read", rewrite)
    return {"parallel_read_safe": True, "parallel_write_safe": True}
