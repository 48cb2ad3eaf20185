"""Distances, matchings and gradients of diagrams are GUDHI's, or follow from definitions."""

import itertools
import math

import numpy as np
import pytest

from epsilot import InvalidProblem
from epsilot.adapters.gudhi import wasserstein_distance


def diagram(seed, n, essential=0):
    rng = np.random.default_rng(seed)
    births = rng.random(n)
    D = np.column_stack([births, births + rng.exponential(0.2, n)])
    return np.vstack([np.column_stack([rng.random(essential), np.full(essential, np.inf)]), D])


@pytest.mark.parametrize(("n", "m", "essential"), [(0, 0, 0), (9, 0, 0), (0, 5, 0), (12, 15, 2)])
@pytest.mark.parametrize("keep", [True, False])
def test_distances_are_those_of_gudhi(n, m, essential, keep):
    theirs = pytest.importorskip("gudhi.wasserstein").wasserstein_distance
    X, Y = diagram(0, n, essential), diagram(1, m, essential)
    for order, p in itertools.product((1, 2, 2.5), (1, 2, math.inf)):
        options = {"order": order, "internal_p": p, "keep_essential_parts": keep}
        wanted = theirs(X, Y, **options)
        found = wasserstein_distance(X, Y, **options)
        assert type(found) is float
        assert found == pytest.approx(wanted, rel=1e-12)


def rows(matching):
    return sorted(map(tuple, np.asarray(matching).tolist()))


def test_matchings_are_those_of_gudhi():
    theirs = pytest.importorskip("gudhi.wasserstein").wasserstein_distance
    X, Y = diagram(0, 20), diagram(1, 18)
    wanted, found = (f(X, Y, matching=True, order=2) for f in (theirs, wasserstein_distance))
    assert found[0] == pytest.approx(wanted[0], rel=1e-12)
    assert rows(found[1]) == rows(wanted[1])


def test_indices_are_those_of_the_diagrams():
    X = [[0.0, np.inf], [np.inf, np.inf], [0.0, 2.0]]
    Y = [[-np.inf, -np.inf], [0.0, 2.5], [0.25, np.inf]]
    distance, matching = wasserstein_distance(X, Y, True)
    assert distance == 0.75
    assert rows(matching) == [(-1, 0), (0, 2), (1, -1), (2, 1)]
    finite, matching = wasserstein_distance(X, Y, True, keep_essential_parts=False)
    assert finite == 0.5
    assert rows(matching) == [(2, 1)]


@pytest.mark.parametrize("matching", [True, False])
def test_other_numbers_of_essential_points_are_infinitely_far(matching):
    with pytest.warns(UserWarning, match="Cardinality of essential parts differs"):
        found = wasserstein_distance(diagram(0, 3, 1), diagram(1, 3), matching)
    assert found == ((math.inf, None) if matching else math.inf)


@pytest.mark.parametrize(("order", "p"), list(itertools.product((1, 2), (1, 2, math.inf))))
def test_gradients_are_difference_quotients(order, p):
    torch = pytest.importorskip("torch")
    X, Y = diagram(2, 6), diagram(3, 8)
    options = {"order": order, "internal_p": p, "keep_essential_parts": False}
    tensors = [torch.tensor(D, requires_grad=True) for D in (X, Y)]
    distance = wasserstein_distance(*tensors, enable_autodiff=True, **options)
    assert distance.item() == pytest.approx(wasserstein_distance(X, Y, **options), rel=1e-12)
    distance.backward()
    step = 1e-6
    for side, (i, axis) in itertools.product((0, 1), np.ndindex(6, 2)):
        values = []
        for sign in (1, -1):
            moved = [X.copy(), Y.copy()]
            moved[side][i, axis] += sign * step
            values.append(wasserstein_distance(*moved, **options))
        slope = (values[0] - values[1]) / (2 * step)
        assert float(tensors[side].grad[i, axis]) == pytest.approx(slope, abs=1e-8)


def test_equal_diagrams_have_finite_slopes():
    torch = pytest.importorskip("torch")
    X = torch.tensor(diagram(0, 4), requires_grad=True)
    distance = wasserstein_distance(
        X, X.detach(), enable_autodiff=True, order=2, keep_essential_parts=False
    )
    distance.backward()
    assert (distance.item(), X.grad.abs().max().item()) == (0.0, 0.0)


@pytest.mark.parametrize(
    ("X", "options", "words"),
    [
        ([[0.0, 1.0]], {"matching": True, "enable_autodiff": True}, "at most one of them"),
        ([[0.0, 1.0]], {"enable_autodiff": True}, "X and Y must be tensors of PyTorch"),
        ([0.0, 1.0], {}, r"X has shape \(2,\)"),
        ([[1.0, 0.5]], {}, "a birth must be"),
    ],
)
def test_bad_input_is_one_sentence(X, options, words):
    with pytest.raises(InvalidProblem, match=words):
        wasserstein_distance(X, [[0.0, 1.0]], keep_essential_parts=False, **options)
