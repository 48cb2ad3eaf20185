"""Duals, gradients and starts written out in NumPy, for the tests of this folder."""

import numpy as np
from scipy.special import logsumexp, rel_entr

from epsilot.files.images import grid_cost, synthetic_pair
from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic, make_problem
from epsilot.solvers.base import published_parameters
from sample_problems import random


def synthetic(side=6, seed=0):
    """Return cost and masses of a pair of the paper's images."""
    A, B = synthetic_pair(side, seed)
    return grid_cost((side, side)), A.ravel(), B.ravel()


def image_problem(side=6, seed=0):
    return make_problem(*synthetic(side, seed))


def published(side=6, seed=0, epsilon=0.05) -> Entropic:
    return published_parameters(image_problem(side, seed), epsilon)[0]


def small(n=7, m=5, eta=0.1, seed=0, shift=0.0) -> Entropic:
    C, p, q = random(n, m, 1.0, seed)
    return Entropic(Dense(C + shift), eta, p, q)


def start(solver, problem, seed=0):
    solver = solver.resolved("paper", problem)
    rng = np.random.default_rng(seed)
    state, _ = solver.init(problem, rng)
    return solver, state, rng


def log_plan(problem, z):
    n = problem.shape[0]
    return (z[:n, None] + z[n:] - problem.geometry.block(0, n)) / problem.eta


def joint(problem):
    return np.concatenate([problem.p, problem.q])


def exp_dual(problem, z):
    """Return ψ."""
    return np.exp(log_plan(problem, z)).sum() - z @ joint(problem) / problem.eta


def lse_dual(problem, z):
    """Return φ."""
    return logsumexp(log_plan(problem, z)) - z @ joint(problem) / problem.eta


def gradient(problem, z):
    X = np.exp(log_plan(problem, z) - logsumexp(log_plan(problem, z)))
    return np.concatenate([X.sum(axis=1), X.sum(axis=0)]) - joint(problem)


def rho(a, b):
    return b - a + rel_entr(a, b)
