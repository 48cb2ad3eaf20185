"""Each method's record, and that tables and pages say what it says."""

import re
from pathlib import Path

import pytest

import epsilot
from epsilot.solvers import REGISTRY, solver_class
from epsilot.solvers.method_info import UNMEASURED, Order, _measured, growth

ROOT = Path(__file__).parents[2]
METHODS = epsilot.methods()
FAMILIES = {method.name: method.family for method in METHODS}

#: The paper's Table 1: order of complexity, and whether entropic transport is solved on the way.
TABLE_1 = {
    "sinkhorn": ("n²/ε²", True),
    "greenkhorn": ("n²/ε²", True),
    "stochastic_sinkhorn": ("n²/ε²", True),
    "apdagd": ("n^2.5/ε", True),
    "packing_lp": ("n²/ε", False),
    "box_newton": ("n²/ε", True),
    "apdamd": ("n^2.5/ε", True),
    "dual_extrapolation": ("n²/ε", False),
    "accelerated_sinkhorn": ("n^(7/3)/ε^(4/3)", True),
    "dijkstra_dfs": ("n²/ε + n/ε²", False),
    "apdrcd": ("n^2.5/ε", True),
    "aam": ("n^2.5/ε", True),
    "hybrid_primal_dual": ("n^2.5/ε", True),
    "pdasgd": ("n^2.5/ε", True),
    "pdasmd": ("n²/ε", True),
}


def folded(text: str) -> str:
    return " ".join(text.split()).lower()


def test_records_are_those_of_the_papers_table():
    abouts = {name: solver_class(name).about for name in REGISTRY}
    found = {name: about for name, about in abouts.items() if about.is_in_table1}
    assert {name: (x.printed, x.solves_entropic) for name, x in found.items()} == TABLE_1


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_the_year_is_that_of_the_first_paper(method):
    years = re.findall(r"\b\d{4}\b", method.paper)
    assert not years or method.year == int(years[0])


@pytest.mark.parametrize("method", METHODS, ids=lambda method: method.name)
def test_every_method_has_a_page_that_agrees_with_its_record(method):
    page = (ROOT / "docs" / "solvers" / f"{method.name}.md").read_text(encoding="utf-8")
    title, card, *rest = page.split("\n\n")
    assert title.startswith(f"# `{method.name}`")
    assert card == f"> {method.family} · {method.complexity} · {method.exactness}"
    for paper in method.paper.split("; "):
        assert folded(paper) in folded(" ".join(rest))
    about = solver_class(method.name).about
    if about.is_in_table1:
        assert folded(f'`stop="paper"` ends on: {about.rule}.') in folded(page)
        assert folded(about.departure) in folded(page)


def test_the_readme_names_methods_by_their_families():
    text = (ROOT / "README.md").read_text(encoding="utf-8")
    table = text.split("| family | methods |\n|---|---|\n")[1].split("\n\n")[0]
    for line in table.splitlines():
        families, names = line.strip("| ").split(" | ")
        known = set(re.sub(r" \(.*\)", "", families).split(", "))
        assert {FAMILIES[name] for name in re.findall(r"`(\w+)`", names)} == known


@pytest.mark.parametrize(
    ("order", "text", "short"),
    [
        (Order(2), "n²", "n²"),
        (Order(3, log=1), "n³ log n", "n³"),
        (Order(1, eps=2), "n ‖C‖² / ε²", "n/ε²"),
        (Order(2.5, eps=1, log=0.5), "n^2.5 ‖C‖ √log n / ε", "n^2.5/ε"),
        (Order(2, eps=1, log=2), "n² ‖C‖ log² n / ε", "n²/ε"),
        (Order(7 / 3, eps=4 / 3), "n^(7/3) ‖C‖^(4/3) / ε^(4/3)", "n^(7/3)/ε^(4/3)"),
        (Order(2, log=2 / 3), "n² (log n)^(2/3)", "n²"),
    ],
)
def test_orders_are_written_as_one_writes_them(order, text, short):
    assert (order.text, order.short) == (text, short)


def test_only_registered_methods_were_measured():
    assert set(_measured()) <= set(REGISTRY)
    assert growth("no such method", "paper") == UNMEASURED["paper"]
    assert growth("pdasmd", "paper").at(200, 0.05) == pytest.approx(6.2e8 * 2**2.1)
