"""Transport plans: products, rows and marginals without an n x m array.

A plan is a core, two scalings and a rank-one term (``operator``). Its core is the Gibbs plan of
two potentials, a dense array, a list of arcs with their flow, or another plan; ``cores`` lists
them for files, and ``core`` says what each answers.
"""

from .arcs import Arcs
from .core import Core, spread
from .explicit import Explicit
from .gibbs import Gibbs
from .operator import Around, Plan
from .total import plus

__all__ = ["Arcs", "Around", "Core", "Explicit", "Gibbs", "Plan", "plus", "spread"]
