"""POT's network simplex, whole: one point of the curve."""

import ot
from benchopt import BaseSolver


class Solver(BaseSolver):
    """Solve exactly by POT."""

    name = "POT-simplex"
    requirements = ("pip::POT",)
    sampling_strategy = "run_once"

    def set_objective(self, x, a, y, b):
        """Keep the problem."""
        self.x, self.a, self.y, self.b = x, a, y, b

    def run(self, _):
        """Solve without a limit of iterations that matters."""
        M = ot.dist(self.x, self.y, metric="euclidean")
        self.P = ot.emd(self.a, self.b, M, numItermax=10**9)

    def get_result(self):
        """Return the plan."""
        return {"P": self.P}
