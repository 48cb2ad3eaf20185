"""Barycentres on grids: the same optimum as with stored costs, and coarser grids that begin."""

import barycenter_problems
import numpy as np
import pytest

import epsilot
from epsilot.barycenters.family import coarser, make_family

POWERS = {"cityblock": 1, "sqeuclidean": 2}


def images(rng, k, shape):
    A = rng.random((k, *shape)) ** 3
    A[A < 0.05] = 0.0
    return A / A.sum(axis=tuple(range(1, A.ndim)), keepdims=True)


@pytest.mark.parametrize("shape", [(24,), (5, 6), (3, 4, 2)])
@pytest.mark.parametrize("metric", POWERS)
@pytest.mark.parametrize("method", ["anderson", "lbfgs", "pdasmd"])
def test_brackets_the_optimum(method, metric, shape, rng):
    A, w = images(rng, 3, shape), np.array([0.5, 0.3, 0.2])
    result = epsilot.barycenter_grid(A, w, metric=metric, spacing=0.5, method=method)
    cells = 0.5 * np.indices(shape).reshape(len(shape), -1)
    M = (np.abs(cells[:, :, None] - cells[:, None]) ** POWERS[metric]).sum(axis=0)
    rows = list(A.reshape(3, -1))
    best = barycenter_problems.optimum(barycenter_problems.Case(rows, [M] * 3, w))
    assert result.converged
    assert result.barycenter.shape == shape
    assert result.lower_bound - 1e-9 <= best <= result.value + 1e-9
    for plan, a in zip(result.plans, rows, strict=True):
        r, c = plan.marginals()
        assert abs(r - a).sum() <= 1e-12
        assert abs(c - result.barycenter.ravel()).sum() <= 1e-12


@pytest.mark.parametrize("metric", ["sqeuclidean", "cityblock"])
@pytest.mark.parametrize("rtol", [None, 1e-6, 1e-9])
@pytest.mark.parametrize("spacing", [1.0, 0.3])
def test_an_optimum_of_zero_is_certified(metric, rtol, spacing, rng):
    for shape in ((7,), (3, 4)):
        image = rng.random(shape)
        result = epsilot.barycenter_grid(
            np.stack([image] * 2), metric=metric, spacing=spacing, rtol=rtol, normalize=True
        )
        assert result.converged
        assert result.gap >= 0


def test_coarser_grids_begin(rng):
    field = np.full((3, 51, 60), 0.1 / 3060)
    for k, (i, j) in enumerate([(8, 8), (30, 20), (12, 40)]):
        field[k, i : i + 12, j : j + 10] += 0.9 / 120
    result = epsilot.barycenter_grid(
        field, metric="sqeuclidean", spacing=0.02, rtol=0.05, normalize=True
    )
    assert result.converged
    assert result.method == "anderson"


def test_pooling_keeps_mass_and_prolonging_keeps_lines(rng):
    shape = 53, 44
    A = images(rng, 2, shape).reshape(2, -1)
    family = make_family(list(A), epsilot.Grid(shape, shape, "cityblock", 1.0))
    coarse = coarser(family)
    assert coarse is not None
    assert coarse.halved.geometry.shape_a == (27, 22)
    assert coarse.halved.geometry.spacing == (2.0, 2.0)
    pooled = coarse.family.members[0].problem.p
    np.testing.assert_allclose(pooled.sum(), 1.0)
    assert pooled[0] == A[0].reshape(shape)[:2, :2].sum()
    i, j = np.indices((27, 22))
    line = np.ravel(3 * (2 * i + 0.5) - 2 * (2 * j + 0.5))
    fine = coarse.prolonged(np.stack([line, line]))[0].reshape(shape)
    i, j = np.indices(shape)
    inside = np.s_[1:-2, 1:-2]
    np.testing.assert_allclose(fine[inside], (3.0 * i - 2 * j)[inside])
    assert coarser(coarse.family) is None


REFUSED = [
    ([], {}, "images is empty"),
    (np.ones((2, 2, 2, 2, 2)), {}, r"images\[0\] has shape \(2, 2, 2, 2\)"),
    ([np.ones((2, 2)), np.ones((2, 3))], {}, "all images must have the same shape"),
    ([np.zeros((2, 2))], {}, r"A\[0\] sums to 0"),
    ([np.ones((2, 2))], {"metric": "euclidean"}, "a grid serves"),
]


@pytest.mark.parametrize(("fields", "keywords", "sentence"), REFUSED)
def test_refusals_are_one_sentence(fields, keywords, sentence):
    with pytest.raises(epsilot.InvalidProblem, match=sentence):
        epsilot.barycenter_grid(fields, **keywords)


def test_a_program_that_presolve_calls_infeasible_is_solved():
    first = [6.625566341870877e-06, 0.17224271680718636, 5.23391540567878, 1.8829169184207022e-06]
    first += [6.496357203382213e-07, 5.7773748748177037e-05, 0.003906536377947273]
    first += [4.8820137192204696e-11, 2.682313435296435e-11]
    last = [0.5429078723270391, 0.0, 2.469972834981948, 0.3730131319579524, 2.0242377515403462]
    images = [np.array(x) for x in (first, [0.6011257323119207] * 9, [*last, 0.0, 0.0, 0.0, 0.0])]
    weights = [0.7679076271306157, 0.8038966473707082, 0.11184172677424452]
    found = epsilot.barycenter_grid(
        images, weights, metric="cityblock", spacing=1.4549875086057926, rtol=1e-9
    )
    assert found.converged
