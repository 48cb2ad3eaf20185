"""The plan sampler draws what torchcfm draws, and pairs by optimal plans."""

import numpy as np
import ot
import pytest

torch = pytest.importorskip("torch")

from epsilot import InvalidProblem  # noqa: E402
from epsilot.adapters.torchcfm import OTPlanSampler  # noqa: E402


def clouds(n, m, *shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return tuple(torch.randn(k, *shape, generator=generator) for k in (n, m))


@pytest.mark.parametrize(
    ("method", "n", "m", "tolerance"),
    [
        ("exact", 24, 24, 1e-15),
        ("exact", 24, 20, 1e-15),
        ("sinkhorn", 24, 24, 1e-7),  # POT stops at 1e-9 of the marginals
        ("unbalanced", 24, 24, 1e-6),
        ("partial", 24, 24, 1e-8),  # costs in float64, and in float32
    ],
)
@pytest.mark.parametrize("replace", [True, False])
def test_draws_are_those_of_torchcfm(method, n, m, tolerance, replace):
    samplers = pytest.importorskip("torchcfm.optimal_transport")
    # Costs are divided by their maximum, with which POT's iterations converge.
    options = {"reg": 0.1, "normalize_cost": method != "exact"}
    pair = samplers.OTPlanSampler(method, **options), OTPlanSampler(method, **options)
    x0, x1 = clouds(n, m, 2, 3)
    y0, y1 = torch.arange(n), torch.arange(m)
    plans = [sampler.get_map(x0, x1) for sampler in pair]
    np.testing.assert_allclose(plans[1], plans[0], rtol=0, atol=tolerance)
    size = n if method != "exact" or replace else 20  # a plan has at least so many entries
    drawn = []
    for sampler in pair:
        np.random.seed(7)  # noqa: NPY002
        drawn.append(
            (
                *sampler.sample_plan(x0[:size], x1, replace=replace),
                *sampler.sample_plan_with_labels(x0, x1, y0, y1, replace=True),
                *map(torch.from_numpy, sampler.sample_map(plans[0], size, replace=replace)),
            )
        )
    for theirs, ours in zip(*drawn, strict=True):
        assert torch.equal(theirs, ours)


def test_trajectories_are_those_of_torchcfm():
    samplers = pytest.importorskip("torchcfm.optimal_transport")
    X = clouds(15, 1, 4, 2)[0]
    paths = []
    for cls in (samplers.OTPlanSampler, OTPlanSampler):
        np.random.seed(3)  # noqa: NPY002
        paths.append(cls("exact").sample_trajectory(X))
    np.testing.assert_array_equal(*paths)


def test_flow_matchers_take_it():
    matching = pytest.importorskip("torchcfm.conditional_flow_matching")
    x0, x1 = clouds(16, 16, 2)
    found = []
    for replaced in (False, True):
        matcher = matching.ExactOptimalTransportConditionalFlowMatcher(sigma=0.1)
        if replaced:
            matcher.ot_sampler = OTPlanSampler("exact")
        np.random.seed(0)  # noqa: NPY002
        torch.manual_seed(0)
        found.append(matcher.sample_location_and_conditional_flow(x0, x1))
    assert all(torch.equal(theirs, ours) for theirs, ours in zip(*found, strict=True))


def test_pairs_without_replacement_are_the_assignment_of_least_cost():
    x0, x1 = clouds(40, 40, 2, 3)
    one, two, labels, none = OTPlanSampler("exact", num_threads="max").sample_plan_with_labels(
        x0, x1, torch.arange(40), replace=False
    )
    assert none is None
    assert sorted(labels.tolist()) == list(range(40))
    M = torch.cdist(x0.reshape(40, -1).double(), x1.reshape(40, -1).double()) ** 2
    cost = ((one.double() - two.double()) ** 2).sum() / 40
    assert float(cost) == pytest.approx(ot.emd2([], [], M.numpy()), rel=1e-12)


def test_plans_without_mass_are_uniform():
    sampler = OTPlanSampler("unbalanced", reg=1.0, reg_m=1.0)
    x0, x1 = clouds(3, 4, 2)
    with pytest.warns(UserWarning, match="reverting to uniform plan"):
        plan = sampler.get_map(x0, x1 + 100)
    np.testing.assert_array_equal(plan, np.full((3, 4), 1 / 12))
    sampler.warn = False
    np.testing.assert_array_equal(sampler.get_map(x0, x1 + 100), plan)


def test_an_unknown_method_is_refused():
    with pytest.raises(InvalidProblem, match="Unknown method: 'greedy'; it must be one of 'exact'"):
        OTPlanSampler("greedy")
