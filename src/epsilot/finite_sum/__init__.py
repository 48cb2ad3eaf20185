"""The paper's general problem: min f(x) with A x = b, when the dual is a finite sum."""

from .algorithm import FiniteSumDual, Solution, minimize
from .instances import EntropicTransport, QuadraticTransport, SeparableQuadratic
from .mirrors import EUCLIDEAN, Mirror, euclidean, p_norm
from .separable import Separable

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
