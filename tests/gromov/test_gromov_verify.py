"""The verifier accepts what the searches return, and each of its checks refuses a change of it."""

import dataclasses
import inspect
import re
from fractions import Fraction

import numpy as np
import pytest
from gromov_problems import noisy_copy

import epsilot
from epsilot.errors import CertificateError
from epsilot.gromov import boxes, verify
from epsilot.gromov.objective import cross_polytope
from tuning import tune


@pytest.fixture(scope="module")
def results():
    X, Y = np.random.default_rng(0).random((2, 12, 2))
    X[1], Y[1] = X[0], Y[0]  # mass that moves between them changes marginals alone
    found = {
        "triangulation": epsilot.solve_gromov(X, Y, rtol=0.2),
        "boxes": epsilot.solve_gromov(X, Y, rtol=0.2, method="boxes"),
    }
    for result in found.values():
        certificate = result.verify()
        assert certificate.lower == pytest.approx(result.lower_bound, rel=1e-12)
        assert certificate.upper == pytest.approx(result.value, rel=1e-12)
    return found


# -- changes of results ----------------------------------------------------------------------------


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def with_cover(result, **fields):
    return dataclasses.replace(result, cover=dataclasses.replace(result.cover, **fields))


def with_plan(result, **fields):
    return dataclasses.replace(result, arcs=dataclasses.replace(result.arcs, **fields))


def weak(result, **fields):
    """Change a cover and claim no lower bound, by values that any potentials prove."""
    fields.setdefault("values", np.full_like(result.cover.values, 1e3))
    return dataclasses.replace(with_cover(result, **fields), lower_bound=-np.inf)


def with_simplices(result, corners):
    """Return a weak cover by other simplices."""
    return weak(result, corners=np.array(corners), places=np.zeros((len(corners), 4)))


def scaled(result, scale):
    """Return a weak cover by a polytope whose axes are longer or shorter."""
    return weak(result, points=result.cover.points * scale)


def with_boxes(result, leaves, sources=None, *, low=1.0, high=1.0, is_flat=False):
    """Return a weak cover by the first box, its halves, and the left half of each half."""

    def halves(low, high):
        k = (high - low).argmax()
        middle = (low[k] + high[k]) / 2
        return (low, changed(high, k, middle)), (changed(low, k, middle), high)

    first = low * result.cover.lows[0], high * result.cover.highs[0]
    left, right = halves(*first)
    if is_flat:
        right = right[0], left[1]
    lows, highs = zip(first, left, right, halves(*left)[0], halves(*right)[0], strict=True)
    return weak(
        result,
        lows=np.array(lows),
        highs=np.array(highs),
        values=np.full(5, 1e3),
        price_rows=np.full(5, -1),
        leaves=np.array(leaves),
        sources=np.array(leaves if sources is None else sources),
    )


def with_negative_flow(result):
    """Move mass around a cycle of arcs between two equal points and two others."""
    t, (i, j, w) = 1e-3, (result.arcs.i, result.arcs.j, result.arcs.flow)
    return with_plan(
        result,
        i=np.append(i, [0, 1, 1, 0]),
        j=np.append(j, [j[2], j[2], j[3], j[3]]),
        flow=np.append(w, [t, -t, t, -t]),
    )


def not_centred(result):
    """Move the first cloud, which moments do not allow, and state the value by moments."""
    problem = dataclasses.replace(result.problem, X=result.problem.X + 0.01)
    with pytest.MonkeyPatch.context() as patch:
        few = dataclasses.replace(verify.TOLERANCES, max_paired_arcs=0)
        patch.setattr(verify, "TOLERANCES", few)
        value, _ = verify.value_of(problem, result.arcs)
    return dataclasses.replace(
        weak(result), problem=problem, value=problem.unit * problem.mass * value
    )


# -- each message with the changes that it refuses -------------------------------------------------
# Other checks accept the first change of each message, where they can read the arrays at all.

