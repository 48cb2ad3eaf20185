"""The paper's general problem: min f(x) with A x = b, when the dual is a finite sum."""

from .algorithm import EUCLIDEAN, FiniteSumDual, Mirror, Solution, minimize
from .instances import EntropicTransport, QuadraticTransport, SeparableQuadratic

__all__ = [
    "EUCLIDEAN",
    "EntropicTransport",
    "FiniteSumDual",
    "Mirror",
    "QuadraticTransport",
    "SeparableQuadratic",
    "Solution",
    "minimize",
]
