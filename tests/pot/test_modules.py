"""``epsilot.pot`` offers every name of ``ot``, with our functions inside."""

import inspect
import pickle
import subprocess
import sys
from contextlib import nullcontext

import numpy as np
import ot
import pytest

import epsilot.pot
from epsilot.pot import _modules

REPLACED = {function.__name__: function for function in _modules._originals}


@pytest.fixture
def calls(monkeypatch):
    """Count the calls of our solver."""
    from epsilot.pot import _linear

    made = []

    def counted(*args, **keywords):
        made.append(args)
        return solve(*args, **keywords)

    solve = _linear.optimum
    monkeypatch.setattr(_linear, "optimum", counted)
    return made


@pytest.mark.parametrize("name", sorted(REPLACED))
def test_signatures_are_those_of_pot(name):
    ours, theirs = (
        inspect.signature(f).parameters for f in (REPLACED[name], _modules.original(REPLACED[name]))
    )
    assert list(theirs) == list(ours)[: len(theirs)]
    for key, parameter in theirs.items():
        assert (ours[key].default, ours[key].kind) == (parameter.default, parameter.kind), key


@pytest.mark.parametrize("installed", [False, True])
def test_bounds_of_inner_problems_are_not_those_of_the_outer_one(installed):
    X = np.random.default_rng(0).normal(size=(9, 2))
    C, u, labels = ot.dist(X), ot.unif(9), (X[:, 0] > 0).astype(int)
    module = ot if installed else epsilot.pot
    with epsilot.pot.install() if installed else nullcontext():
        logs = [
            module.gromov.gromov_wasserstein(C, C**1.1, log=True)[1],
            module.gromov.partial_gromov_wasserstein(C, C**1.1, m=0.5, log=True)[1],
            module.optim.gcg(u, u, C, 1.0, 1.0, lambda G: (G**2).sum(), lambda G: 2 * G, log=True)[
                1
            ],
            module.da.sinkhorn_lpl1_mm(u, labels, u, C, 1.0, log=True)[1],
            module.weak_optimal_transport(X, X + 1, log=True)[1],
        ]
    for log in logs:
        assert (log["lower_bound"], log["gap"]) == (-np.inf, np.inf)
        assert "inner problem" in log["uncertified"]
    fitted = epsilot.pot.da.SinkhornLpl1Transport().fit(Xs=X, ys=labels, Xt=X + 1)
    assert fitted.gap_ == np.inf


def test_all_names_of_pot_are_there():
    missing = [name for name in dir(ot) if not name.startswith("__")]
    assert missing
    for name in missing:
        assert getattr(epsilot.pot, name) is not None
        assert name in dir(epsilot.pot)
    assert epsilot.pot.__version__ == ot.__version__
    with pytest.raises(AttributeError, match="nothing"):
        _ = epsilot.pot.nothing


def test_replaced_functions_have_one_identity():
    assert epsilot.pot.lp.emd is epsilot.pot.emd is epsilot.pot.da.emd
    assert epsilot.pot.utils.unif is ot.unif
    assert epsilot.pot.gromov.gromov_wasserstein is epsilot.pot.gromov_wasserstein
    assert ot.emd is not epsilot.pot.emd


def test_modules_can_be_imported():
    import epsilot.pot.lp.solver_1d
    from epsilot.pot.da import EMDTransport
    from epsilot.pot.lp import emd

    from epsilot.pot import smooth

    assert epsilot.pot.lp.solver_1d.emd_1d is epsilot.pot.emd_1d
    assert smooth is epsilot.pot.smooth
    assert emd is epsilot.pot.emd
    assert issubclass(EMDTransport, ot.da.EMDTransport)
    with pytest.raises(ModuleNotFoundError):
        import epsilot.pot.nothing


def test_functions_that_are_passed_through_call_ours(calls):
    C = np.random.default_rng(0).random((2, 6, 6))
    C += C.transpose(0, 2, 1)
    epsilot.pot.gromov.gromov_wasserstein(*C)
    assert calls
    n_calls = len(calls)
    ot.gromov.gromov_wasserstein(*C)
    assert len(calls) == n_calls


def test_estimators_call_ours(calls):
    X = np.random.default_rng(0).normal(size=(5, 2))
    transport = epsilot.pot.da.EMDTransport(log=True).fit(Xs=X, Xt=X + 1)
    assert calls
    assert transport.log_["gap"] <= 1e-12
    np.testing.assert_allclose(transport.transform(Xs=X), X + 1)


def test_what_is_passed_through_can_be_pickled():
    X = np.zeros((2, 2))
    for value in (
        epsilot.pot.emd,
        epsilot.pot.gromov.gromov_wasserstein,
        epsilot.pot.da.EMDTransport,
    ):
        assert pickle.loads(pickle.dumps(value)) is value
    fitted = epsilot.pot.da.EMDTransport().fit(Xs=X, Xt=X)
    assert type(pickle.loads(pickle.dumps(fitted))) is epsilot.pot.da.EMDTransport


def test_install_and_undo(calls):
    a, M = np.full(3, 1 / 3), np.eye(3)
    theirs = ot.emd, ot.lp.emd2, ot.gromov._utils.emd
    with epsilot.pot.install() as outer:
        assert ot.emd is ot.lp.emd is ot.gromov._utils.emd is epsilot.pot.emd
        inner = epsilot.pot.install()
        inner.undo()
        inner.undo()
        assert ot.lp.emd2 is epsilot.pot.emd2
        assert "gap" in ot.emd(a, a, M, log=True)[1]
        assert "active" in repr(outer)
        epsilot.pot.gromov_wasserstein(M, M)
        assert ot.emd is epsilot.pot.emd
    assert "undone" in repr(outer)
    assert (ot.emd, ot.lp.emd2, ot.gromov._utils.emd) == theirs
    assert calls


def test_modules_that_are_loaded_during_an_installation_are_restored():
    code = (
        "import sys, ot, epsilot.pot\n"
        "emd = ot.lp.emd\n"
        "del sys.modules['ot.factored']\n"
        "with epsilot.pot.install():\n"
        "    import ot.factored\n"
        "    late = sys.modules['ot.factored']\n"
        "    assert late.emd is epsilot.pot.emd\n"
        "assert late.emd is emd\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


@pytest.mark.parametrize("empty", [False, True])
def test_our_exact_method_does_not_call_itself(empty):
    rng = np.random.default_rng(0)
    M, a, b = rng.random((40, 30)), rng.random(40), rng.random(30)
    if empty:
        a[:3] = b[5:9] = 0.0
    a, b = a / a.sum(), b / b.sum()
    with epsilot.pot.install():
        result = epsilot.exact(M, a, b)
        assert result.value == pytest.approx(epsilot.pot.emd2(a, b, M), rel=1e-12)
        assert result.gap <= 1e-12
