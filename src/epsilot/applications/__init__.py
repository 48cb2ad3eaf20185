"""Applications of transport: domain adaptation, colour transfer, persistence diagrams."""

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .persistence import persistence_distance

__all__ = ["persistence_distance"]


def __getattr__(name: str) -> Any:
    if name == "persistence_distance":
        from .persistence import persistence_distance

        return persistence_distance
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
