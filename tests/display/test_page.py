"""The web page of a result: true, complete, self-contained, and readable on a phone."""

import io
import math
import re
import warnings
from dataclasses import replace
from html.parser import HTMLParser

import numpy as np
import pytest
from matplotlib.figure import Figure
from PIL import Image

import epsilot
from browser import EXECUTABLE, Browser
from epsilot.display import charts, page, plan_figures, plan_samples
from epsilot.display.plotting import gap_curves
from epsilot.display.text import outward
from epsilot.files.images import synthetic_pair
from epsilot.problems.plan import Arcs, Correction, Explicit, Plan

IMAGES = dict(zip("AB", synthetic_pair(8, seed=1), strict=True))
MATRIX = {"M": np.random.default_rng(0).random((12, 9)), "math": math}


def points(n, m, d):
    rng = np.random.default_rng(d)
    return {"X_a": rng.normal(size=(n, d)), "X_b": rng.normal(size=(m, d)) + 1}


# Data, call, and words that the page must contain.
CASES = {
    "images": (
        IMAGES,
        "solve_grid(A, B, metric='cityblock', method='sinkhorn')",
        "Target, 8 × 8",
    ),
    "plane": (points(40, 30, 2), "solve_sample(X_a, X_b, metric='sqeuclidean')", "x and y"),
    "space": (points(20, 25, 3), "solve_sample(X_a, X_b, metric='euclidean')", "y and z"),
    "more": (points(20, 20, 5), "solve_sample(X_a, X_b, metric='cityblock')", "largest variance"),
    "line": (points(30, 20, 1), "solve_sample(X_a, X_b, metric='cosine', seed=3)", "above"),
    "matrix": (MATRIX, "solve(M, eps=0.01, method='pdasmd', batch_size=2)", "12 × 9 blocks"),
    "exact": (MATRIX, "solve(M, method='exact')", "computed once"),
    "entropic": (MATRIX, "solve(M, reg=0.1, tol=0.001)", "entropic objective"),
    "partial": (
        points(40, 30, 2),
        "solve_sample(X_a, X_b, metric='sqeuclidean', mass=0.5)",
        "not transported",
    ),
    "kl": (MATRIX, "solve(M, unbalanced=(0.5, math.inf), unbalanced_type='kl')", "unbalanced"),
    "stopped": (MATRIX, "solve(M, eps=1e-09, method='sinkhorn', max_iter=3)", "Target not reached"),
}
VOID = {"meta", "link", "img"}


def made(name):
    data, call, _ = CASES[name]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", epsilot.ConvergenceWarning)
        return eval(f"epsilot.{call}", {"epsilot": epsilot, **data})


class Checked(HTMLParser):
    """Check that all elements are closed and that pictures have alternative texts."""

    def __init__(self, text):
        super().__init__()
        self.open, self.n_pictures = [], 0
        self.feed(text)
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        given = dict(attrs)
        if tag in ("img", "svg"):
            self.n_pictures += 1
            assert given.get("alt" if tag == "img" else "aria-label"), self.get_starttag_text()
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attrs):
        pass

    def handle_endtag(self, tag):
        assert self.open.pop() == tag


@pytest.mark.parametrize("name", CASES)
def test_the_page_states_the_bounds_and_the_call(name, tmp_path):
    result = made(name)
    result.report(tmp_path / "out.html")
    text = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert Checked(text).n_pictures >= 1
    assert CASES[name][2] in text
    assert ("Certified: " in text) == result.converged
    low, high = re.search(r"is at least (\S+), and .* at most (\S+):", text).groups()
    assert float(low) <= result.lower_bound
    assert result.value <= float(high)
    assert float(high) - float(low) <= 1.3 * result.gap + 1e-13
    assert not re.search(r"https?:|<script|\bnan\b", text)
    assert len(text) < 200_000
    assert page.python_call(result).endswith(f"epsilot.{CASES[name][1]}")


@pytest.mark.parametrize("low", [0.0102, 0.7, 8.1e6, 3e-8])
@pytest.mark.parametrize("ratio", [1.02, 3.0, 40.0, 1e7])
def test_ticks_of_a_logarithmic_axis_have_labels_of_their_own(low, ratio):
    scale = charts.AxisScale(low, low * ratio, 0.0, 400.0, is_log=True)
    texts = re.findall(r">([^<]+)</text>", "".join(charts.line_axis(scale, 0.0, "label")))
    assert len(set(texts)) == len(texts) > 2