PLANS = {
    "the plan has arrays of wrong sizes": {
        "a shape of other clouds": lambda r: with_plan(r, shape=(13, 12)),
        "a flow is missing": lambda r: with_plan(r, flow=r.arcs.flow[1:]),
        "no arcs": lambda r: with_plan(r, i=r.arcs.i[:0], j=r.arcs.j[:0], flow=r.arcs.flow[:0]),
    },
    "the plan has arcs outside the clouds": {
        "a row is outside": lambda r: with_plan(r, i=changed(r.arcs.i, 0, 12)),
        "a column is outside": lambda r: with_plan(r, j=changed(r.arcs.j, 0, 12)),
        "a row is negative": lambda r: with_plan(r, i=changed(r.arcs.i, -1, -1)),
        "a column is negative": lambda r: with_plan(r, j=changed(r.arcs.j, 0, -1)),
    },
    "the plan has a negative entry": {
        "a cycle of flows": with_negative_flow,
        "a flow is not a number": lambda r: with_plan(r, flow=changed(r.arcs.flow, 0, np.nan)),
    },
    "the plan misses its marginals by ": {
        "a row gives the mass of an equal one": lambda r: with_plan(r, i=changed(r.arcs.i, 0, 1)),
        "a column takes the mass of an equal one": lambda r: with_plan(
            r, j=np.where(r.arcs.j == 0, 1, r.arcs.j)
        ),
        "a flow is larger": lambda r: with_plan(r, flow=changed(r.arcs.flow, 0, 1.001 / 12)),
        "a flow is infinite": lambda r: with_plan(r, flow=changed(r.arcs.flow, 0, np.inf)),
    },
    "the objective is ": {"a cloud is not centred": not_centred},
    "the value is ": {
        "two columns are exchanged": lambda r: with_plan(
            r, j=changed(r.arcs.j, [2, 3], r.arcs.j[[3, 2]])
        ),
        "the value is lowered": lambda r: dataclasses.replace(r, value=r.value * 0.999),
    },
    "the lower bound is ": {
        "the bound is raised": lambda r: dataclasses.replace(r, lower_bound=r.lower_bound * 1.001),
        "values are higher": lambda r: with_cover(
            r, values=r.cover.values + 0.01 * abs(r.problem.constant)
        ),
    },
    "the cover has bounds that are not finite": {
        "values are infinite": lambda r: weak(r, values=np.full_like(r.cover.values, np.inf)),
    },
}
TRIANGULATIONS = {
    "the cross-polytope does not hold all cross moments": {
        "the polytope is too small": lambda r: weak(
            r, points=r.cover.points / 8, radius=r.cover.radius / 8
        ),
    },
    "the cover has no simplices of the right dimension": {
        "no simplices": lambda r: with_simplices(r, r.cover.corners[:0]),
        "simplices with too few corners": lambda r: with_simplices(r, r.cover.corners[:, 1:]),
        "numbers without simplices": lambda r: with_simplices(r, r.cover.corners.ravel()),
    },
    "the cover has corners that are no points": {
        "a corner is counted from the end": lambda r: with_simplices(
            r, np.where(r.cover.corners == len(r.cover.points) - 1, -1, r.cover.corners)
        ),
        "a corner is too large": lambda r: with_simplices(
            r, changed(r.cover.corners, (0, 0), len(r.cover.points))
        ),
    },
    "the cover has points outside the cross-polytope": {
        "one axis is longer and one shorter": lambda r: scaled(r, np.array([1.125, 0.875, 1, 1])),
        "a point is not finite": lambda r: weak(r, points=changed(r.cover.points, (1, 0), np.inf)),
    },
    "the cover has a flat simplex": {
        "a flat simplex with two sides": lambda r: with_simplices(r, 2 * [[0, 1, 2, 3, 5]]),
        "a corner is there twice": lambda r: with_simplices(
            r, changed(r.cover.corners, (0, 0), r.cover.corners[0, 1])
        ),
    },
    "the simplices of the cover overlap, or lie on one side of a common face": {
        "one simplex, twice": lambda r: with_simplices(r, 2 * [[0, 1, 3, 5, 7]]),
        "one simplex, three times": lambda r: with_simplices(r, 3 * [[0, 1, 3, 5, 7]]),
        "a simplex is there twice": lambda r: with_simplices(
            r, np.concatenate([r.cover.corners, r.cover.corners[:1]])
        ),
        "a point has moved across a face": lambda r: weak(
            r, points=changed(r.cover.points, len(r.cover.points) - 1, -r.cover.points[-1])
        ),
    },
    "the cover has a hole": {
        "a simplex is missing": lambda r: with_simplices(r, r.cover.corners[1:]),
        "all axes are shorter": lambda r: scaled(r, 0.875),
        "an outer corner has moved inside": lambda r: weak(
            r, points=changed(r.cover.points, 1, 0.9 * r.cover.points[1])
        ),
    },
    "a value of V is ": {
        "a value is lower than its potentials prove": lambda r: with_cover(
            r, values=changed(r.cover.values, 0, r.cover.values[0] - 1e-3)
        ),
        "potentials of another problem": lambda r: with_cover(
            r, prices=changed(r.cover.prices, 0, r.cover.prices[5])
        ),
        # A constant on all prices changes no bound, nor may it hide a wrong value in round-off.
        "prices so high that their round-off would hide all": lambda r: with_cover(
            r, prices=r.cover.prices + 1e12, values=r.cover.values - 0.1
        ),
    },
    "the lower bound is ": {
        "places are somewhere else": lambda r: with_cover(r, places=r.cover.places + 0.1),
    },
    "the cover has bounds that are not finite": {
        "a place is not finite": lambda r: with_cover(r, places=changed(r.cover.places, 0, np.nan)),
    },
}
BOXES = {
    "the first box does not hold all cross moments": {
        "lower ends are too high": lambda r: with_boxes(r, [1, 2], low=0.5),
        "upper ends are too low": lambda r: with_boxes(r, [1, 2], high=0.5),
    },
    "the cover has a box that does not arise by halving": {
        "a half is flat": lambda r: with_boxes(r, [1, 2], is_flat=True),
        "a box is narrower": lambda r: weak(
            r,
            highs=changed(r.cover.highs, r.cover.leaves[0], 0.9 * r.cover.highs[r.cover.leaves[0]]),
        ),
    },
    "the cover has overlapping boxes": {
        "a half for the other": lambda r: with_boxes(r, [1, 1]),
        "a quarter of a half for another": lambda r: with_boxes(r, [1, 3, 4]),
    },
    "the boxes of the cover leave a hole": {
        "a half is missing": lambda r: with_boxes(r, [2]),
        "a box is missing": lambda r: with_cover(
            r, leaves=r.cover.leaves[1:], sources=r.cover.sources[1:]
        ),
    },
    "a box is bounded by one that does not contain it": {
        "the left half by the right one": lambda r: with_boxes(r, [1, 2], [2, 2]),
        "the right half by the left one": lambda r: with_boxes(r, [1, 2], [1, 1]),
        "a bound of another box": lambda r: with_cover(
            r, sources=changed(r.cover.sources, 0, r.cover.sources[-1])
        ),
    },
    "a value of V is ": {
        "a value is lower than its potentials prove": lambda r: with_cover(
            r,
            values=changed(
                r.cover.values, r.cover.sources[0], r.cover.values[r.cover.sources[0]] - 1e-3
            ),
        ),
        "all values are lower than their potentials prove": lambda r: dataclasses.replace(
            with_cover(r, values=r.cover.values - 1e-3), lower_bound=r.lower_bound + 1e-5
        ),
        "a value without potentials is too low": lambda r: with_cover(
            r, values=r.cover.values - 1e-9, price_rows=np.full_like(r.cover.price_rows, -1)
        ),
        "potentials of another box": lambda r: with_cover(
            r,
            price_rows=changed(
                r.cover.price_rows, r.cover.sources[0], r.cover.price_rows[r.cover.sources[-1]]
            ),
        ),
        "potentials are not numbers": lambda r: with_cover(
            r, prices=np.full_like(r.cover.prices, np.nan)
        ),
        "a value is not a number": lambda r: with_cover(
            r, values=changed(r.cover.values, r.cover.sources[0], np.nan)
        ),
    },
}
CASES = [
    pytest.param(method, message, change, id=f"{method}-{name}")
    for method, tables in (("triangulation", (PLANS, TRIANGULATIONS)), ("boxes", (PLANS, BOXES)))
    for table in tables
    for message, changes in table.items()
    for name, change in changes.items()
]


