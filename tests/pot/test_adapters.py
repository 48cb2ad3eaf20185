"""Libraries that call POT run with our functions inside, where they are installed."""

import numpy as np
import pytest

import epsilot.pot
from epsilot.pot import _linear


@pytest.fixture
def calls(monkeypatch):
    """Count the problems that we solve."""
    made = []

    def counted(*args, **keywords):
        made.append(args)
        return solve(*args, **keywords)

    solve = _linear.optimum
    monkeypatch.setattr(_linear, "optimum", counted)
    return made


def test_torchcfm(calls):
    torch = pytest.importorskip("torch")
    samplers = pytest.importorskip("torchcfm.optimal_transport")
    generator = torch.Generator().manual_seed(0)
    x, y = torch.randn(2, 32, 2, generator=generator)
    theirs = samplers.OTPlanSampler("exact").get_map(x, y)
    with epsilot.pot.install():
        ours = samplers.OTPlanSampler("exact").get_map(x, y)
    assert len(calls) == 1
    np.testing.assert_allclose(ours, theirs, atol=1e-15)


@pytest.mark.parametrize("matching", [False, True])
def test_gudhi(calls, matching):
    diagrams = pytest.importorskip("gudhi.wasserstein")
    X, Y = np.sort(np.random.default_rng(0).random((2, 20, 2)), axis=2)
    theirs = diagrams.wasserstein_distance(X, Y, matching=matching)
    with epsilot.pot.install():
        ours = diagrams.wasserstein_distance(X, Y, matching=matching)
    assert len(calls) == 1
    first = (lambda found: found[0]) if matching else float
    assert first(ours) == pytest.approx(first(theirs), rel=1e-12)


@pytest.mark.filterwarnings("ignore")
def test_skada(calls):
    skada = pytest.importorskip("skada")
    from skada.datasets import make_shifted_datasets
    from sklearn.linear_model import LogisticRegression

    X, y, domain = make_shifted_datasets(4, 4, random_state=0)

    def predicted():
        model = skada.make_da_pipeline(skada.OTMappingAdapter(), LogisticRegression())
        model.fit(X, y, sample_domain=domain)
        return model.predict(X, sample_domain=domain, allow_source=True)

    theirs = predicted()
    with epsilot.pot.install():
        ours = predicted()
    assert calls
    np.testing.assert_array_equal(ours, theirs)


@pytest.mark.filterwarnings("ignore:Sinkhorn did not converge")  # POT's, in float32
def test_fmralign():
    alignment = pytest.importorskip("fmralign.methods.optimal_transport")
    X, Y = np.random.default_rng(0).standard_normal((2, 5, 20))
    theirs = alignment.OptimalTransport(reg=0.1).fit(X, Y)
    with epsilot.pot.install():
        ours = alignment.OptimalTransport(reg=0.1).fit(X, Y)
    assert not np.array_equal(ours.R, theirs.R)  # so that it is ours
    np.testing.assert_allclose(ours.R, theirs.R, rtol=0, atol=1e-6)
    np.testing.assert_allclose(ours.transform(X), theirs.transform(X), rtol=0, atol=1e-4)
