"""The linear solver for OTT agrees with OTT's own, alone and inside other solvers."""

import numpy as np
import pytest

jax = pytest.importorskip("jax")
ott = pytest.importorskip("ott")

import jax.numpy as jnp  # noqa: E402
from ott.geometry.geometry import Geometry  # noqa: E402
from ott.geometry.pointcloud import PointCloud  # noqa: E402
from ott.problems.linear.linear_problem import LinearProblem  # noqa: E402
from ott.problems.quadratic.quadratic_problem import QuadraticProblem  # noqa: E402
from ott.solvers.linear.sinkhorn import Sinkhorn  # noqa: E402
from ott.solvers.quadratic.gromov_wasserstein import GromovWasserstein  # noqa: E402

from epsilot import InvalidProblem  # noqa: E402
from epsilot.adapters.ott import CertifiedSinkhorn  # noqa: E402

# JAX has float32 by default: its round-off of sums of some numbers is the tolerance.
ATOL = 2e-6


def weights(rng, n):
    w = rng.random(n).astype(np.float32)
    return jnp.array(w / w.sum())


def problem(seed=0, epsilon=0.1, **taus):
    rng = np.random.default_rng(seed)
    M = jnp.array(rng.random((7, 5)), jnp.float32)
    return LinearProblem(Geometry(M, epsilon=epsilon), weights(rng, 7), weights(rng, 5), **taus)


@pytest.mark.parametrize(
    "taus",
    [{}, {"tau_a": 0.9, "tau_b": 0.8}, {"tau_b": 0.5}, {"tau_a": 0.7}],
    ids=str,
)
def test_outputs_are_those_of_ott(taus):
    given = problem(**taus)
    theirs, ours = (
        solver(given)
        for solver in (Sinkhorn(threshold=1e-6, max_iterations=5000), CertifiedSinkhorn())
    )
    np.testing.assert_allclose(ours.matrix, theirs.matrix, rtol=0, atol=ATOL)
    for name in ("reg_ot_cost", "primal_cost", "ent_reg_cost", "transport_mass"):
        assert float(getattr(ours, name)) == pytest.approx(float(getattr(theirs, name)), abs=ATOL)
    assert bool(ours.converged)
    assert ours.errors.shape == (1,)
    assert 0 <= float(ours.errors[0]) <= 1e-11


def divergence(p, q):
    return (p * np.log(p / q) - p + q).sum()


def primal(given, P):
    """Return the cost of a plan with the divergences from the weights."""
    P, M, a, b = (np.float64(z) for z in (P, given.geom.cost_matrix, given.a, given.b))
    cost, epsilon = (P * M).sum(), float(given.epsilon)
    cost += epsilon * divergence(P, np.outer(a, b))
    sides = ((P.sum(axis=1), a, given.tau_a), (P.sum(axis=0), b, given.tau_b))
    return cost + sum(
        epsilon * tau / (1 - tau) * divergence(mass, wanted)
        for mass, wanted, tau in sides
        if tau < 1
    )


@pytest.mark.parametrize(("tau_a", "tau_b"), [(0.9, 0.8), (1.0, 0.5), (0.7, 1.0)])
def test_plans_with_the_divergence_have_the_least_cost(tau_a, tau_b):
    given = problem(1, tau_a=tau_a, tau_b=tau_b)
    output = CertifiedSinkhorn(reg_type="kl")(given)
    # The second is the cost of the potentials, which bounds the first from below.
    assert primal(given, output.matrix) == pytest.approx(float(output.reg_ot_cost), abs=ATOL)


def test_the_costs_of_unbalanced_plans_on_the_page():
    rng = np.random.default_rng(0)
    M = jnp.array(rng.random((6, 5)))
    a, b = (jnp.array(w / w.sum()) for w in (rng.random(6), rng.random(5)))
    given = LinearProblem(Geometry(M, epsilon=0.1), a, b, tau_a=0.9, tau_b=0.8)
    theirs = Sinkhorn(threshold=1e-6, max_iterations=5000)(given)
    least = CertifiedSinkhorn(reg_type="kl")(given).reg_ot_cost
    found = primal(given, theirs.matrix), float(theirs.reg_ot_cost), float(least)
    assert found == pytest.approx((0.321, 0.276, 0.283), abs=5e-4)


@pytest.mark.parametrize("taus", [{}, {"tau_a": 0.9, "tau_b": 0.9}], ids=str)
def test_points_without_mass_send_nothing(taus):
    M = jnp.array([[0.0, 1.0], [1.0, 0.0], [0.5, 0.5]])
    a = jnp.array([0.5, 0.5, 0.0])
    output = CertifiedSinkhorn()(LinearProblem(Geometry(M, epsilon=0.1), a, **taus))
    np.testing.assert_array_equal(output.matrix[2], 0.0)
    assert np.isfinite(float(output.reg_ot_cost))


def test_gradients_are_those_of_ott():
    x, y = jnp.array(np.random.default_rng(2).random((2, 6, 2)), jnp.float32)

    def cost(solver, x):
        return solver(LinearProblem(PointCloud(x, y, epsilon=0.1))).reg_ot_cost

    theirs = jax.grad(cost, 1)(Sinkhorn(threshold=1e-6, max_iterations=5000), x)
    ours = jax.jit(jax.grad(cost, 1))(CertifiedSinkhorn(), x)
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=1e-5)


def test_other_solvers_take_it():
    x, y = np.random.default_rng(3).random((2, 8, 2))
    # The coupling of a cloud with itself turned by a right angle, from plans of large costs.
    y = np.column_stack([-x[:, 1], x[:, 0]]) + 1e-3 * y
    clouds = [PointCloud(jnp.array(z, jnp.float32)) for z in (x, y)]
    plans = []
    for solver in (Sinkhorn(threshold=1e-5, max_iterations=5000), CertifiedSinkhorn()):
        output = GromovWasserstein(solver, epsilon=0.05)(QuadraticProblem(*clouds))
        assert bool(output.converged)
        plans.append(np.asarray(output.matrix))
    np.testing.assert_allclose(*plans, rtol=0, atol=1e-3)


def test_stacks_are_solved_one_after_the_other():
    solver = CertifiedSinkhorn()
    Ms = jnp.array(np.random.default_rng(4).random((3, 4, 5)), jnp.float32)
    solve = lambda M: solver(LinearProblem(Geometry(M, epsilon=0.1))).matrix  # noqa: E731
    np.testing.assert_allclose(jax.vmap(solve)(Ms), [solve(M) for M in Ms], rtol=0, atol=1e-7)


def test_an_unknown_regulariser_is_refused():
    with pytest.raises(InvalidProblem, match="reg_type is 'l2'; it must be 'entropy' or 'kl'"):
        CertifiedSinkhorn(reg_type="l2")
