"""The files for benchopt work together: by themselves, and in benchopt where it is installed."""

import importlib.util
import shutil
import subprocess
import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

FOLDER = Path(__file__).parents[2] / "benchmarks" / "benchmark_ot"


class StandIn:
    """The part of benchopt's base classes that the files use."""

    def run_once(self, stop_val):
        self.run(stop_val)


@pytest.fixture
def load(monkeypatch):
    benchopt = ModuleType("benchopt")
    for name in ("BaseDataset", "BaseObjective", "BaseSolver"):
        setattr(benchopt, name, StandIn)
    monkeypatch.setitem(sys.modules, "benchopt", benchopt)

    def loaded(path, cls, **parameters):
        spec = importlib.util.spec_from_file_location(f"of_benchopt_{cls}", FOLDER / path)
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        made = getattr(module, cls)()
        for name, value in ({k: v[0] for k, v in made.parameters.items()} | parameters).items():
            setattr(made, name, value)
        return made

    StandIn.parameters = {}
    return loaded


@pytest.mark.parametrize("dimension", [2, 10])
def test_solvers_agree_on_the_dataset(load, dimension):
    dataset = load("datasets/clusters.py", "Dataset", n_samples=30, dimension=dimension)
    objective = load("objective.py", "Objective")
    objective.set_data(**dataset.get_data())
    ours, theirs = (load(f"solvers/{name}.py", "Solver") for name in ("epsilot", "pot_simplex"))
    theirs.set_objective(**objective.get_objective())
    theirs.run(1)
    wanted = objective.evaluate_result(**theirs.get_result())
    ours.set_objective(**objective.get_objective())
    ours.warm_up()
    for tolerance in (1e38, 0.1, 1e-6, 1e-15):
        ours.run(tolerance)
        found = objective.evaluate_result(**ours.get_result())
        assert found["violation"] <= 1e-20
        assert found["value"] == found["cost"]
        assert -1e-12 <= found["cost"] / wanted["cost"] - 1 <= min(tolerance, 1) + 1e-12
    independent = objective.evaluate_result(**objective.get_one_result())
    assert independent["value"] > wanted["value"]
    missing = objective.evaluate_result(P=np.zeros((30, 30)))
    assert missing["value"] > missing["cost"] == 0


def test_benchopt_runs_them(tmp_path):
    pytest.importorskip("benchopt")
    folder = shutil.copytree(FOLDER, tmp_path / FOLDER.name)
    command = [sys.executable, "-m", "benchopt", "run", str(folder), "--no-plot"]
    command += ["--no-timeout", "-n", "2", "-d", "Clusters[n_samples=20,dimension=2]"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert done.stdout.count("done") >= 2, done.stdout
    assert list(folder.glob("outputs/*"))
