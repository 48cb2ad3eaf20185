"""Equal inputs give equal bits, whatever the process, the cache, the threads or the processor."""

import ast
from pathlib import Path

import pytest

from epsilot_lab.studies import same_bits

ROOT = Path(__file__).parents[1]
SOURCE = ROOT / "src" / "epsilot"

#: Folders and files that decide no number of a solve.
OUTSIDE = {
    *("adapters", "applications", "cli", "files", "display", "pot"),
    *("theory", "method_info.py"),
}
PATH = sorted(
    file for file in SOURCE.rglob("*.py") if not OUTSIDE & set(file.relative_to(SOURCE).parts)
)

#: What rounds by the processor, by the threads of BLAS or by the system's library.
FUNCTIONS = {
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "logaddexp", "power", "float_power"),
    *("sinh", "cosh", "tanh", "hypot", "pow", "dot", "vdot", "inner", "matmul", "tensordot"),
    *("einsum", "linalg", "convolve", "correlate", "polyfit", "interp", "partition"),
}
#: What may put ties in another order, unless asked to be stable.
SORTS = {"argsort", "argpartition", "lexsort"}
ALLOWED = {
    "api/wasserstein.py: Fraction(x) ** order": "exact arithmetic",
    "api/wasserstein.py: math.expm1": "a root of proved bounds, which is then moved outward",
    "api/wasserstein.py: math.log1p": "a root of proved bounds, which is then moved outward",
    "api/wasserstein.py: value ** (1 / p)": "a root of proved bounds, which is then moved outward",
    "engine/maps.py: product @": "images of points under a finished plan",
    "geometry/points.py: costs ** p": "costs that are powers: the system's pow",
    "geometry/metric_costs.py: np.linalg": "the covariance of SciPy's Mahalanobis distance",
    "geometry/near_pairs.py: float(max_distance) ** degree": "the cost of a radius",
    "geometry/points.py: 2.0 ** power": "a power of two",
    "metrics.py: self.finish(reduce(self.join, terms)) ** self.outer": "costs that are powers",
    "metrics.py: self.term(x_k, y_k) ** self.inner": "costs that are powers: the system's pow",
    "solvers/auction.py: growth ** max(shape.dimension - 2, 0.0)": "a prediction of seconds",
    "solvers/network_simplex.py: np.partition": "a value, whatever the order of ties",
    "solvers/cost_models.py: (n + m) ** self.power": "a prediction of seconds",
    "solvers/cost_models.py: FLAT_SEPARATION ** max(3 - self.dimension, 0.0)": "a predicted gap",
    "finite_sum/instances.py: 2 ** (-2 / exponent(norm))": "exact for l2 and l∞",
    "finite_sum/instances.py: np.linalg": "the closed form that tests compare with",
    "finite_sum/instances.py: product @": "the closed form that tests compare with",
    "geometry/coordinates.py: np.linalg": "the l2 norm along an axis, which is a plain sum",
    "geometry/coordinates.py: (LARGEST_COST / n_axes) ** (1 / power)": "a bound of what is refused",
    "geometry/coordinates.py: SMALLEST_COST ** (1 / power)": "a bound of what is refused",
    "gromov/result.py: np.linalg": "turns clouds for pictures",
    "gromov/result.py: product @": "turns clouds for pictures",
    "gromov/verify.py: lexsort, not stable": "lexsort is stable",
    "gromov/verify.py: product @": "a check that leaves room for round-off, and returns no number",
    "kernels/products.py: np.dot": "plain Python, for coverage runs",
    "kernels/sums.py: np.dot": "plain Python, for coverage runs",
    "kernels/exp_log.py: 2.0 ** self.mantissa": "a power of two",
    "kernels/exp_log.py: 2.0 ** k": "a power of two",
    "kernels/exp_log.py: np.exp": "plain Python, for coverage runs",
    "kernels/exp_log.py: np.log": "plain Python, for coverage runs",
}


def suspects(tree):
    """Yield what in a file may round or order by the machine."""
    for node in ast.walk(tree):
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.MatMult):
            yield "product @"
        elif isinstance(node, ast.BinOp) and isinstance(node.op, ast.Pow):
            if not (is_number(node.left) and is_number(node.right)) and not is_whole(node.right):
                yield ast.unparse(node)
        elif isinstance(node, ast.Attribute) and isinstance(node.value, ast.Name):
            if node.value.id in ("np", "math") and node.attr in FUNCTIONS:
                yield f"{node.value.id}.{node.attr}"
        elif isinstance(node, ast.ImportFrom) and node.module in ("scipy.special", "scipy.linalg"):
            yield f"from {node.module}"
        elif is_unstable(node):
            yield f"{node.func.attr}, not stable"


def is_unstable(node):
    is_sort = isinstance(node, ast.Call) and getattr(node.func, "attr", None) in SORTS
    return is_sort and "kind='stable'" not in map(ast.unparse, node.keywords)


def is_number(node):
    return isinstance(node, ast.Constant) or (
        isinstance(node, ast.UnaryOp) and isinstance(node.operand, ast.Constant)
    )


def is_whole(node):
    return isinstance(node, ast.Constant) and isinstance(node.value, int)


def read(file):
    return ast.parse(file.read_text(encoding="utf-8"))


def test_the_path_of_a_solve_rounds_only_as_written():
    found = set()
    for file in PATH:
        name = file.relative_to(SOURCE).as_posix()
        found |= {f"{name}: {what}" for what in suspects(read(file))}
    assert found == set(ALLOWED), "use epsilot.kernels.vectors and .products, or say why not"


@pytest.mark.parametrize(
    ("source", "expected"),
    [
        ("a @ b", ["product @"]),
        ("np.exp(x)", ["np.exp"]),
        ("y = math.log(2) + np.sqrt(2)", ["math.log"]),
        ("np.linalg.solve(A, b)", ["np.linalg"]),
        ("from scipy.special import xlogy", ["from scipy.special"]),
        ("x**omega", ["x ** omega"]),
        ("x**2 + 2.0**-40", []),
        ("x.argsort()", ["argsort, not stable"]),
        ("np.argsort(x, kind='stable')", []),
    ],
)
def test_suspects_are_seen(source, expected):
    assert list(suspects(ast.parse(source))) == expected


def flags(tree):
    """Yield the fast-math flags that a file names, and everything that ``fastmath`` is set to."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and node.value in (
            "fast",
            "reassoc",
            "contract",
            "afn",
            "arcp",
            "ninf",
        ):
            yield node.value
        elif isinstance(node, ast.keyword) and node.arg == "fastmath":
            yield ast.unparse(node.value)
        elif isinstance(node, ast.Dict):
            for key, value in zip(node.keys, node.values, strict=True):
                if isinstance(key, ast.Constant) and key.value == "fastmath":
                    yield ast.unparse(value)


def test_no_kernel_may_round_or_reorder():
    found = {what for file in SOURCE.rglob("*.py") for what in flags(read(file))}
    assert found == {"{'nnan', 'nsz'}"}


@pytest.fixture(scope="module")
def found():
    return same_bits.differences(same_bits.QUICK, True)


def test_every_method_gives_the_same_bits_under_every_setting(found):
    differing, n_cases = found
    assert n_cases > 20
    assert not any(differing.values()), differing
