"""Match the columns and the entries of data frames by their labels."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np

from .arguments import is_of_dask, numeric
from .errors import InvalidProblem
from .wording import shown

#: Labels that a message lists.
MAX_LISTED = 3


def columns_like(x: Any, like: Any, name: str, other: str) -> Any:
    """Return a table with its columns in the order of another one's, if both have names.

    Tables whose names differ are rejected. Other values are returned unchanged.
    """
    wanted = labels_of(getattr(like, "columns", None))
    return columns_as(x, wanted, name, f"{other} has")


def columns_as(x: Any, wanted: list[Any] | None, name: str, other: str) -> Any:
    """Return a table with its columns in the order of labels, if both have names."""
    names = None if is_of_dask(x) else labels_of(getattr(x, "columns", None))
    order = order_of(names, wanted, f"{name} has the columns", other)
    return x if order is None else numeric(x, name)[:, order]


def weights_like(M: Any, a: Any, b: Any) -> tuple[Any, Any]:
    """Return weights in the order of the rows and the columns of a cost with labels."""
    sides = (a, "a", "index", "rows"), (b, "b", "columns", "columns")
    ordered = []
    for w, name, axis, side in sides:
        wanted, names = labels_of(getattr(M, axis, None)), labels_of(getattr(w, "index", None))
        order = order_of(names, wanted, f"{name} has the labels", f"the {side} of M have")
        ordered.append(w if order is None else np.asarray(w)[order])
    return ordered[0], ordered[1]


def labels_of(axis: Iterable[Any] | None) -> list[Any] | None:
    """Return the labels of an axis; None if it has none, or only counts from 0."""
    if axis is None or callable(axis):
        return None
    names = list(axis)
    return None if names == list(range(len(names))) else names


def order_of(
    names: list[Any] | None, wanted: list[Any] | None, what: str, other: str
) -> list[int] | None:
    """Return the places of labels in the order that is wanted; None if they are in this order."""
    if names is None or wanted is None or names == wanted:
        return None
    place = {label: k for k, label in enumerate(names)}
    if len(place) < len(names) or len(names) != len(wanted) or place.keys() != set(wanted):
        raise InvalidProblem(
            f"{what} {_listed(names)} and {other} {_listed(wanted)}; both must be the same labels, "
            "each once, in any order (rename them, or leave them out, as .to_numpy() does)."
        )
    return [place[label] for label in wanted]


def _listed(labels: list[Any]) -> str:
    """Return the first labels as text."""
    more = ", ..." if len(labels) > MAX_LISTED else ""
    return ", ".join(map(shown, labels[:MAX_LISTED])) + more
