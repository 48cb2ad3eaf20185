"""Links between the Markdown pages of the repository lead somewhere, headings included."""

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
BUILT = {"_build", "drawn", "api"}
PAGES = [
    *ROOT.glob("*.md"),
    *(page for page in (ROOT / "docs").rglob("*.md") if not BUILT & set(page.parts)),
]
LINK = re.compile(r"!?\[[^\]]*\]\((?!\w+:)([^)\s#]*)(?:#([^)\s]*))?\)")


@cache
def text(page: Path) -> str:
    """Return a page without its blocks of code."""
    return re.sub(r"^```.*?^```", "", page.read_text(encoding="utf-8"), flags=re.S | re.M)


@cache
def anchors(page: Path) -> set[str]:
    """Return the names of a page's headings, as GitHub and MyST make them."""
    titles = re.findall(r"^#+ (.*)$", text(page), flags=re.M)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_links_lead_somewhere(page):
    for target, anchor in LINK.findall(text(page)):
        if page == ROOT / "docs" / "index.md" and target == "api":
            continue  # written by the build
        there = (page.parent / target).resolve() if target else page
        assert there.exists(), f"{target} does not exist"
        if anchor:
            assert anchor in anchors(there), f"{target} has no heading #{anchor}"