@pytest.mark.parametrize(("method", "message", "change"), CASES)
def test_what_was_tampered_with_is_refused(results, method, message, change):
    with pytest.raises(CertificateError, match=f"^{re.escape(message)}"):
        change(results[method]).verify()


def test_every_check_has_a_case():
    found = re.findall(r'raise _refuse\(f?"([^"{]+)', inspect.getsource(verify))
    assert {*found, "the value is ", "the lower bound is "} == {*PLANS, *TRIANGULATIONS, *BOXES}


@pytest.mark.parametrize("method", ["triangulation", "boxes"])
def test_a_weak_cover_is_accepted(results, method):
    weak(results[method]).verify()
    if method == "boxes":
        with_boxes(results[method], [1, 2]).verify()
        with_boxes(results[method], [1, 2], [0, 0]).verify()


def test_potentials_that_were_not_kept_are_solved_for(monkeypatch):
    X, Y = noisy_copy(12, 3)
    whole = epsilot.solve_gromov(X, Y, rtol=0.2)
    tune(monkeypatch, boxes, max_kept_bytes=0)
    result = epsilot.solve_gromov(X, Y, rtol=0.2)
    cover = result.cover
    assert (result.value, result.lower_bound) == (whole.value, whole.lower_bound)
    assert (cover.price_rows[cover.sources] < 0).any()
    assert (whole.cover.price_rows[whole.cover.sources] >= 0).all()
    assert result.verify() == whole.verify()


