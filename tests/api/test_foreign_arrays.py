"""Arrays of other libraries: read where the processor can, refused in one sentence where not."""

import numpy as np
import pytest

import epsilot

M = np.abs(np.subtract.outer(np.arange(3.0), np.arange(3.0)))
A, B = np.array([0.2, 0.3, 0.5]), np.array([0.5, 0.25, 0.25])


class Elsewhere:
    """An array of another library, and nothing that it need not have."""

    def __init__(self, array):
        self.array = np.asarray(array)
        self.shape = self.array.shape


class WithArray(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        return np.asarray(self.array, dtype)


class WithDLPack(Elsewhere):
    def __dlpack__(self, **keywords):
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self):
        return self.array.__dlpack_device__()


class OnGPU(WithArray):
    device = "cuda:0"

    def __dlpack__(self, **keywords):
        raise BufferError

    def __dlpack_device__(self):
        return 2, 0


class Unsure(WithArray):
    def __dlpack_device__(self):
        raise BufferError


class Sloped(WithArray):
    requires_grad = True


class SomeTracer(WithArray):
    pass


class Broken(Elsewhere):
    def __array__(self, dtype=None, copy=None):
        raise RuntimeError

    def __len__(self):
        return len(self.array)

    def __getitem__(self, k):
        return Broken(self.array[k])

    dtype = "mystery"


#: how each function is called with arrays of one kind, and the value that it must find
CALLS = {
    "solve": (lambda of: epsilot.solve(of(M), of(A), of(B)).value, 0.55),
    "points": (
        lambda of: epsilot.solve_sample(
            of([[0.0], [1.0], [2.0]]), of([[0.0], [1.0], [2.0]]), of(A), of(B), metric="cityblock"
        ).value,
        0.55,
    ),
    "grid": (lambda of: epsilot.solve_grid(of(A), of(B)).value, 0.55),
    "stack": (lambda of: epsilot.solve_batch(of([M, M]), of(A), of([B, B])).value[1], 0.55),
    "list": (lambda of: epsilot.solve_batch([of(M)], of(A), [of(B)]).value[0], 0.55),
    "clouds": (
        lambda of: epsilot.solve_sample_batch(
            of([[[0.0], [1.0], [2.0]]]), of([[0.0], [1.0], [2.0]]), of(A), of(B), metric="cityblock"
        ).value[0],
        0.55,
    ),
    "pairs": (lambda of: epsilot.pairwise(of([A, B]), of(M)).value[0], 0.55),
    "certify": (lambda of: epsilot.certify(of(M), of(A), of(B), plan=of(np.outer(A, B))).upper,
                float((np.outer(A, B) * M).sum())),
}  # fmt: skip


@pytest.mark.parametrize("kind", [WithArray, WithDLPack, Unsure])
@pytest.mark.parametrize(("call", "value"), CALLS.values(), ids=CALLS)
def test_arrays_of_other_libraries_are_read(kind, call, value):
    assert call(kind) == pytest.approx(value, abs=1e-12)


#: a kind of array, what its sentence says
REFUSED = [
    (OnGPU, "is on the device cuda:0; epsilot reads the memory of the processor (copy it"),
    (Sloped, "requires a gradient, which would be lost; use epsilot.torch"),
    (SomeTracer, "is traced by JAX and has no values yet; use epsilot.jax.transport_cost"),
    (Broken, "is of type mystery; it must be a rectangular array of real numbers"),
]


@pytest.mark.parametrize(("kind", "sentence"), REFUSED)
@pytest.mark.parametrize("call", [call for call, _ in CALLS.values()], ids=CALLS)
def test_arrays_out_of_reach_are_refused_in_one_sentence(kind, sentence, call):
    with pytest.raises(epsilot.InvalidProblem) as caught:
        call(kind)
    assert sentence in str(caught.value)


@pytest.mark.parametrize("kind", [np.asarray, WithArray])
def test_weights_in_float32_may_miss_their_total_by_rounding(kind):
    a = kind(np.array([0.1, 0.2, 0.7], np.float32))
    b = kind(np.array([0.3, 0.3, 0.4000001], np.float32))
    assert epsilot.solve(M, a, b).converged
    assert epsilot.solve_grid(a, b).converged
    assert epsilot.solve_batch([M], [a], [b]).converged.all()


def table(library, x):
    """Return rows of numbers as a table with named columns, a vector as a series."""
    x = np.asarray(x)
    if x.ndim == 1:
        return library.Series(x)
    return library.DataFrame({f"c{k}": column for k, column in enumerate(x.T)})


#: library -> how it holds an array
LIBRARIES = {
    "pandas": table,
    "polars": table,
    "xarray": lambda library, x: library.DataArray(np.asarray(x)),
    "torch": lambda library, x: library.from_numpy(np.array(x)),
    "jax": lambda library, x: library.numpy.asarray(x),
}


@pytest.mark.parametrize("name", LIBRARIES)
@pytest.mark.parametrize("call", ["solve", "points", "grid", "list", "pairs", "certify"])
def test_libraries_that_are_installed_are_read(name, call):
    library = pytest.importorskip(name, reason=f"{name} is not installed")
    solve, value = CALLS[call]
    assert solve(lambda x: LIBRARIES[name](library, x)) == pytest.approx(value, abs=1e-6)
