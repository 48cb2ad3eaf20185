"""Options out of range, or none of their choices, are refused by name."""

import numpy as np
import pytest

import epsilot

#: (method, the option, a value it refuses, what the sentence names)
REFUSED = [
    ("sinkhorn", "domain", "x", "absorption"),
    ("sinkhorn", "relaxation", 2.0, "relaxation"),
    ("sinkhorn", "relaxation", 0.5, "relaxation"),
    ("greenkhorn", "start", "x", "rows"),
    ("stochastic_sinkhorn", "start", "x", "rows"),
    ("stochastic_sinkhorn", "power", -1, "power"),
    ("accelerated_sinkhorn", "variant", "x", "corrected"),
    ("accelerated_sinkhorn", "momentum_step", 0, "momentum_step"),
    ("katyusha_sinkhorn", "batch_size", 0, "batch_size"),
    ("aam", "variant", "x", "primal_dual"),
    ("aam", "search", "x", "line_search"),
    ("aam", "test_every", -1, "test_every"),
    ("aam", "rule", "gap", "duality"),
    ("apdamd", "rule", "none", "duality"),
    ("apdgcd", "smoothness", 0.0, "must be positive"),
    ("hybrid_primal_dual", "form", "fast", "accelerated"),
    ("pdasmd", "norm", "l0", "linf"),
    ("pdasmd", "batch_size", 0, "batch_size"),
    ("pdasmd", "average", "all", "sampled"),
    ("pdasmd", "inner_loops", 0, "inner_loops"),
    ("pdasmd", "step_constant", -1.0, "step_constant"),
    ("pdasmd", "smoothness", "5", "sharp"),
    ("pdasmd", "mirror", "entropy", "euclidean"),
    ("pdasmd", "hybrid", "newton", "sinkhorn"),
    ("pdasmd", "batching", "short", "strata"),
    ("pdasmd", "batching", "long", "use method='pdasgd'"),
    ("unbalanced_pdasmd", "batch_size", 0, "batch_size"),
    ("unbalanced_pdasmd", "hybrid", "newton", "sinkhorn"),
    ("unbalanced_pdasmd", "step_share", 0.0, "step_share"),
    ("pdasgd", "norm", "linf", "use method='pdasmd'"),
    ("dual_extrapolation", "constants", "best", "sharp"),
    ("dijkstra_dfs", "constants", "sharp", "practical"),
    ("dijkstra_dfs", "variant", "bfs", "push_relabel"),
    ("packing_lp", "constants", "sharp", "safe"),
    ("box_newton", "constants", "safe", "published"),
]


@pytest.mark.parametrize(("method", "option", "value", "word"), REFUSED)
def test_bad_options_are_named(method, option, value, word):
    with pytest.raises(epsilot.InvalidProblem, match=f"(?=.*{option}).*{word}"):
        epsilot.solve(np.eye(2), eps=0.1, method=method, **{option: value})