def test_a_wrong_search_is_stopped_by_the_check_of_every_run(monkeypatch):
    X, Y = noisy_copy(10)
    monkeypatch.setattr(verify, "bound_of_simplices", lambda cover: 1e9)
    with pytest.raises(CertificateError, match="contradicts"):
        epsilot.solve_gromov(X, Y)


@pytest.mark.parametrize("D", [1, 2, 4, 6])
def test_the_first_triangulation_tiles_the_cross_polytope(D):
    points, corners = cross_polytope(D, 3.0)
    verify.check_tiling(points, corners, 3.0)
    with pytest.raises(CertificateError):
        verify.check_tiling(points, corners[1:], 3.0)


def test_signs_of_determinants_are_exact():
    rng = np.random.default_rng(0)
    flat = rng.integers(-5, 6, size=(40, 4, 3)).astype(float)
    flat[:20, 3] = flat[:20, 0] + flat[:20, 1] - flat[:20, 2]  # in one plane
    flat[20:, 3] = flat[20:, 0] + flat[20:, 1] - flat[20:, 2] + 2.0**-45
    corners = np.arange(160).reshape(40, 4)
    signs = verify.orientations(flat.reshape(-1, 3), corners)
    for simplex, sign in zip(flat, signs, strict=True):
        rows = [[Fraction(x) for x in row] for row in (simplex[1:] - simplex[0]).tolist()]
        (a, b, c), (d, e, f), (g, h, i) = rows
        exact = a * (e * i - f * h) - b * (d * i - f * g) + c * (d * h - e * g)
        assert sign == (exact > 0) - (exact < 0)
    values = verify.determinants(rng.normal(size=(30, 5, 5)))
    assert values.shape == (30,)


def test_determinants_are_those_of_numpy():
    E = np.random.default_rng(1).normal(size=(50, 4, 4))
    np.testing.assert_allclose(verify.determinants(E), np.linalg.det(E), rtol=1e-10)
