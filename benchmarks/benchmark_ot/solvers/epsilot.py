"""Solver of benchmark_ot: epsilot, to the tolerance that benchopt asks for."""

from benchopt import BaseSolver

import epsilot


class Solver(BaseSolver):
    """Solve to a certified relative gap."""

    name = "epsilot"
    requirements = ("pip::epsilot",)
    sampling_strategy = "tolerance"
    # The objective prices plans by the Euclidean distance.
    parameters = {"method": ["auto"], "metric": ["euclidean"]}  # noqa: RUF012

    def set_objective(self, x, a, y, b):
        """Keep the problem."""
        self.x, self.a, self.y, self.b = x, a, y, b

    def warm_up(self):
        """Compile the kernels, and those of the exact answer."""
        for tolerance in (1e38, 1e-10):
            self.run_once(tolerance)

    def run(self, tolerance):
        """Solve to a relative gap; the first tolerance of benchopt is infinite."""
        self.result = epsilot.solve_sample(
            self.x,
            self.y,
            self.a,
            self.b,
            metric=self.metric,
            method=self.method,
            rtol=float(min(max(tolerance, 1e-12), 0.5)),
            normalize=True,
            on_limit="ignore",
        )

    def get_result(self):
        """Return the plan."""
        return {"P": self.result.plan}
