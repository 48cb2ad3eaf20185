"""The estimators share the keywords of `solve`, with the same defaults."""

import dataclasses
import inspect

import pytest

from epsilot import ColorTransfer, ConvergenceWarning, DomainAdapter, InvalidProblem
from epsilot.applications.estimators import parameters_of, request_of, shared
from epsilot.engine.request import Request

ESTIMATORS = [ColorTransfer, DomainAdapter]
DEFAULTS = {f.name: f.default for f in dataclasses.fields(Request)}
OWN = {
    ColorTransfer: "n_colors palette n_neighbors smoothing options",
    DomainAdapter: "X_target y_target metric class_reg new_points n_neighbors options",
}


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_shared_parameters_have_the_defaults_of_solve(estimator):
    parameters = inspect.signature(estimator).parameters
    assert set(shared(estimator)) == parameters.keys() - set(OWN[estimator].split())
    for name in shared(estimator):
        assert parameters[name].default == DEFAULTS[name], name
        assert parameters[name].annotation == str(Request.__annotations__[name]).replace(
            "<class '", ""
        ).replace("'>", ""), name


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_parameters_and_requests_convert_to_each_other(estimator):
    asked = {"method": "sinkhorn", "rtol": 0.5, "max_iter": 3, "seed": 7}
    request = request_of(estimator(**asked, options={"domain": "log"}))
    assert request.options == {"domain": "log"}
    assert {name: getattr(request, name) for name in asked} == asked
    assert parameters_of(request, estimator) == {
        name: asked.get(name, DEFAULTS[name]) for name in shared(estimator)
    }


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_options_may_name_a_keyword_that_is_no_parameter(estimator):
    assert request_of(estimator(options={"n_threads": 1})).n_threads == 1


@pytest.mark.parametrize("estimator", ESTIMATORS)
def test_invalid_parameters_are_rejected(estimator):
    with pytest.raises(InvalidProblem, match="exactly one of eps, rtol and reg"):
        request_of(estimator(eps=1.0, rtol=1.0))


def test_a_warning_names_the_line_of_the_caller():
    adapter = DomainAdapter(method="sinkhorn", eps=1e-9, max_iter=0)
    with pytest.warns(ConvergenceWarning) as caught:
        adapter.fit([[0.0], [1.0]], Xt=[[1.0], [3.0]])
    assert caught[0].filename == __file__
