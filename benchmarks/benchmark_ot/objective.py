"""Cost of plans between weighted points, with half the Euclidean distance, as benchmark_ot has."""

import numpy as np
from benchopt import BaseObjective
from scipy.spatial.distance import cdist

#: Half the squared violation of the marginals above which a plan is no answer.
MAX_VIOLATION = 1e-9


class Objective(BaseObjective):
    """Cost and violation of a plan."""

    name = "Optimal Transport"
    url = "https://github.com/benchopt/benchmark_ot"
    min_benchopt_version = "1.6"
    requirements = ("pip::scipy",)

    def set_data(self, x, a, y, b):
        """Keep points and weights."""
        self.x, self.a, self.y, self.b = x, a, y, b
        self.M = cdist(x, y) / 2

    def get_objective(self):
        """Return what solvers receive."""
        return {"x": self.x, "a": self.a, "y": self.y, "b": self.b}

    def evaluate_result(self, P):
        """Return the cost; a plan that misses its marginals is worse than each feasible one."""
        misses = P.sum(axis=1) - self.a, P.sum(axis=0) - self.b
        violation = sum(0.5 * float(miss @ miss) for miss in misses)
        cost = float((P * self.M).sum())
        is_feasible = violation < MAX_VIOLATION
        value = cost if is_feasible else (1 + violation) * float(self.M.max())
        return {"value": value, "cost": cost, "violation": violation}

    def get_one_result(self):
        """Return a plan for tests of the benchmark."""
        return {"P": np.outer(self.a, self.b)}
