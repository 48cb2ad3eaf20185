"""Numbers of any library are numbers, wherever a function takes one."""

import subprocess
import sys
from functools import partial

import numpy as np
import pytest

import epsilot
from epsilot import Grid, InvalidProblem, finite_sum
from sample_problems import M34

X, Y = np.random.default_rng(0).random((2, 6, 2))
M = np.abs(np.subtract.outer(np.arange(5.0), np.arange(5.0)))
H = np.eye(5)[:3]
DUAL = finite_sum.SeparableQuadratic(np.ones((1, 2)), np.ones(1))
PICTURE = np.random.default_rng(1).random((6, 6, 3))
solve, sample = epsilot.solve, epsilot.solve_sample


def tensor(dtype, **keywords):
    """Return how PyTorch holds a number."""

    def held(x):
        torch = pytest.importorskip("torch", reason="torch is not installed")
        return torch.tensor(x, dtype=getattr(torch, dtype), **keywords)

    return held


def jax_array(x):
    return pytest.importorskip("jax", reason="jax is not installed").numpy.asarray(x)


#: how real numbers are held; all that are passed below have few digits
REALS = {
    "an array": np.array,
    "float32": np.float32,
    "an array of float16": partial(np.array, dtype=np.float16),
    "torch": tensor("float64"),
    "torch float16": tensor("float16"),
    "torch bfloat16": tensor("bfloat16"),
    "torch requires_grad": tensor("float32", requires_grad=True),
    "jax": jax_array,
}
#: the same of integers
COUNTS = {
    "an array": np.array,
    "uint8": np.uint8,
    "torch": tensor("int64"),
    "torch int8": tensor("int8"),
    "jax": jax_array,
}
SMALL = {"method": "sinkhorn", "max_iter": 9, "on_limit": "ignore"}
#: Keeps what the result of one problem of a batch is made of.
KEPT = {"plans": True, "potentials": True}

#: a call with one real number, and that number
OF_REALS = {
    "eps": (lambda x: solve(M34, eps=x), 0.125),
    "rtol": (lambda x: solve(M34, rtol=x), 0.125),
    "reg": (lambda x: solve(M34, reg=x), 1.0),
    "tol": (lambda x: solve(M34, reg=1.0, tol=x), 0.125),
    "max_seconds": (lambda x: solve(M34, max_seconds=x), 64.0),
    "mass": (lambda x: solve(M34, mass=x), 0.5),
    "unbalanced": (lambda x: solve(M34, unbalanced=x), 2.0),
    "unbalanced pair": (lambda x: solve(M34, unbalanced=(x, np.inf)), 2.0),
    "unbalanced tv": (lambda x: solve(M34, unbalanced=(1.0, x), unbalanced_type="tv"), 2.0),
    "an option": (lambda x: solve(M34, relaxation=x, **SMALL), 1.5),
    "options in a row": (lambda x: solve(M34, method="restricted_simplex", etas=(x, 0.25)), 0.5),
    "sample": (lambda x: sample(X, Y, eps=x), 0.125),
    "spacing": (lambda x: epsilot.solve_grid(H, H[::-1], spacing=x), 0.5),
    "spacings": (lambda x: Grid((3, 3), spacing=(1.0, x)).row(0), 0.5),
    "grid": (lambda x: epsilot.solve_grid(H, H[::-1], reg=x), 0.5),
    "batch eps": (lambda x: epsilot.solve_batch([M34], eps=x).value, 0.125),
    "batch max_seconds": (lambda x: epsilot.solve_batch([M34], max_seconds=x).value, 64.0),
    "sample batch": (lambda x: epsilot.solve_sample_batch([X], [Y], rtol=x).value, 0.125),
    "pairwise": (lambda x: epsilot.pairwise(H, M, rtol=x).value, 0.125),
    "certify": (lambda x: epsilot.certify(M34, plan=np.ones((3, 4)) / 12, reg=x).upper, 0.5),
    "certify mass": (lambda x: epsilot.certify(M34, plan=np.ones((3, 4)) / 24, mass=x).upper, 0.5),
    "certify barycenter": (
        lambda x: epsilot.certify(M, H, barycenter=np.ones(5) / 5, reg=x).lower,
        0.5,
    ),
    "barycenter eps": (lambda x: epsilot.barycenter(H, M, eps=x), 0.125),
    "barycenter reg": (lambda x: epsilot.barycenter(H, M, reg=x), 0.5),
    "barycenter option": (
        lambda x: epsilot.barycenter(H, M, reg=0.5, method="ibp", relaxation=x),
        1.5,
    ),
    "barycenter grid": (lambda x: epsilot.barycenter_grid([H, H], spacing=x), 0.5),
    "barycenter rtol": (lambda x: epsilot.barycenter_sample([X, Y], 2, rtol=x).value, 0.125),
    "barycenter decrease": (
        lambda x: epsilot.barycenter_sample([X, Y], 2, decrease=x).value,
        0.125,
    ),
    "barycenter max_seconds": (
        lambda x: epsilot.barycenter_sample([X, Y], 2, max_seconds=x).value,
        64.0,
    ),
    "threshold": (lambda x: solve(M34).plan_operator.tosparse(x).toarray(), 0.125),
    "limit": (lambda x: solve(M34).plan_operator.toarray(limit=x), 96.0),
    "step_constant": (lambda x: finite_sum.minimize(DUAL, step_constant=x, n_outer=9).x, 8.0),
    "tolerance": (lambda x: finite_sum.minimize(DUAL, tolerance=x, n_outer=9).x, 0.5),
    "color transfer": (
        lambda x: (
            epsilot.ColorTransfer(n_colors=4, smoothing=x, rtol=x)
            .fit(PICTURE, PICTURE[::-1])
            .transform(PICTURE)
        ),
        0.125,
    ),
    "domain adapter": (
        lambda x: epsilot.DomainAdapter(class_reg=x).fit_transform(X, [0, 1] * 3, Y),
        0.5,
    ),
}
#: the same with an integer
OF_COUNTS = {
    "max_iter": (lambda k: solve(M34, method="sinkhorn", max_iter=k, on_limit="ignore"), 9),
    "seed": (lambda k: solve(M34, method="pdasmd", seed=k), 3),
    "n_threads": (lambda k: solve(M34, n_threads=k), 1),
    "an option": (lambda k: solve(M34, method="pdasmd", batch_size=k), 2),
    "reg": (lambda k: solve(M34, reg=k), 1),
    "shape": (lambda k: Grid(k).row(0), 5),
    "batch": (lambda k: epsilot.solve_batch([M34], n_threads=k).value, 1),
    "a problem of a batch": (lambda k: epsilot.solve_batch([M34, 2 * M34], **KEPT)[k], 1),
    "barycenter": (lambda k: epsilot.barycenter(H, M, max_iter=k), 9),
    "barycenter option": (
        lambda k: epsilot.barycenter(H, M, reg=0.5, method="lbfgs", memory=k),
        4,
    ),
    "n_points": (lambda k: epsilot.barycenter_sample([X, Y], k).value, 2),
    "barycenter seed": (lambda k: epsilot.barycenter_sample([X, Y], 2, seed=k).value, 2),
    "rounds": (lambda k: epsilot.barycenter_sample([X, Y], 2, max_iter=k).value, 2),
    "row": (lambda k: solve(M34).plan_operator.row(k), 1),
    "n_outer": (lambda k: finite_sum.minimize(DUAL, n_outer=k).x, 9),
    "minimize": (lambda k: finite_sum.minimize(DUAL, n_outer=9, batch_size=k, seed=k).x, 2),
    "color transfer": (
        lambda k: (
            epsilot.ColorTransfer(n_colors=k, n_neighbors=k, seed=k)
            .fit(PICTURE, PICTURE[::-1])
            .transform(PICTURE)
        ),
        3,
    ),
    "domain adapter": (
        lambda k: epsilot.DomainAdapter(n_neighbors=k, max_iter=k).fit_transform(X, None, Y),
        3,
    ),
}