def test_points_can_be_passed_to_the_report(tmp_path, rng):
    result = epsilot.solve(MATRIX["M"])
    X, Y = rng.random((12, 2)), rng.random((9, 2))
    assert "x and y: sources blue (12 of 12 drawn)" in page.page_of(result, (X, Y))
    assert "sources above" in page.page_of(result, (X[:, 0], Y[:, 0]))
    for wrong, words in (
        ((X, X), "must have 12 and 9 rows"),
        ((X, np.ones((9, 3))), "must have the same number"),
        ((X, np.full((9, 2), np.nan)), "NaN|finite"),
        (X, "must be a pair"),
    ):
        with pytest.raises(epsilot.InvalidProblem, match=words):
            result.report(tmp_path / "out.html", points=wrong)
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    ("name", "words"),
    [("missing/out.html", "no directory"), ("out.pdf", "use .html"), ("out", "use .html")],
)
def test_paths_that_cannot_be_written_are_rejected(name, words, tmp_path, results):
    with pytest.raises(epsilot.InvalidProblem, match=words):
        results["exact"].report(tmp_path / name)
    assert list(tmp_path.iterdir()) == []


def test_a_page_that_fails_leaves_the_old_one(tmp_path, results, monkeypatch):
    path = tmp_path / "out.html"
    path.write_text("old")
    monkeypatch.setattr("epsilot.files.writing.os.fsync", lambda file: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        results["exact"].report(path)
    assert path.read_text() == "old"
    assert list(tmp_path.iterdir()) == [path]


@pytest.mark.parametrize(
    ("lower", "upper"),
    [
        (0.0, 0.0),
        (0.0, 1e-300),
        (-1.5, 2.25),
        (0.123456, 0.123457),
        (1 / 3, 1 / 3),
        (1e-9, 1.01e-9),
        (1e22, 1.3e22),
        (-1e-8, 0.1),
        (0.1, np.nextafter(0.1, 1)),
    ],
)
def test_bounds_are_rounded_outwards(lower, upper):
    low, high = outward(lower, upper)
    assert float(low) <= lower
    assert upper <= float(high)
    assert float(high) - float(low) <= 1.3 * (upper - lower) + 1e-14 * max(abs(lower), abs(upper))
    assert len(low) + len(high) < 50


def test_arcs_are_drawn_in_proportion_to_mass():
    X = np.array([[0.3, 0.1], [0.0, 0.6]])
    drawn = plan_samples.sampled_arcs(Plan(Explicit(X)), X.sum(axis=1))
    assert sorted(zip(drawn.i, drawn.j, strict=True)) == [(0, 0), (0, 1), (1, 1)]
    assert drawn.times / drawn.times.sum() == pytest.approx([0.3, 0.1, 0.6], abs=0.01)


def test_a_large_plan_is_a_small_page(rng):
    n = 100_000
    i = np.arange(n)
    plan = Plan(Arcs((n, n), i, i[::-1].copy(), np.full(n, 1 / n)))
    X = rng.random((n, 3))
    moved = plan_samples.MovedMass.by(plan, np.full(n, 1 / n), np.full(n, 1 / n))
    assert len(plan_figures.figures_of(moved, X, X[::-1])) < 500_000
    assert "Estimated" not in plan_figures.figures_of(moved, None, None)
    rank_one = Correction(*np.ones((2, n)), *np.full((2, n), 1e-12))
    spread = replace(moved, plan=replace(plan, correction=rank_one))
    assert "Estimated" in plan_figures.figures_of(spread, None, None)


def heights(bins, x, weights):
    """Return the heights of bars that have positions."""
    found = bins.heights(x, weights)
    assert found @ bins.length == pytest.approx(weights.sum())
    return found[found > 0]


@pytest.mark.parametrize("n", [7, 50, 119, 121, 400, 1003])
def test_even_masses_on_a_line_give_even_bars(n):
    x = np.linspace(0.3, 1.7, n)
    found = heights(plan_samples.line_bins(x), x, np.full(n, 1 / n))
    np.testing.assert_allclose(found, found[0], rtol=1e-9)


def test_bars_of_a_smooth_histogram_have_one_peak():
    x = np.linspace(0, 1, 100)
    weights = np.exp(-((x - 0.4) ** 2) / 0.02)
    steps = np.sign(np.diff(heights(plan_samples.line_bins(x), x, weights)))
    assert np.count_nonzero(np.diff(steps)) == 1


def test_few_uneven_positions_have_a_bar_each(rng):
    x = np.array([0.0, 0.1, 0.45, 1.0])
    bins = plan_samples.line_bins(x)
    np.testing.assert_allclose(bins.left + bins.width / 2, x)
    np.testing.assert_allclose(bins.heights(x, np.arange(4.0)) * bins.length, np.arange(4.0))
    many = rng.normal(size=4000)
    assert 20 <= plan_samples.line_bins(many).left.size <= 60


def test_the_largest_entries_are_listed_in_order(rng):
    X = rng.random((30, 40))
    dense = plan_samples.largest_entries(Plan(Explicit(X)))
    listed = plan_samples.largest_entries(Plan(Arcs.of(X)))
    assert dense == listed
    assert [entry.mass for entry in dense] == sorted(X.ravel(), reverse=True)[:10]
    assert all(X[entry.i, entry.j] == entry.mass for entry in dense)


def test_gaps_are_drawn_where_they_are():
    result = made("stopped")
    exact = made("exact")
    drawn = Figure().add_subplot()
    gap_curves(drawn, {"sinkhorn": result, "exact": exact}, "seconds")
    low = min(line.get_ydata().min() for line in drawn.lines[:2])
    assert low == pytest.approx(max(exact.gap, np.finfo(float).eps * exact.value), rel=1)
    assert low < 1e-3 * result.gap
    text = page.page_of(exact)
    assert f"this plan: {max(exact.gap, 0.0):.3g}" in text


@pytest.mark.parametrize("shape", [(7, 5), (200, 90)])
def test_block_masses_are_sums_of_entries(shape, rng):
    X = rng.random(shape)
    masses, is_all = plan_samples.block_masses(Plan(Explicit(X)))
    assert is_all
    assert masses.shape == tuple(min(64, side) for side in shape)
    assert masses.sum() == pytest.approx(X.sum())
    assert masses[0, 0] == pytest.approx(X[: -(-shape[0] // 64), : -(-shape[1] // 64)].sum())


@pytest.mark.parametrize(
    ("X", "shape"),
    [
        (np.indices((4, 3)).reshape(2, -1).T * 0.25, (4, 3)),
        (np.indices((4, 3)).reshape(2, -1)[::-1].T, None),
        (np.random.default_rng(0).random((12, 2)), None),
        (np.indices((2, 6)).reshape(2, -1).T, None),
        (np.indices((3, 3, 3)).reshape(3, -1).T, None),
    ],
)
def test_grid_shape_of_pixels(X, shape):
    assert plan_samples.grid_shape(X.astype(np.float64)) == shape


def test_bitmaps_are_valid_png_files():
    picture = np.array(Image.open(io.BytesIO(charts.diverging_png(np.array([[-1.0, 0.0, 1.0]])))))
    assert picture.shape == (1, 3, 3)
    assert picture[0, 0, 0] > picture[0, 0, 2]
    assert picture[0, 1].min() > 240
    assert picture[0, 2, 2] > picture[0, 2, 0]


#: Sizes of the text of charts on the screen, in pixels.
TEXT_SIZES = """[...document.querySelectorAll("svg text")].map(x => {
    const svg = x.ownerSVGElement;
    return parseFloat(getComputedStyle(x).fontSize) * svg.clientWidth / svg.viewBox.baseVal.width;
})"""


@pytest.mark.skipif(EXECUTABLE is None, reason="no Chromium is installed (package chromium)")
def test_pages_load_in_a_browser_without_requests(tmp_path):
    with Browser(tmp_path / "profile") as browser:
        for name in ("images", "partial", "entropic", "matrix", "line"):
            made(name).report(tmp_path / f"{name}.html")
            browser.open(tmp_path / f"{name}.html")
            papers = set()
            for width, scheme in ((390, "light"), (390, "dark"), (1280, "light")):
                browser.look(width, scheme=scheme)
                assert browser.evaluate("document.documentElement.scrollWidth") <= width
                widths = "[...document.querySelectorAll('svg, img')].map(x => x.clientWidth)"
                assert min(browser.evaluate(widths)) > 250
                assert min(browser.evaluate(TEXT_SIZES)) >= 10
                papers.add(browser.evaluate("getComputedStyle(document.body).backgroundColor"))
            assert len(papers) == 2, "dark is not light"
            loaded = "[...document.images].every(x => x.complete && x.naturalWidth > 0)"
            assert browser.evaluate(loaded)
        assert not browser.complaints
        assert all(url.startswith(("file:", "data:")) for url in browser.requests)
