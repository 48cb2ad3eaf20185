"""The paper's general problem: min f(x) with A x = b, when the dual is a finite sum."""

from .algorithm import EUCLIDEAN, FiniteSumDual, Mirror, Solution, euclidean, minimize, p_norm
from .instances import EntropicTransport, QuadraticTransport, Separable, SeparableQuadratic

__all__ = [
    "EUCLIDEAN",
    "EntropicTransport",
    "FiniteSumDual",
    "Mirror",
    "QuadraticTransport",
    "Separable",
    "SeparableQuadratic",
    "Solution",
    "euclidean",
    "minimize",
    "p_norm",
]
