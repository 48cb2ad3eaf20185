"""The published listings of the accelerated primal-dual family, line by line in NumPy."""

import copy

import numpy as np

from epsilot.geometry import Dense
from epsilot.problems.problem import Entropic
from epsilot.solvers import make_solver
from sample_problems import random

SHAPES = [(5, 5), (4, 6)]


def small(n=5, m=5, eta=0.05, seed=0) -> Entropic:
    C, p, q = random(n, m, 1.0, seed)
    return Entropic(Dense(C), eta, p, q)


def states(problem, name, n_iter, **options):
    """Yield a solver with its state before and after each step."""
    solver = make_solver(name, options)
    rng = np.random.default_rng(0)
    state, _ = solver.init(problem, rng)
    for _ in range(n_iter):
        before = copy.deepcopy(state)
        solver.step(problem, state, rng)
        yield solver, before, state


def parts(problem):
    n = problem.shape[0]
    C = problem.geometry.block(0, n)
    return C, problem.eta, np.concatenate([problem.p, problem.q]), n


def log_softmax(C, n, inv, fg):
    """Return log X and log Z of X = exp(-inv C + f⊕g) / Z."""
    t = -inv * C + fg[:n, None] + fg[n:]
    log_mass = t.max() + np.log(np.exp(t - t.max()).sum())
    return t - log_mass, log_mass


def marginals(X):
    return np.concatenate([X.sum(axis=1), X.sum(axis=0)])


def lse_dual(problem, w):
    """Return φ(w), its gradient and the plan, for the log-sum-exp dual."""
    C, eta, b, n = parts(problem)
    log_X, log_mass = log_softmax(C, n, 1 / eta, w / eta)
    X = np.exp(log_X)
    return eta * log_mass - b @ w, marginals(X) - b, X


def exp_dual(problem, w):
    """Return ψ(w), its gradient and the plan, for the sum-exp dual."""
    C, eta, b, n = parts(problem)
    X = np.exp((w[:n, None] + w[n:] - C) / eta)
    return eta * X.sum() - b @ w, marginals(X) - b, X


def l2(d):
    return d @ d


def linf(d):
    return np.abs(d).max() ** 2


def gradient_descent(problem, norm, first, largest, n_iter):
    """APDAGD with the l2 norm and M from 1/η to 2/η, APDAMD with l∞ and twice these."""
    C, eta, b, _ = parts(problem)
    smooth, top, beta, X = first / eta, largest / eta, 0.0, np.zeros_like(C)
    zeta = e = np.zeros(b.size)
    for _ in range(n_iter):
        smooth = smooth / 2
        while True:
            a = (1 + np.sqrt(1 + 4 * smooth * beta)) / (2 * smooth)
            bn = beta + a
            t = a / bn
            w = t * zeta + (1 - t) * e
            F, g, Xw = lse_dual(problem, w)
            zn = zeta - a * g
            en = t * zn + (1 - t) * e
            d = en - w
            slack = 1e-15 * max(C.max(), abs(F))
            if (
                lse_dual(problem, en)[0] <= F + g @ d + smooth / 2 * norm(d) + slack
                or smooth >= top
            ):
                break
            smooth = 2 * smooth
        beta, zeta, e = bn, zn, en
        X = (1 - t) * X + t * Xw
        yield e, X


def mirror_descent(problem, n_iter):
    """APDAMD as printed: mirror map ‖z‖²/(2n) with δ = n, so z moves by n a g."""
    C, eta, b, _ = parts(problem)
    delta = b.size
    L, top, abar, X = 2 / eta, 4 / eta, 0.0, np.zeros_like(C)
    z = lam = np.zeros(b.size)
    for _ in range(n_iter):
        smooth = L / 2
        while True:
            a = (1 + np.sqrt(1 + 4 * delta * smooth * abar)) / (2 * delta * smooth)
            an = abar + a
            mu = (a * z + abar * lam) / an
            F, g, Xmu = lse_dual(problem, mu)
            zn = z - delta * a * g
            ln = (a * zn + abar * lam) / an
            d = ln - mu
            slack = 1e-15 * max(C.max(), abs(F))
            if (
                lse_dual(problem, ln)[0] <= F + g @ d + smooth / 2 * linf(d) + slack
                or smooth >= top
            ):
                break
            smooth = 2 * smooth
        X = (a * Xmu + abar * X) / an
        z, lam, abar, L = zn, ln, an, smooth
        yield lam, X


