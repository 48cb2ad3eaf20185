"""Distances of persistence diagrams: by matchings, by GUDHI, and by values that GUDHI computed."""

import itertools
import math
import pickle
import subprocess
import sys

import numpy as np
import pytest
from scipy.optimize import linear_sum_assignment

from epsilot import InvalidProblem
from epsilot.applications import persistence, persistence_distance
from tuning import tune

#: The example of issue 465 of GUDHI/gudhi-devel: its fourth points dwarf the others.
HUGE = (
    [
        [2.23201301e00, 2.30992361],
        [2.79212053e00, 3.53268734],
        [9.42383758e-01, 4.08248747],
        [5.22799989e-01, 1.0e16],
    ],
    [
        [5.72533791e00, 1.81300169e01],
        [3.67182222e00, 2.16658844e01],
        [1.49374957e01, 5.14375875e01],
        [2.81675603e00, 1.0e16],
    ],
)


def drawn(seed, n, life=0.2, essential=0):
    rng = np.random.default_rng(seed)
    births = rng.random(n)
    D = np.column_stack([births, births + rng.exponential(life, n)])
    return np.vstack([D, np.column_stack([rng.random(essential), np.full(essential, np.inf)])])


def by_assignment(A, B, order, p):
    """Return the distance by the usual assignment: each side gets the other's diagonal points."""
    n, m = len(A), len(B)
    alone = [
        np.array([np.linalg.norm([(d - b) / 2] * 2, p) ** order for b, d in D]) for D in (A, B)
    ]
    C = np.zeros((n + m, m + n))
    for i, j in itertools.product(range(n), range(m)):
        C[i, j] = np.linalg.norm(np.subtract(A[i], B[j]), p) ** order
    C[:n, m:], C[n:, :m] = alone[0][:, None], alone[1]
    i, j = linear_sum_assignment(C)
    return C[i, j].sum() ** (1 / order)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize("p", [1, 2, 2.5, math.inf])
@pytest.mark.parametrize("life", [0.01, 0.3])
def test_distances_are_those_of_the_assignment(order, p, life):
    A, B = drawn(order, 25, life), drawn(100 + order, 18, life)
    found = persistence_distance(A, B, order, p)
    assert found == pytest.approx(by_assignment(A, B, order, p), rel=1e-12)
    assert found.lower == pytest.approx(found.upper, rel=1e-9)
    assert found.gap >= 0
    i, j = found.matching.T
    assert sorted(i[i >= 0]) == list(range(25))
    assert sorted(j[j >= 0]) == list(range(18))
    paid = 0.0
    for one, two in found.matching:
        if min(one, two) >= 0:
            paid += np.linalg.norm(A[one] - B[two], p) ** order
        else:
            b, d = A[one] if two < 0 else B[two]
            paid += np.linalg.norm([(d - b) / 2] * 2, p) ** order
    assert paid ** (1 / order) == pytest.approx(found, rel=1e-12)


#: Distances of drawn(seed, n, life, essential) that GUDHI 3.13 computed: both diagrams, order, p.
PUBLISHED = [
    ((0, 30, 0.2, 0), (1, 20, 0.2, 0), 1, math.inf, 3.376113043758791),
    ((2, 30, 0.05, 2), (3, 40, 0.05, 2), 2, math.inf, 0.9783813124832698),
    ((4, 12, 1.0, 1), (5, 15, 1.0, 1), 2, 2, 3.6689850138285904),
    ((6, 50, 0.02, 0), (7, 50, 0.02, 0), 1, 1, 1.236801349471871),
]


@pytest.mark.parametrize(("one", "two", "order", "p", "value"), PUBLISHED)
def test_distances_are_those_that_gudhi_computed(one, two, order, p, value):
    found = persistence_distance(drawn(*one), drawn(*two), order, p)
    assert found == pytest.approx(value, rel=1e-12)


@pytest.mark.parametrize("seed", range(10))
def test_distances_are_those_of_gudhi(seed):
    wasserstein = pytest.importorskip("gudhi.wasserstein")
    for order, p in itertools.product((1, 2), (1, 2, math.inf)):
        A, B = drawn(seed, 3 * seed, 0.1, seed % 3), drawn(seed + 50, 20, 0.1, seed % 3)
        wanted = wasserstein.wasserstein_distance(A, B, order=order, internal_p=p)
        assert persistence_distance(A, B, order, p) == pytest.approx(wanted, rel=1e-12)


def test_a_point_of_another_size_takes_no_digits_from_the_others():
    found = persistence_distance(*HUGE, order=2)
    assert found == pytest.approx(21.455667863335233, rel=1e-14)
    assert found.gap <= 1e-12
    assert [3, 3] in found.matching.tolist()


@pytest.mark.parametrize(
    ("D1", "D2", "value"),
    [
        ([], [], 0.0),
        ([[0.0, 2.0]], [], 1.0),
        ([], [[1.0, 4.0]], 1.5),
        ([[0.5, 0.5]], [[0.7, 0.7]], 0.0),
        ([[0.0, math.inf]], [[0.25, math.inf]], 0.25),
        ([[0.0, math.inf], [1.0, math.inf]], [[1.5, math.inf], [0.25, math.inf]], 0.75),
        ([[-math.inf, 1.0]], [[-math.inf, 3.0]], 2.0),
        ([[-math.inf, math.inf]], [[-math.inf, math.inf]], 0.0),
        ([[0.0, math.inf]], [], math.inf),
        ([[-math.inf, math.inf]], [[0.0, math.inf]], math.inf),
    ],
)
def test_small_cases(D1, D2, value):
    found = persistence_distance(D1, D2)
    assert (float(found), found.lower, found.gap) == (value, value, 0.0)
    copied = pickle.loads(pickle.dumps(found))
    assert (float(copied), copied.lower) == (value, value)


