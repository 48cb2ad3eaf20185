"""What notebooks show of results, and the figures of plans."""

import re
import warnings

import networkx as nx
import numpy as np
import pytest
from matplotlib.figure import Figure
from test_page import CASES, Checked, made

import epsilot
from epsilot.display import plan_samples
from epsilot.display.notebook import gap_bar, plan_thumbnail

M = np.abs(np.subtract.outer(np.arange(6.0), np.arange(6.0)))
WEIGHTS = np.random.default_rng(0).dirichlet(np.ones(6), 4)
CLOUD = np.random.default_rng(1).normal(size=(12, 2))


def small_graph():
    graph = nx.path_graph(4)
    return epsilot.solve_graph(graph, [1.0, 0, 0, 0], [0, 0, 0, 1.0], weight=None)


def refused():
    costs = [np.eye(2), np.full((2, 2), np.nan)]
    return epsilot.solve_batch(costs, on_error="collect")


# Results, and words that their cards must hold.
OTHERS = {
    "certificate": (lambda: epsilot.certify(M, plan=np.full((6, 6), 1 / 36)), "marginal error"),
    "distance": (lambda: epsilot.wasserstein(CLOUD, CLOUD + 1.0), "≤ distance ≤"),
    "batch": (lambda: epsilot.solve_batch(np.random.default_rng(0).random((9, 4, 4))), "9 of 9"),
    "refused": (refused, "1 problem refused"),
    "pairs": (lambda: epsilot.pairwise(WEIGHTS, M), "6 of 6 certified"),
    "barycentre": (lambda: epsilot.barycenter(WEIGHTS, M), "4 histograms on 6"),
    "mean image": (lambda: epsilot.barycenter_grid(WEIGHTS.reshape(4, 2, 3)), "on 2 × 3"),
    "mean cloud": (lambda: epsilot.barycenter_sample([CLOUD, CLOUD + 1.0], 5), "5 points"),
    "gromov": (lambda: epsilot.solve_gromov(CLOUD, CLOUD[::-1]), "12 × 12 points"),
    "matrices": (lambda: epsilot.gromov_bounds(M, M), "descents"),
    "graph": (small_graph, "0 → 1"),
    "methods": (epsilot.methods, "small_simplex"),
}
WITHOUT_PICTURE = {"certificate", "graph", "matrices", "methods", "refused"}


def checked(card):
    """Check that a card is well-formed, small, and loads nothing."""
    assert card.startswith('<div class="epsilot">') or "max-width:none" in card
    assert not re.search(r"https?:|<script|\bnan\b", card)
    assert len(card) < 60_000
    return Checked(card)


@pytest.mark.parametrize("name", CASES)
def test_the_card_of_a_result_shows_bounds_and_a_picture(name):
    result = made(name)
    card = result._repr_html_()
    assert checked(card).n_pictures == 1
    low, high = re.search(r"proved: (\S+) ≤ optimum ≤ (\S+?)<", card).groups()
    assert float(low) <= result.lower_bound
    assert result.value <= float(high)
    assert ("certified</span>" in card) == result.converged
    assert f"(target {result.target:.3g})" in card


@pytest.mark.parametrize("name", OTHERS)
def test_other_results_have_cards(name):
    make, words = OTHERS[name]
    card = make()._repr_html_()
    assert words in card
    assert checked(card).n_pictures == (name not in WITHOUT_PICTURE)


@pytest.mark.parametrize(
    ("gap", "target", "width"), [(0.25, 1.0, "25"), (0.0, 1.0, "0"), (-1e-17, 1.0, "0")]
)
def test_the_bar_is_the_share_of_the_target(gap, target, width):
    assert f'class="" style="width:{width}%"' in gap_bar(gap, target)


def test_the_bar_of_a_missed_target_marks_it():
    bar = gap_bar(4.0, 1.0)
    assert 'class="bad" style="width:100%"' in bar
    assert "left:25%" in bar
    assert gap_bar(np.inf, 1.0) == gap_bar(0.0, 0.0) == ""


def test_a_thumbnail_that_takes_long_is_left_out(monkeypatch):
    result = made("images")
    assert plan_thumbnail(result)
    few = plan_samples.FigureLimits(entries_read=1)
    monkeypatch.setattr("epsilot.display.notebook.THUMBNAIL", few)
    assert plan_thumbnail(result) is None


def test_a_result_that_was_read_without_its_costs_has_a_card(tmp_path):
    epsilot.solve(M, method="sinkhorn").save(tmp_path / "result.npz")
    card = epsilot.Result.load(tmp_path / "result.npz")._repr_html_()
    assert checked(card).n_pictures == 0


# -- figures -----------------------------------------------------------------------------------

AXES = {
    "images": ("column", "row"),
    "plane": ("x", "y"),
    "space": ("first principal direction", "second principal direction"),
    "more": ("first principal direction", "second principal direction"),
    "line": ("position", "mass per length"),
    "partial": ("x", "y"),
}


@pytest.mark.parametrize("name", CASES)
def test_plot_draws_the_plan_with_labelled_axes(name):
    result = made(name)
    figure = result.plot()
    axes = figure.axes[0]
    assert (axes.get_xlabel(), axes.get_ylabel()) == AXES.get(name, ("target j", "source i"))
    assert f"{result.value:.6g}" in axes.get_title(loc="left")
    picture, size = figure._repr_png_()
    assert picture.startswith(b"\x89PNG")
    assert size["width"] > 300


def test_plot_draws_every_pair_of_a_matching(rng):
    X, Y = rng.random((20, 2)), rng.random((20, 2))
    result = epsilot.solve_sample(X, Y, rtol=1e-9)
    (lines,) = result.plot().axes[0].collections[:1]
    i, j = result.plan_sparse.nonzero()
    drawn = sorted(segment.ravel().tolist() for segment in lines.get_segments())
    assert drawn == sorted(np.hstack([X[i], Y[j]]).tolist())


def test_plot_takes_axes_and_points(rng):
    result = epsilot.solve(rng.random((5, 4)))
    axes = Figure().add_subplot()
    points = rng.random((5, 2)), rng.random((4, 2))
    assert result.plot(axes, points=points) is axes.figure
    assert axes.get_xlabel() == "x"


@pytest.mark.parametrize("name", ["batch", "pairs", "barycentre", "mean image", "mean cloud"])
def test_other_results_are_drawn(name):
    figure = OTHERS[name][0]().plot()
    assert all(axes.get_xlabel() for axes in figure.axes if axes.get_label() != "<colorbar>")


def test_bounds_are_drawn_by_a_function_of_their_own():
    for result in (epsilot.barycenter(WEIGHTS, M), OTHERS["gromov"][0](), made("plane")):
        (axes,) = result.plot_convergence().axes
        assert "bound" in axes.get_legend().get_texts()[0].get_text()


def test_a_figure_is_shown_once(monkeypatch):
    """Notebooks use ``_repr_png_`` of values; figures of pyplot would be shown again."""
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        made("plane").plot()
    pyplot = pytest.importorskip("matplotlib.pyplot")
    assert not pyplot.get_fignums()
