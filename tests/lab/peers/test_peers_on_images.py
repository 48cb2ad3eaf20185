from rich.console import Console

from epsilot_lab.peers import images

TOY = images.ImageScale(sides=(8,), longest_of_peers=8, n_pairs=1)
CONSOLE = Console(stderr=True, force_terminal=False)


def test_a_toy_run_writes_a_table_a_cost_and_goes_on_where_it_was(tmp_path, monkeypatch):
    images.run_images(tmp_path, TOY, None, None, "epsilot bench --images", CONSOLE)
    text = (tmp_path / "summary.md").read_text(encoding="utf-8")
    assert "values differ by at most" in text
    for words in ("Cost squared l2", "Cost l1", "WhiteNoise", "Shapes", "ot.emd2_lazy"):
        assert words in text
    lines = (tmp_path / "solves.jsonl").read_text().splitlines()
    assert len(lines) == 8 * 2 * 4
    monkeypatch.delattr(images, "_call")
    images.run_images(tmp_path, TOY, None, None, "epsilot bench --images", CONSOLE)
    assert (tmp_path / "solves.jsonl").read_text().splitlines() == lines


def test_peers_are_not_given_large_images():
    scale = images.ImageScale(sides=(32, 64), longest_of_peers=32, n_pairs=1)
    sides = {task.side for task in images.tasks_of(scale, None, None) if task.solver == "emd2"}
    assert sides == {32}


def test_what_missed_its_target_has_a_star():
    line = {"solver": "epsilot", "processor": 2.0, "gap": 1e-3}
    assert images._cell([line]) == "2*"
    assert images._cell([{**line, "gap": 0.0}]) == "2"
    assert images._cell([]) == ""
