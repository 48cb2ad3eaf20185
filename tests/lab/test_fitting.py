import math

import numpy as np
import pytest
from scipy import stats

from epsilot_lab.fitting import curve, fit_power, ratios, select


def test_a_power_law_is_found_exactly():
    x = np.array([2.0, 3.0, 5.0, 9.0])
    fit = fit_power(x, 7 * x**1.7)
    assert fit.slope == pytest.approx(1.7, abs=1e-12)
    assert fit.low == pytest.approx(1.7, abs=1e-9)
    np.testing.assert_allclose(fit.at(4.0), 7 * 4**1.7)


def test_the_interval_is_that_of_linear_regression(rng):
    x = np.repeat([4.0, 9.0, 16.0, 25.0], 5)
    y = x**2 * np.exp(0.2 * rng.standard_normal(x.size))
    expected = stats.linregress(np.log(x), np.log(y))
    reach = stats.t.ppf(0.975, x.size - 2) * expected.stderr
    fit = fit_power(x, y)
    assert fit.slope == pytest.approx(expected.slope)
    assert (fit.low, fit.high) == pytest.approx((fit.slope - reach, fit.slope + reach))


def test_the_interval_covers_the_truth_as_often_as_it_says(rng):
    x = np.repeat([4.0, 9.0, 16.0, 25.0], 5)
    fits = [fit_power(x, x**2 * np.exp(0.3 * rng.standard_normal(x.size))) for _ in range(400)]
    assert 0.91 < np.mean([fit.low <= 2 <= fit.high for fit in fits]) < 0.985


def test_problems_of_different_levels_do_not_blur_the_slope():
    x, problem = np.tile([1.0, 2.0, 4.0], 3), np.repeat([0, 1, 2], 3)
    y = 10.0**problem * x**0.5
    assert str(fit_power(x, y, list(problem))) == "0.50 [0.50, 0.50]"
    assert fit_power(x, y).high > 1
    noisy = y * np.exp(0.1 * np.sin(np.arange(9)))
    design = np.column_stack([np.log(x), *(problem == k for k in range(3))])
    (slope, *_), (rest,), *_ = np.linalg.lstsq(design, np.log(noisy), rcond=None)
    deviation = np.sqrt(rest / 5 * np.linalg.inv(design.T @ design)[0, 0])
    fit = fit_power(x, noisy, list(problem))
    assert (fit.slope, fit.high) == pytest.approx(
        (slope, slope + stats.t.ppf(0.975, 5) * deviation)
    )


@pytest.mark.parametrize(
    ("x", "y", "text"),
    [
        ([], [], "–"),
        ([3, 3], [1, 2], "–"),
        ([1, 2], [1, 4], "2.00"),
        ([1, 2, 4], [1, 4, 16], "2.00 [2.00, 2.00]"),
    ],
)
def test_what_is_not_known_is_not_claimed(x, y, text):
    assert str(fit_power(x, y)) == text


def line(n, work, ended=True, **fields):
    return {"n": n, "work": work, "has_ended": ended, **fields}


def test_a_curve_has_median_and_range_of_the_runs_that_ended():
    lines = [line(4, 1.0), line(4, 5.0), line(4, 2.0), line(9, 7.0), line(9, 1e9, ended=False)]
    lines += [line(16, None), line(1, 0.0)]
    found = curve("a", lines, lambda x: x["n"], lambda x: x["work"])
    assert found.x == (4.0, 9.0)
    assert found.median == (2.0, 7.0)
    assert found.low == (1.0, 7.0)
    assert found.high == (5.0, 7.0)
    assert found.n_lines == 4
    assert math.isnan(found.median_at(16))


def test_ratios_are_of_medians_where_both_exist():
    one = curve("a", [line(4, 2.0), line(9, 3.0)], lambda x: x["n"], lambda x: x["work"])
    two = curve("b", [line(4, 8.0), line(25, 1.0)], lambda x: x["n"], lambda x: x["work"])
    assert ratios(one, two) == [0.25]


def test_lines_are_selected_by_fields():
    lines = [line(4, 1, given={"B": 2}), line(4, 2, given={}), line(9, 3, given={})]
    assert select(lines, n=4, given={}) == [lines[1]]