def number(answer):
    """Return what an answer says, to compare."""
    return getattr(answer, "value", answer)


@pytest.mark.parametrize(("call", "x"), OF_REALS.values(), ids=OF_REALS)
@pytest.mark.parametrize("held", REALS.values(), ids=REALS)
def test_a_real_number_of_any_library_is_a_number(held, call, x):
    np.testing.assert_array_equal(number(call(held(x))), number(call(x)))


@pytest.mark.parametrize(("call", "k"), OF_COUNTS.values(), ids=OF_COUNTS)
@pytest.mark.parametrize("held", COUNTS.values(), ids=COUNTS)
def test_an_integer_of_any_library_is_an_integer(held, call, k):
    np.testing.assert_array_equal(number(call(held(k))), number(call(k)))


@pytest.mark.parametrize("held", REALS.values(), ids=REALS)
@pytest.mark.parametrize("front", ["torch", "jax"])
def test_losses_take_numbers_of_any_library(front, held):
    library = pytest.importorskip(front, reason=f"{front} is not installed")
    losses = getattr(epsilot, front)
    x, y = map(library.tensor if front == "torch" else library.numpy.asarray, (X, Y))
    for call in (
        lambda r: losses.transport_cost(x, y, reg=r),
        lambda r: losses.transport_cost(x, y, rtol=r),
        lambda r: losses.transport_cost(x, y, reg=0.5, tol=r),
        lambda r: losses.transport_cost_matrix(x @ y.T, eps=r),
        lambda r: losses.divergence(x, y, r),
    ):
        assert call(held(0.125)).item() == call(0.125).item()


@pytest.mark.parametrize(("call", "x"), OF_REALS.values(), ids=OF_REALS)
@pytest.mark.parametrize(
    "value",
    [np.bool_(True), np.array(True), np.array([0.5] * 5), np.array(1j), np.array("x"), "y", [[]]],
    ids=lambda value: repr(value),
)
def test_no_number_is_refused_in_one_sentence(call, x, value):
    with pytest.raises((InvalidProblem, epsilot.UnknownMethod)) as caught:
        call(value)
    assert "\n" not in str(caught.value)


def test_a_number_of_numpy_loads_no_other_library():
    code = (
        "import sys, numpy as np, epsilot;"
        "epsilot.solve(np.eye(3), reg=np.array(1.0), seed=np.array(3));"
        "print('torch' in sys.modules, 'jax' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "False"]
