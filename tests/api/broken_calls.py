"""Calls that cannot be served, of every public function, for one test of all their messages."""

from functools import partial

import numpy as np

import epsilot
from epsilot import Dense, Grid, PointCloud, finite_sum

LONG = "x" * 10_000
MANY = list(range(10_000))
rng = np.random.default_rng(0)
X, Y = rng.random((31, 2)), rng.random((19, 2))
A, B = rng.random((2, 5, 5))
H = np.eye(4)
M = np.abs(np.subtract.outer(np.arange(4.0), np.arange(4.0)))
ONE = np.eye(31)[3]  # a weight of one point only
TOWARDS = np.full(19, 1 / 19)
DUAL = finite_sum.SeparableQuadratic(np.ones((1, 2)), np.ones(1))
WRONG = [
    LONG,
    MANY,
    object(),
    np.zeros((200, 200)),
    np.nan,
    1j,
    -1,
    True,
    {},
    b"x" * 5000,
    "",
    "a\nb",
]
NUMBERS = ("eps", "rtol", "reg", "max_seconds", "max_iter", "seed", "n_threads")
WORDS = ("method", "stop", "on_limit", "callback", "normalize", "multiscale", "potentials_init")
PATHS = ("checkpoint", "resume")


def keywords(call, names, *more):
    """Return calls with each keyword given in each wrong way."""
    return [partial(call, **{name: value}, **dict(more)) for name in names for value in WRONG]


def arguments(call, *good):
    """Return calls with each argument replaced by each wrong one."""
    return [
        partial(call, *good[:k], value, *good[k + 1 :])
        for k in range(len(good))
        for value in WRONG
        if value is not True and not (isinstance(value, int) and k >= 2)
    ]


def on_few(call=epsilot.solve_sample, **more):
    """Return a call on 31 x 19 points of which one source has mass."""
    return partial(call, X, Y, ONE, TOWARDS, **{"lazy": True, **more})


def colored(**more):
    return epsilot.ColorTransfer(**{"n_colors": 4, **more}).fit(X.reshape(31, 2, 1), Y[:, :, None])


def adapted(**more):
    return epsilot.DomainAdapter(**more).fit(X, None, Y)


SOLVE = partial(epsilot.solve, M)
#: function -> calls that it must refuse, or serve
CALLS = {
    "solve": [
        *arguments(epsilot.solve, M, np.ones(4) / 4, np.ones(4) / 4),
        *keywords(SOLVE, (*NUMBERS, *WORDS, *PATHS, "mass", "unbalanced", "unbalanced_type")),
        *keywords(SOLVE, ("tol",), ("reg", 1.0)),
    ],
    "methods": [
        *keywords(partial(SOLVE, method="pdasmd"), ("batch_size", "norm", "average", LONG)),
        *keywords(partial(SOLVE, method="sinkhorn"), ("domain", "relaxation", LONG)),
        *keywords(partial(SOLVE, method="restricted_simplex"), ("etas", "n_arcs", "omega")),
    ],
    "exact": arguments(epsilot.exact, M, np.ones(4) / 4, np.ones(4) / 4),
    "solve_sample": [
        *arguments(epsilot.solve_sample, X, Y),
        *keywords(partial(epsilot.solve_sample, X, Y), ("metric", "lazy", "multiscale", "method")),
    ],
    "solve_grid": [
        *arguments(epsilot.solve_grid, A, A),
        *keywords(partial(epsilot.solve_grid, A, A), ("metric", "spacing", "method")),
        *(partial(epsilot.solve_grid, A, A, method=m) for m in ("exact", "monotone", "packing_lp")),
    ],
    "solve_batch": [
        *arguments(epsilot.solve_batch, [M, M], [H[0], H[1]], [H[2], H[3]]),
        *keywords(
            partial(epsilot.solve_batch, [M, M]),
            ("eps", "rtol", "plans", "potentials", "n_threads", "client", "on_error", *PATHS),
        ),
    ],
    "solve_sample_batch": [
        *arguments(epsilot.solve_sample_batch, [X, X], [Y, Y]),
        *keywords(partial(epsilot.solve_sample_batch, [X], [Y]), ("metric", "eps")),
        partial(epsilot.solve_sample_batch, [1e200 * X], [Y]),
    ],
    "pairwise": [
        *arguments(epsilot.pairwise, H, M),
        *keywords(partial(epsilot.pairwise, H, M), ("H2", "pairs", "rtol")),
    ],
    "certify": [
        *arguments(partial(epsilot.certify, plan=H / 4), M, np.ones(4) / 4, np.ones(4) / 4),
        *keywords(partial(epsilot.certify, M), ("plan", "potentials")),
        *keywords(partial(epsilot.certify, M, plan=H / 4), ("reg", "weights", "mass")),
        *keywords(partial(epsilot.certify, M, H), ("barycenter",)),
    ],
    "round_plan": arguments(epsilot.round_plan, H / 4, np.ones(4) / 4, np.ones(4) / 4),
    "barycenter": [
        *arguments(epsilot.barycenter, H, M, np.ones(4)),
        *keywords(partial(epsilot.barycenter, H, M), (*NUMBERS[:3], "method", "max_iter", LONG)),
        *keywords(partial(epsilot.barycenter, H, M, method="ibp"), ("relaxation", "memory", LONG)),
    ],
    "barycenter_grid": [
        *arguments(epsilot.barycenter_grid, [A, A], [1, 1]),
        *keywords(partial(epsilot.barycenter_grid, [A, A]), ("metric", "spacing", "weights")),
    ],
    "barycenter_sample": [
        *keywords(
            partial(epsilot.barycenter_sample, [X, Y], 3),
            ("masses", "weights", "b", "init", "rtol", "decrease", "max_iter", "seed", "method"),
        ),
        *arguments(epsilot.barycenter_sample, [X, Y], 3),
    ],
    "geometries": [
        *arguments(Dense, M),
        *arguments(PointCloud, X, Y, "euclidean"),
        *arguments(Grid, (4, 4), (4, 4), "cityblock", 1.0),
    ],
    "minimize": keywords(
        partial(finite_sum.minimize, DUAL),
        ("norm", "mirror", "batch_size", "n_outer", "tolerance", "start", "seed", "callback"),
    ),
    "estimators": [
        *keywords(colored, ("n_colors", "palette", "smoothing", "n_neighbors", "seed", "method")),
        *keywords(adapted, ("metric", "class_reg", "new_points", "n_neighbors", "reg", "method")),
    ],
}
#: calls on 31 x 19 points, of which one source only has mass, and what does not fit in them
ON_FEW = {
    "exact": on_few(method="exact"),
    "packing_lp": on_few(method="packing_lp"),
    "grid_flow": on_few(method="grid_flow"),
    "monotone": on_few(method="monotone"),
    "small_simplex": on_few(method="small_simplex"),
    "kernel": on_few(method="sinkhorn", domain="kernel"),
    "primal_dual": on_few(method="aam", variant="primal_dual"),
    "multiscale": on_few(lazy=False, multiscale=True, method="sinkhorn"),
}