def test_lists_are_solved_in_pairs():
    Ds = [drawn(k, 6) for k in range(3)]
    every = persistence_distance(Ds, order=2)
    both = persistence_distance(Ds, Ds[:2], order=2)
    for i, j in itertools.product(range(3), range(2)):
        single = 0.0 if i == j else persistence_distance(Ds[i], Ds[j], order=2)
        assert both.value[i, j] == pytest.approx(single, abs=1e-12)
        assert every.value[i, j] == pytest.approx(both.value[i, j], abs=1e-12)
    assert (every.value == every.value.T).all()
    assert (every.lower <= every.value).all()


@pytest.mark.parametrize(("batched", "stored"), [(1, 10**9), (1, 0)])
def test_large_components_are_solved_alone(monkeypatch, batched, stored):
    A, B = drawn(0, 40), drawn(1, 45)
    wanted = persistence_distance(A, B, 2)
    tune(monkeypatch, persistence, max_batched=batched)
    tune(monkeypatch, persistence, max_stored=stored)
    found = persistence_distance(A, B, 2)
    assert found == pytest.approx(wanted, rel=1e-12)
    assert found.gap <= 1e-9


def searched(monkeypatch):
    """Let the auction solve diagrams of any size."""
    tune(monkeypatch, persistence, max_arcs_per_point=0, min_searched_arcs=0)


def tied(seed, n):
    """Return a diagram on a coarse grid, with equal points and points on the diagonal."""
    rng = np.random.default_rng(seed)
    births = rng.integers(0, 4, n) / 4
    return np.column_stack([births, births + rng.integers(0, 5, n) / 4])


@pytest.mark.parametrize("p", persistence.CLOUD_METRICS)
@pytest.mark.parametrize("order", [1, 2, 2.5])
def test_the_auction_finds_the_distances_of_the_assignment(monkeypatch, p, order):
    searched(monkeypatch)
    for seed, (n, m) in enumerate([(1, 1), (1, 7), (6, 1), (5, 5), (12, 9), (25, 40)]):
        for A, B in (
            (drawn(seed, n, 0.3), drawn(seed + 50, m, 0.3)),
            (tied(seed, n), tied(seed + 50, m)),
            (tied(seed, n), tied(seed, n)),
        ):
            found = persistence_distance(A, B, order, p)
            wanted = by_assignment(A, B, order, p)
            assert found == pytest.approx(wanted, rel=1e-12, abs=1e-15)
            assert found.lower <= wanted * (1 + 1e-12)
            assert found.lower**order == pytest.approx(wanted**order, rel=1e-8, abs=1e-12)
            i, j = found.matching.T
            assert sorted(i[i >= 0]) == list(range(len(A)))
            assert sorted(j[j >= 0]) == list(range(len(B)))


@pytest.mark.parametrize("p", persistence.CLOUD_METRICS)
def test_diagrams_in_general_position_are_searched(p):
    A, B = drawn(0, 1200, 2.0), drawn(1, 1000, 2.0)
    for order in (1, 2):
        found = persistence_distance(A, B, order, p)
        rough = persistence_distance(A, B, order, p, rtol=0.05)
        assert found.gap <= 1e-9 * found
        assert found.lower <= rough
        assert rough.lower <= found * (1 + 1e-12)
        assert rough.upper**order - rough.lower**order <= 0.0501 * rough.upper**order


def test_points_of_very_different_sizes_are_solved_by_components(monkeypatch):
    searched(monkeypatch)
    found = persistence_distance(*HUGE, order=2)
    assert found == pytest.approx(21.455667863335233, rel=1e-14)
    assert found.gap <= 1e-12


def test_other_norms_need_few_arcs(monkeypatch):
    tune(monkeypatch, persistence, max_arcs=10)
    with pytest.raises(InvalidProblem, match=r"internal_p is 2\.5; such diagrams need 1, 2"):
        persistence_distance(drawn(0, 40), drawn(1, 45), 2, 2.5)


@pytest.mark.parametrize(
    ("D1", "keywords", "words"),
    [
        ([[1.0, 0.5]], {}, "point 0 of D1 is .1, 0.5.; a birth must be a number that is not after"),
        ([[0.0, math.nan]], {}, "point 0 of D1 is"),
        ([[math.inf, math.inf]], {}, "point 0 of D1 is"),
        ([[0.0, 1.0, 2.0]], {}, "D1 has shape .1, 3."),
        ([[0.0, 1.0]], {"order": 0.5}, "order is 0.5; it must be a number >= 1"),
        ([[0.0, 1.0]], {"order": math.inf}, "bottleneck"),
        ([[0.0, 1.0]], {"internal_p": "x"}, "internal_p is 'x'"),
        ([[[0.0, 1.0]]], {}, "D2 is one diagram"),
    ],
)
def test_bad_input_is_one_sentence(D1, keywords, words):
    with pytest.raises(InvalidProblem, match=words):
        persistence_distance(D1, [[0.0, 1.0]], **keywords)


def test_the_package_offers_it_by_name():
    # In a process of its own: here the attribute is set by the imports above.
    code = "import epsilot; epsilot.applications.persistence_distance([[0, 1]], [[0, 1]])"
    subprocess.run([sys.executable, "-c", code], check=True)
