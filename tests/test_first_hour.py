"""The first hour of a newcomer: ten tasks, each written as a user would from the start page."""

import warnings

import numpy as np
import pytest
import scipy.stats
from typer.testing import CliRunner

import epsilot
from epsilot.cli import app

#: Points of task 8, which the documentation measures with 100,000.
N_MANY = 3000


@pytest.fixture(autouse=True)
def in_a_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def moons(rng, n, angle):
    """Return labelled points of two moons that are turned by an angle."""
    label, t = np.arange(n) % 2, rng.uniform(0, np.pi, n)
    X = np.stack([np.cos(t), np.sin(t)], axis=1)
    X[label == 1] = [1.0, 0.5] - X[label == 1]
    turn = np.array([[np.cos(angle), -np.sin(angle)], [np.sin(angle), np.cos(angle)]])
    return (X + 0.07 * rng.normal(size=X.shape)) @ turn.T, label


def test_1_points_in_csv_files_on_the_command_line(rng, tmp_path):
    for name in ("x", "y"):
        np.savetxt(f"{name}.csv", rng.random((30, 2)), delimiter=",", header="lon,lat")
    call = ["solve", "--points", "x.csv", "y.csv", "--rtol", "0.01", "--report", "out.html"]
    done = CliRunner().invoke(app, [*call, "--out", "result.npz"])
    assert done.exit_code == 0, done.output
    assert "W2 = " in done.output
    assert "squared Euclidean cost" in (tmp_path / "out.html").read_text(encoding="utf-8")
    assert epsilot.Result.load("result.npz").plan_sparse.sum() == pytest.approx(1.0)


def test_2_the_distance_of_two_samples_on_a_line(rng):
    x, y = rng.normal(size=50), rng.normal(1.0, size=60)
    distance = epsilot.wasserstein_1d(x, y)
    assert float(distance) == pytest.approx(scipy.stats.wasserstein_distance(x, y))
    assert distance.gap <= 1e-9 * distance
    assert "W_1" in repr(distance)


def test_3_nearest_neighbours_of_digits():
    datasets = pytest.importorskip("sklearn.datasets")
    images, labels = datasets.load_digits(n_class=3, return_X_y=True)
    images, labels = images[:24], labels[:24]
    place = np.indices((8, 8)).reshape(2, -1).T
    M = np.abs(place[:, None] - place).sum(axis=2)
    D = epsilot.pairwise(images, M, normalize=True).to_matrix()
    np.fill_diagonal(D, np.inf)
    assert (labels[D.argmin(axis=1)] == labels).mean() >= 0.9


def test_4_a_picture_in_the_colours_of_another(rng):
    pytest.importorskip("sklearn")
    source, reference = (rng.integers(0, 255, (12, 12, 3), dtype=np.uint8) for _ in range(2))
    reference[..., 0] //= 4  # little red
    moved = epsilot.ColorTransfer(n_colors=16).fit(source, reference).transform(source)
    assert moved.shape == source.shape
    assert moved[..., 0].mean() < 0.5 * source[..., 0].mean()


def test_5_matching_with_outliers(rng):
    X = rng.random((20, 2))
    Y = np.concatenate([X + 0.01, rng.random((5, 2)) + 10.0])  # five outliers
    result = epsilot.solve_sample(X, Y, np.ones(20), np.ones(25), mass=20.0)
    received = result.plan.sum(axis=0)
    np.testing.assert_allclose(received[:20], 1.0)
    np.testing.assert_allclose(received[20:], 0.0)


def test_6_a_loss_in_pytorch():
    torch = pytest.importorskip("torch")
    import epsilot.torch

    generator = torch.Generator().manual_seed(0)
    data = torch.randn(40, 2, generator=generator) + 3.0
    x = torch.randn(40, 2, generator=generator, requires_grad=True)
    loss, optimiser = epsilot.torch.TransportLoss(), torch.optim.SGD([x], lr=10.0)
    for _ in range(12):
        optimiser.zero_grad()
        value = loss(x, data)
        value.backward()
        optimiser.step()
    assert value < 0.01
    assert x.mean().item() == pytest.approx(data.mean().item(), abs=0.05)


def test_7_the_mean_of_two_pictures():
    images = np.zeros((2, 8, 8))
    images[0, 1:3, 1:3] = images[1, 5:7, 5:7] = 0.25
    result = epsilot.barycenter_grid(images, metric="sqeuclidean")
    centre = (result.barycenter[..., None] * np.indices((8, 8)).transpose(1, 2, 0)).sum(axis=(0, 1))
    np.testing.assert_allclose(centre, 3.5, atol=0.1)
    assert result.converged


def test_8_many_points_without_a_matrix(rng):
    X, Y = rng.random((N_MANY, 2)), rng.random((N_MANY, 2)) ** 2
    result = epsilot.solve_sample(X, Y, lazy=True, rtol=1e-9)
    assert result.converged
    assert result.plan_sparse.nnz <= 2 * N_MANY - 1
    assert "exact to rounding" in repr(result)


def test_9_a_classifier_for_a_turned_domain_in_a_pipeline(rng):
    pytest.importorskip("sklearn")
    from sklearn.pipeline import make_pipeline
    from sklearn.svm import SVC

    (Xs, ys), (Xt, yt) = moons(rng, 80, 0.0), moons(rng, 80, np.radians(35))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = make_pipeline(epsilot.DomainAdapter(X_target=Xt, reg=0.05), SVC(C=10))
        adapted = model.fit(Xs, ys).score(Xt, yt)
    assert adapted > SVC(C=10).fit(Xs, ys).score(Xt, yt) + 0.05


def test_10_data_frames_in_a_notebook(rng):
    pandas = pytest.importorskip("pandas")
    first = pandas.DataFrame(rng.random((15, 2)), columns=["lon", "lat"])
    second = pandas.DataFrame(rng.random((15, 2)), columns=["lat", "lon"])
    result = epsilot.solve_sample(first, second)
    assert result.value == epsilot.solve_sample(first, second[["lon", "lat"]]).value
    formatters = pytest.importorskip("IPython.core.formatters")
    shown, _ = formatters.DisplayFormatter().format(result)
    assert "optimum" in shown["text/html"]
    figure, _ = formatters.DisplayFormatter().format(result.plot())
    assert "image/png" in figure


def test_mistakes_of_the_first_hour_are_answered_by_the_remedy(rng):
    pandas = pytest.importorskip("pandas")
    towns = pandas.DataFrame({"lon": [0.0, 1.0], "name": ["Bern", "Chur"]})
    with pytest.raises(epsilot.InvalidProblem, match="column 'name', whose entries are not all"):
        epsilot.solve_sample(towns, towns)
    for metric, known in {
        "manhattan": "cityblock",
        "l2": "euclidean",
        "euclid": "euclidean",
    }.items():
        with pytest.raises(epsilot.InvalidProblem, match=f"did you mean {known}"):
            epsilot.solve_sample(rng.random((3, 2)), rng.random((3, 2)), metric=metric)
    with pytest.raises(AttributeError, match=r"are in epsilot\.pot"):
        _ = epsilot.emd
    with pytest.raises(epsilot.InvalidProblem, match=r"read that with numpy\.loadtxt"):
        epsilot.solve_sample("x.csv", "y.csv")
