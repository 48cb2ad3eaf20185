"""The walk-through of the documentation."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from distributed import Client

pytestmark = pytest.mark.xdist_group("cluster")

ROOT = Path(__file__).parents[2]


def test_the_two_terminals_of_the_page(tmp_path):
    section = (ROOT / "docs" / "cluster.md").read_text(encoding="utf-8").split("## ")[1]
    blocks = re.findall(r"```\w+\n(.*?)```", section, re.DOTALL)
    scheduler, *others = blocks
    file, folder = tmp_path / "scheduler.json", Path(sys.executable).parent
    env = os.environ | {"PATH": f"{folder}{os.pathsep}{os.environ['PATH']}"}
    quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
    running = []

    def start(command):
        running.append(subprocess.Popen(command.split(), env=env, cwd=tmp_path, **quiet))

    try:
        any_port = scheduler.replace("8786", "0").strip()
        start(f"{any_port} --scheduler-file {file} --no-dashboard")
        with Client(scheduler_file=str(file), timeout=600, set_as_default=False) as client:
            port = client.scheduler.address.rsplit(":", 1)[1]
        worker, script = (block.replace("8786", port) for block in others)
        start(worker)
        done = subprocess.run(
            [sys.executable, "-c", script],
            env=env, capture_output=True, text=True, timeout=600, check=False,
        )  # fmt: skip
    finally:
        for program in running[::-1]:
            program.terminate()
            program.wait(600)
    assert "certified" in done.stdout, done.stderr
