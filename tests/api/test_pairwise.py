"""All pairs of many histograms, with one cost."""

import numpy as np
import pytest
from scipy import sparse
from scipy.spatial.distance import squareform

import epsilot
from epsilot import BatchResult, InvalidProblem

GRID = np.stack(np.meshgrid(np.arange(4.0), np.arange(3.0)), axis=-1).reshape(-1, 2)
M = np.abs(GRID[:, None] - GRID).sum(-1)


@pytest.fixture
def H(rng):
    weights = np.where(rng.random((7, 12)) < 0.5, 0.0, rng.random((7, 12)))
    return weights / weights.sum(1, keepdims=True)


def test_pairs_are_those_of_squareform(H):
    batch = epsilot.pairwise(H, M, plans=True, potentials=True)
    D = batch.to_matrix()
    np.testing.assert_array_equal(D, squareform(batch.value))
    for i in range(7):
        for j in range(7):
            alone = epsilot.exact(M, H[i], H[j]).value
            assert D[i, j] == pytest.approx(alone, abs=1e-13)
    assert (batch.to_matrix("gap") <= 1e-12).all()
    assert batch[3].value == batch.value[3]


@pytest.mark.parametrize("form", [sparse.csr_matrix, sparse.coo_array, sparse.csc_array, np.array])
def test_zeros_are_dropped_whatever_the_form(H, form):
    expected = epsilot.pairwise(H, M, potentials=True, plans=True)
    batch = epsilot.pairwise(form(H), M, potentials=True, plans=True)
    np.testing.assert_array_equal(batch.value, expected.value)
    np.testing.assert_array_equal(batch.potentials.f, expected.potentials.f)
    for k in range(len(batch)):
        f, g = batch.potentials[k]
        assert (f[:, None] + g <= M).all()
        i, j = batch.pairing.pairs[k]
        np.testing.assert_allclose(batch.plans[k].sum(axis=1), H[i], atol=1e-15)
        np.testing.assert_allclose(batch.plans[k].sum(axis=0), H[j], atol=1e-15)
    assert batch[2].value == batch.value[2]


def test_two_collections(rng, H):
    C, H2 = rng.normal(size=(12, 5)), rng.dirichlet(np.ones(5), 3)
    batch = epsilot.pairwise(H, C, H2)
    D = batch.to_matrix()
    assert D.shape == (7, 3)
    assert D[6, 1] == pytest.approx(epsilot.exact(C, H[6], H2[1]).value)
    some = epsilot.pairwise(H, C, H2, pairs=[(6, 1), (0, 2)])
    np.testing.assert_array_equal(some.value, [D[6, 1], D[0, 2]])
    assert np.isnan(some.to_matrix()).sum() == 19


def test_chosen_pairs_of_one_collection(H):
    D = epsilot.pairwise(H, M).to_matrix()
    some = epsilot.pairwise(H, M, pairs=[(2, 1), (3, 3)])
    assert some.value[0] == pytest.approx(D[1, 2], abs=1e-15)
    assert some.value[1] == pytest.approx(0.0, abs=1e-15)
    assert some.to_matrix()[1, 2] == some.value[0]


def test_every_ordered_pair_for_costs_that_are_no_metric(rng, H):
    C = rng.random((12, 12))
    D = epsilot.pairwise(H, C, H).to_matrix()
    assert D[1, 2] == pytest.approx(epsilot.exact(C, H[1], H[2]).value)
    assert D[2, 1] == pytest.approx(epsilot.exact(C, H[2], H[1]).value)
    assert D[1, 2] != pytest.approx(D[2, 1])


@pytest.mark.parametrize(
    ("changes", "pattern"),
    [
        ({"M": M[:, :3]}, "M has shape.*H2=H"),
        ({"M": M + np.triu(M)}, "not symmetric.*H2=H"),
        ({"M": M + 1}, "diagonal"),
        ({"M": -M}, "negative"),
        ({"H": np.ones((2, 5))}, r"H has shape \(2, 5\).*12 places"),
        ({"H": np.ones(12)}, "H has shape"),
        ({"H2": np.ones((2, 5))}, "H2 has shape"),
        ({"pairs": [1, 2]}, "pairs has shape"),
        ({"pairs": [(0, 9)]}, r"pair 0 is \(0, 9\)"),
        ({"pairs": [(0.5, 1)]}, "pair 0"),
        ({"H": "many"}, "H is of type"),
    ],
)
def test_bad_arguments_are_refused_in_one_sentence(H, changes, pattern):
    with pytest.raises(InvalidProblem, match=pattern):
        epsilot.pairwise(**({"H": H, "M": M} | changes))


def test_a_bad_histogram_spoils_its_own_pairs_only(H):
    expected = epsilot.pairwise(H, M).to_matrix()
    H[3, 0] = -1
    batch = epsilot.pairwise(H, M, on_error="collect")
    D = batch.to_matrix()
    assert len(batch.errors) == 6
    assert all("negative" in text for text in batch.errors.values())
    others = [0, 1, 2, 4, 5, 6]
    np.testing.assert_array_equal(D[np.ix_(others, others)], expected[np.ix_(others, others)])


def test_unnormalised_histograms(H):
    scaled = H * np.arange(1, 8)[:, None]
    with pytest.raises(InvalidProblem, match="normalize=True"):
        epsilot.pairwise(scaled, M)
    batch = epsilot.pairwise(scaled, M, normalize=True, plans=True, potentials=True)
    np.testing.assert_allclose(batch.value, epsilot.pairwise(H, M).value, atol=1e-14)
    assert batch[5].value == batch.value[5]


def test_saved_pairs_are_a_matrix_again(H, tmp_path):
    batch = epsilot.pairwise(H, M, plans=True)
    batch.save(tmp_path / "D.npz")
    back = BatchResult.load(tmp_path / "D.npz")
    np.testing.assert_array_equal(back.to_matrix(), batch.to_matrix())
    with pytest.raises(InvalidProblem, match="field"):
        back.to_matrix("values")


def test_few_histograms(H):
    assert epsilot.pairwise(H[:1], M).to_matrix().tolist() == [[0.0]]
    assert epsilot.pairwise(H[:0], M).to_matrix().shape == (0, 0)
