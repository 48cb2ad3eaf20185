from PIL import Image

from epsilot_lab.paper import color_transfer


def test_color_transfer_at_toy_size(tmp_path):
    tasks = [color_transfer.TransferTask(m, 60, 0.01, True) for m in color_transfer.METHODS]
    lines = [task.line() for task in tasks]
    for line in lines:
        assert line["is_certified"]
        for after in line["after"]:
            assert after < (1 - color_transfer.FALL) * line["before"]
    color_transfer.write(tmp_path, tasks, lines, "epsilot reproduce color-transfer")
    assert "pdasmd | A → B" in (tmp_path / "summary.md").read_text(encoding="utf-8")
    with Image.open(tmp_path / color_transfer.FIGURE) as image:
        assert min(image.size) > 500