def coordinates(problem, rng, n_blocks, pick=None):
    """APDRCD with one plan drawn from each block; APDGCD (``pick``) with the exact average."""
    C, eta, b, n = parts(problem)
    N, L, theta = b.size, 4 / eta, 1.0
    lam, z = np.zeros(N), np.zeros(N)
    D, W = np.zeros_like(C), 0.0

    def plan(y):
        return np.exp((y[:n, None] + y[n:] - C) / eta - 1)

    for _ in range(n_blocks):
        chosen = rng.integers(N, size=N) if pick is None else np.zeros(1)
        u = rng.random() if pick is None else 0.0
        points, weights = [], []
        for i in chosen:
            y = (1 - theta) * lam + theta * z
            points.append(y)
            weights.append(1 / theta)
            gradient = marginals(plan(y)) - b
            if pick is not None:
                i = pick(gradient)
            lam = y.copy()
            lam[i] = y[i] - gradient[i] / L
            z = z.copy()
            z[i] = z[i] - gradient[i] / (N * L * theta)
            theta = (np.sqrt(theta**4 + 4 * theta**2) - theta**2) / 2
        selected = np.searchsorted(np.cumsum(weights), u * sum(weights), side="right")
        D = D + sum(weights) * plan(points[selected])
        W += sum(weights)
        yield lam - eta * np.repeat([1.0, 0.0], [n, N - n]), D / W


def hybrid(problem, form, n_iter, eta):
    """The three forms of the hybrid primal-dual method."""
    C, _, b, n = parts(problem)
    m = b.size - n
    R = C.max() / 2 * np.sqrt(n + m)
    sigma = np.sqrt(np.log(n * m)) / R
    step, th, a, fg, w = 1 / (2 * sigma), 1.0, 0.0, np.zeros(b.size), np.zeros(b.size)
    X = np.full_like(C, 1 / (n * m))
    w_old = -step * (b - marginals(X))
    X_sum, w_sum, T, bt = 0.0, 0.0, 0.0, sigma / step
    for _ in range(n_iter):
        if form == "line_search":
            bt_new = bt / (1 + eta * bt * step)
            trial = step * np.sqrt((bt / bt_new) * (1 + th))
            while True:
                sigma = bt_new * trial
                w_bar = w + trial / step * (w - w_old)
                a_new = (a + sigma) / (1 + eta * sigma)
                fg_new = (fg + sigma * w_bar) / (1 + eta * sigma)
                log_new, _ = log_softmax(C, n, a_new, fg_new)
                X_new = np.exp(log_new)
                kl = (X_new * (log_new - np.log(X))).sum()
                if (
                    trial**2 * bt_new * l2(marginals(X_new) - marginals(X)) <= 2 * kl
                    or 2 * trial**2 * bt_new <= 1 + 1e-9
                ):
                    break
                trial = max(0.7 * trial, np.sqrt(1 / (2 * bt_new)))
            th, step, bt, a, fg, X = trial / step, trial, bt_new, a_new, fg_new, X_new
        else:
            w_bar = w + th * (w - w_old)
            a = (a + sigma) / (1 + eta * sigma)
            fg = (fg + sigma * w_bar) / (1 + eta * sigma)
            X = np.exp(log_softmax(C, n, a, fg)[0])
        w_old, w = w, w + step * (b - marginals(X))
        X_sum, w_sum, T = X_sum + step * X, w_sum + step * w_bar, T + step
        if form == "accelerated":
            th = np.sqrt(1 + eta * sigma)
            sigma, step = sigma / th, step * th
        yield w_sum / T, X_sum / T
