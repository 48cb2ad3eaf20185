"""The built site in a browser: pages, search, light and dark, and nothing from outside."""

import re
from pathlib import Path

import pytest

import epsilot
from browser import EXECUTABLE, Browser

SITE = Path(__file__).parents[2] / "docs" / "_build" / "html"

pytestmark = [
    pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium is installed (package chromium)"),
    pytest.mark.skipif(not SITE.is_dir(), reason="the site is not built (make docs)"),
]
PAGES = {
    "index.html": "epsilot",
    "start.html": "Start",
    "drawn/index.html": "Gallery",
    "solvers/pdasmd.html": "pdasmd",
    "api/epsilot.solve.html": "solve",
    "guide/certificates.html": "Certificates",
}


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    with Browser(tmp_path_factory.mktemp("profile"), seconds=600) as browser:
        yield browser


def is_complaint(event):
    """Return whether a page complained; what its theme logs of its mode is no complaint."""
    params = event["params"]
    if event["method"] == "Runtime.consoleAPICalled":
        return params["type"] in ("error", "warning", "assert")
    return params.get("entry", {"level": "error"})["level"] in ("error", "warning")


def assert_is_quiet(browser):
    outside = [url for url in browser.requests if not url.startswith(("file:", "data:"))]
    assert not outside
    assert not [event for event in browser.complaints if is_complaint(event)]


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize(("page", "title"), PAGES.items(), ids=PAGES.keys())
def test_a_page_opens(site, page, title, scheme):
    site.look(1280, scheme=scheme)
    site.open(SITE / page)
    assert title in site.evaluate("document.querySelector('h1').innerText")
    assert site.evaluate("document.documentElement.dataset.theme") == scheme
    drawn = site.evaluate("[...document.images].map(i => !i.complete || i.naturalWidth > 0)")
    assert all(drawn)
    assert_is_quiet(site)


def test_a_page_fits_a_phone(site):
    site.look(390)
    site.open(SITE / "index.html")
    assert site.evaluate("document.documentElement.scrollWidth - innerWidth") <= 0


def test_formulas_are_drawn_by_the_browser_itself(site):
    site.open(SITE / "guide" / "certificates.html")
    heights = "[...document.querySelectorAll('math')].map(m => m.getBoundingClientRect().height)"
    heights = site.evaluate(heights)
    assert len(heights) > 3
    assert min(heights) > 5


def test_formulas_fit_a_phone(site):
    pages = [x for x in SITE.rglob("*.html") if 'class="formula' in x.read_text(encoding="utf-8")]
    assert len(pages) > 30
    site.look(390)
    too_wide = "[...document.querySelectorAll('.formula')].map(d => d.scrollWidth - d.clientWidth)"
    found = {}
    for page in pages:
        site.open(page)
        found[page.name] = max(site.evaluate(too_wide))
    assert not {name: width for name, width in found.items() if width > 0}


def test_no_formula_has_marks_of_its_source():
    pages = {str(page): page.read_text(encoding="utf-8") for page in SITE.rglob("*.html")}
    formulas = [
        (page, found)
        for page, text in pages.items()
        for found in re.findall(r"<math.*?</math>", text, flags=re.DOTALL)
    ]
    assert len(formulas) > 50
    assert not [page for page, found in formulas if re.search(r"<mi>(&amp;|&|\\\w*)</mi>", found)]


@pytest.mark.parametrize(
    ("words", "page"),
    [
        ("pdasmd", "solvers/pdasmd.html"),
        ("sinkhorn", "solvers/sinkhorn.html"),
        ("wasserstein", "metrics.html"),
        ("earth mover", "metrics.html"),
        ("emd", "pot.html"),
    ],
)
def test_searching_finds_the_page(site, words, page):
    site.look(1280)
    site.call(
        "Page.navigate", url=(SITE / "search.html").as_uri() + f"?q={words.replace(' ', '+')}"
    )
    listed = "[...document.querySelectorAll('#search-results li a')].map(a => a.href)"
    found = []
    while not any(page in link for link in found):  # or the browser's deadline
        found = site.evaluate(listed)
    assert_is_quiet(site)


def test_every_page_is_in_the_sidebar_and_shows_the_version(site):
    site.look(1280)
    site.open(SITE / "guide" / "maps.html")
    marked = "[...document.querySelectorAll('.bd-sidebar-primary li.current.active > a')]"
    here = site.evaluate(f"{marked}.at(-1).href")
    assert here.endswith("#")
    shown = (
        "[...document.querySelectorAll('.bd-sidebar-primary li.toctree-l1 > a')].map(a => a.href)"
    )
    listed = site.evaluate(shown)
    for page in ("start", "concepts", "glossary", "changelog", "benchmarks", "developer"):
        assert any(link.endswith(f"/{page}.html") for link in listed), page
    version = site.evaluate("document.querySelector('.versions summary').innerText")
    assert version == epsilot.__version__


def test_the_api_lists_the_scripts_that_use_a_name(site):
    site.open(SITE / "api" / "epsilot.solve_sample.html")
    titles = "[...document.querySelectorAll('.sphx-glr-thumbcontainer')].map(x => x.innerText)"
    assert any("A plan, and the bounds" in title for title in site.evaluate(titles))
