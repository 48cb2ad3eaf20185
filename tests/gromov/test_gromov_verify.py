"""The verifier accepts what the searches return, and nothing that was tampered with."""

import dataclasses
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
    found = {
        "triangulation": epsilot.solve_gromov(X, Y, rtol=0.2),
        "boxes": epsilot.solve_gromov(X, Y, rtol=0.2, method="boxes"),
    }
    for result in found.values():
        certificate = result.verify()
        assert certificate.lower == pytest.approx(result.lower_bound, rel=1e-12)
        assert certificate.upper == pytest.approx(result.value, rel=1e-12)
    return found


def changed(array, place, value):
    array = array.copy()
    array[place] = value
    return array


def with_cover(result, **fields):
    return dataclasses.replace(result, cover=dataclasses.replace(result.cover, **fields))


def with_plan(result, **fields):
    return dataclasses.replace(result, arcs=dataclasses.replace(result.arcs, **fields))


def flipped(corners):
    """Replace a simplex by its mirror image: two corners of two simplices change places."""
    return changed(corners, (0, 1), corners[1, 1] if corners[1, 1] not in corners[0] else 0)


def worst(cover):
    """Return a corner of the simplex of least bound."""
    slopes = 16 * (cover.places[:, None] * cover.points[cover.corners]).sum(-1)
    bounds = (slopes - cover.values[cover.corners]).min(axis=1) - 8 * (cover.places**2).sum(axis=1)
    return cover.corners[bounds.argmin()]


BROKEN = {
    "a simplex is missing": lambda r: with_cover(
        r, corners=r.cover.corners[1:], places=r.cover.places[1:]
    ),
    "a simplex is there twice": lambda r: with_cover(
        r,
        corners=np.concatenate([r.cover.corners, r.cover.corners[:1]]),
        places=np.concatenate([r.cover.places, r.cover.places[:1]]),
    ),
    "a corner belongs to another point": lambda r: with_cover(r, corners=flipped(r.cover.corners)),
    "a corner is no point": lambda r: with_cover(
        r, corners=changed(r.cover.corners, (0, 0), 10**6)
    ),
    "a corner is there twice": lambda r: with_cover(
        r, corners=changed(r.cover.corners, (0, 0), r.cover.corners[0, 1])
    ),
    "a point has moved across a face": lambda r: with_cover(
        r, points=changed(r.cover.points, len(r.cover.points) - 1, r.cover.points[3] / 2)
    ),
    "an outer corner has moved inside": lambda r: with_cover(
        r, points=changed(r.cover.points, 1, 0.9 * r.cover.points[1])
    ),
    "the polytope is too small": lambda r: with_cover(
        r, points=r.cover.points / 1e3, radius=r.cover.radius / 1e3
    ),
    "a value is lower than its potentials prove": lambda r: with_cover(
        r, values=changed(r.cover.values, 0, r.cover.values[0] - 1e-3)
    ),
    "potentials of another problem": lambda r: with_cover(
        r, prices=changed(r.cover.prices, 0, r.cover.prices[5])
    ),
    "a value is higher": lambda r: with_cover(
        r, values=r.cover.values + 0.01 * abs(r.problem.constant)
    ),
    "a place is somewhere else": lambda r: with_cover(r, places=r.cover.places + 0.1),
    "a place is not finite": lambda r: with_cover(r, places=changed(r.cover.places, 0, np.nan)),
    "the bound is raised": lambda r: dataclasses.replace(r, lower_bound=r.lower_bound * 1.001),
    "the value is lowered": lambda r: dataclasses.replace(r, value=r.value * 0.999),
}
BROKEN_PLANS = {
    "a flow is negative": lambda r: with_plan(r, flow=changed(r.arcs.flow, 0, -1 / 12)),
    "a flow is larger": lambda r: with_plan(r, flow=changed(r.arcs.flow, 0, 1.001 / 12)),
    "a flow is not a number": lambda r: with_plan(r, flow=changed(r.arcs.flow, 0, np.nan)),
    "two rows go to one column": lambda r: with_plan(r, j=changed(r.arcs.j, 0, r.arcs.j[1])),
    "two columns are exchanged": lambda r: with_plan(
        r, j=changed(r.arcs.j, [0, 1], r.arcs.j[[1, 0]])
    ),
    "an arc is outside": lambda r: with_plan(r, i=changed(r.arcs.i, 0, 12)),
}
BROKEN_BOXES = {
    "a box is missing": lambda r: with_cover(
        r, leaves=r.cover.leaves[1:], sources=r.cover.sources[1:]
    ),
    "a box is there twice": lambda r: with_cover(
        r,
        leaves=np.concatenate([r.cover.leaves, r.cover.leaves[:1]]),
        sources=np.concatenate([r.cover.sources, r.cover.sources[:1]]),
    ),
    "a box and a half of it": lambda r: with_cover(
        r,
        leaves=np.concatenate([r.cover.leaves, [0]]),
        sources=np.concatenate([r.cover.sources, [0]]),
    ),
    "a box is narrower": lambda r: with_cover(
        r, highs=changed(r.cover.highs, r.cover.leaves[0], 0.9 * r.cover.highs[r.cover.leaves[0]])
    ),
    "the first box is too small": lambda r: with_cover(
        r, lows=0.9 * r.cover.lows, highs=0.9 * r.cover.highs
    ),
    "a bound of another box": lambda r: with_cover(
        r, sources=changed(r.cover.sources, 0, r.cover.sources[-1])
    ),
    "a value is higher": lambda r: with_cover(
        r, values=r.cover.values + 0.01 * abs(r.problem.constant)
    ),
    "a value is not finite": lambda r: with_cover(
        r, values=changed(r.cover.values, r.cover.sources[0], np.nan)
    ),
    "a value is lower than its potentials prove": lambda r: with_cover(
        r,
        values=changed(
            r.cover.values, r.cover.sources[0], r.cover.values[r.cover.sources[0]] - 1e-3
        ),
    ),
    "all values are lower than their potentials prove": lambda r: dataclasses.replace(
        with_cover(r, values=r.cover.values - 1e-3), lower_bound=r.lower_bound + 1e-4
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
    "the bound is raised": lambda r: dataclasses.replace(r, lower_bound=r.lower_bound * 1.001),
}
CASES = [
    *(("triangulation", name, change) for name, change in (BROKEN | BROKEN_PLANS).items()),
    *(("boxes", name, change) for name, change in (BROKEN_BOXES | BROKEN_PLANS).items()),
]


@pytest.mark.parametrize(
    ("method", "name", "change"), CASES, ids=[f"{method}-{name}" for method, name, _ in CASES]
)
def test_what_was_tampered_with_is_refused(results, method, name, change):
    with pytest.raises(CertificateError):
        change(results[method]).verify()


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
