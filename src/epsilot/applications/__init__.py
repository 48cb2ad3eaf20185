"""Applications of transport: domain adaptation, colour transfer, persistence diagrams."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .persistence import persistence_distance

__all__ = ["persistence_distance"]


def __getattr__(name: str) -> Any:
    if name == "persistence_distance":
        from ..engine.request import public
        from .persistence import persistence_distance

        globals()[name] = public(persistence_distance, __name__)
        return globals()[name]
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
