"""Estimators and requests: the parameters they share."""

from __future__ import annotations

import inspect
from collections.abc import Mapping
from typing import Any, Protocol

from ..engine.request import KEYWORDS, Request


class Estimator(Protocol):
    """What has parameters, and among them the options of a method."""

    @property
    def options(self) -> Mapping[str, object] | None: ...  # noqa: D102


def shared(estimator: type) -> tuple[str, ...]:
    """Return the keywords of a request that are parameters of an estimator."""
    parameters = inspect.signature(estimator).parameters
    return tuple(name for name in KEYWORDS if name in parameters)


def parameters_of(request: Request, estimator: type) -> dict[str, Any]:
    """Return what a request says of the parameters of an estimator."""
    return {name: getattr(request, name) for name in shared(estimator)}


def request_of(estimator: Estimator) -> Request:
    """Return what the parameters of an estimator ask for; its options are those of the method."""
    asked = {name: getattr(estimator, name) for name in shared(type(estimator))}
    return Request.of({**asked, **(estimator.options or {})})
