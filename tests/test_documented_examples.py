"""The examples of the pages run, and tables of the pages are those of the code."""

import doctest
from pathlib import Path

import pytest

from epsilot import theory

DOCS = Path(__file__).parents[1] / "docs"


PAGES = ("geometry", "metrics", "finite_sum", "theory", "start", "kinds", "gromov", "concepts")
PAGES += (
    "applications/persistence",
    "guide/accuracy",
    "guide/limits",
    "guide/maps",
    "pot",
    "coming_from",
)
PAGES += ("tutorials/distances_and_plans",)
#: Pages that need another package.
NEEDS = {
    "adapters": "torch",
    "graphs": "networkx",
    "tutorials/losses_in_pytorch": "torch",
    "tutorials/large_and_cluster": "distributed",
}


@pytest.mark.parametrize("page", [*PAGES, *NEEDS])
def test_examples_of_a_page(page):
    pytest.importorskip(NEEDS.get(page, "epsilot"))
    found = doctest.testfile(str(DOCS / f"{page}.md"), module_relative=False, encoding="utf-8")
    assert found.attempted > 5
    assert found.failed == 0


@pytest.mark.parametrize("statement", theory.STATEMENTS, ids=lambda s: s.name)
def test_the_page_says_how_well_a_statement_stands(statement):
    page = (DOCS / "theory.md").read_text(encoding="utf-8")
    s, errata = statement, ", ".join(statement.errata)
    row = f"| {s.name} | {s.says} | `{s.function}` | **{s.standing.value}** | {s.why} | {errata} |"
    assert row.replace("|  |", "| |") in page
    assert callable(getattr(theory, s.function))
