"""The gallery of docs/, at toy size."""

import sys
from importlib import import_module
from pathlib import Path

import pytest

GALLERY = Path(__file__).parents[2] / "docs" / "gallery"


@pytest.fixture
def gallery(monkeypatch):
    pytest.importorskip("torch", reason="PyTorch is not installed")
    pytest.importorskip("matplotlib")
    monkeypatch.setattr(sys, "path", [str(GALLERY), *sys.path])


def test_a_cloud_flows_down_every_loss(gallery, tmp_path):
    picture = tmp_path / "flow.png"
    flows = import_module("gradient_flow").main(
        ["--out", str(picture), "--points", "40", "--steps", "0", "5"]
    )
    assert picture.stat().st_size > 10_000
    for (_, first), (_, last) in flows.values():
        assert last < first


def test_a_network_learns(gallery, capsys):
    first, last = import_module("train_network").main(["--steps", "25", "--batch", "64"])
    assert last < first / 2
    assert "step  24: cost" in capsys.readouterr().out
