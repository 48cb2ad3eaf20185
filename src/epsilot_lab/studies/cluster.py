"""Measure the overhead and the gain of a Dask cluster on the cores of one machine.

    python -m epsilot_lab cluster --out docs/results/cluster    # everything; two idle cores
    python -m epsilot_lab cluster --out docs/results/cluster --parts passes scaling   # these anew
    python -m epsilot_lab cluster --toy

``passes``: what a pass costs beyond its work, by the number of tasks. ``scaling``: one worker and
two, on a pass and on all pairs, with the processor time of each. ``placement``: which of two
workers does tasks that share an array, by their length: a task goes to where its data is.
``kills``: workers killed by SIGKILL at random moments, every result compared bit by bit. ``large``
and ``million``: certified runs, the second streamed from Zarr, with the memory of the client. A
worker has one thread.
"""

from __future__ import annotations

import argparse
import json
import logging
import os
import random
import signal
import tempfile
import threading
import time
from collections import Counter
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path

import numpy as np

import epsilot
from epsilot import parallel
from epsilot.distributed import PointCloud, points
from epsilot.distributed import passes as cluster_passes

from ..environment import machine, versions

PARTS = ("passes", "scaling", "placement", "kills", "large", "million")


@contextmanager
def cluster_of(n_workers):
    """Start workers, and yield the cluster and a client."""
    import dask
    from distributed import Client, LocalCluster

    with (
        dask.config.set({"distributed.deploy.lost-worker-timeout": "10 minutes"}),
        LocalCluster(
            n_workers=n_workers,
            threads_per_worker=1,
            dashboard_address=":0",
            silence_logs=logging.CRITICAL,
        ) as cluster,
        Client(cluster, set_as_default=False) as client,
    ):
        yield cluster, client


def _spent(client):
    """Return the processor seconds of this process and of the workers."""
    return time.process_time() + sum(client.run(time.process_time).values())


def measured(client, function, repeats):
    """Return the least wall and processor seconds of a call, here and of the workers together."""
    function()
    walls, processors = [], []
    for _ in range(repeats):
        before = _spent(client)
        began = time.perf_counter()
        function()
        walls.append(time.perf_counter() - began)
        processors.append(_spent(client) - before)
    return min(walls), min(processors)


def clouds(n, d=2, seed=0):
    rng = np.random.default_rng(seed)
    return rng.random((n, d)), rng.random((n, d)) ** 1.5


def passes(lines, toy):
    """Measure passes with almost no work: what is left is what tasks cost."""
    n, repeats = 2000, 3 if toy else 20
    X, Y = clouds(n)
    g = np.zeros(n)
    here = epsilot.PointCloud(X, Y)
    with cluster_of(2) as (_, client):
        for n_tasks in (2,) if toy else (2, 8, 32):
            sizes = replace(cluster_passes.SIZES, entries=1, tasks_per_slot=n_tasks // 2)
            with (
                changed(points, TUNING=replace(points.TUNING, max_local_entries=0)),
                changed(cluster_passes, SIZES=sizes),
            ):
                there = PointCloud(X, Y, client=client)
                wall, processor = measured(client, lambda: there.lse_rows(g, 0.1), repeats)  # noqa: B023
            with parallel.limit(2):
                work, _ = measured(client, lambda: here.lse_rows(g, 0.1), repeats)
            lines.append(
                {"part": "passes", "tasks": n_tasks, "overhead_ms": 1e3 * (wall - work),
                 "processor_ms": 1e3 * processor}
            )  # fmt: skip


def scaling(lines, toy):
    """Measure one worker and two on a pass of seconds and on all pairs, and this process."""
    n, n_rows = (6000, 60) if toy else (60_000, 400)
    X, Y = clouds(n)
    g = np.zeros(n)
    H = np.random.default_rng(0).dirichlet(np.ones(64), n_rows)
    places = np.indices((8, 8)).reshape(2, -1).T
    M = ((places[:, None] - places) ** 2).sum(-1).astype(float)
    here = epsilot.PointCloud(X, Y)
    repeats = 1 if toy else 5
    for n_workers in (1, 2):
        with cluster_of(n_workers) as (_, client):
            there = PointCloud(X, Y, client=client)
            cases = {
                "pass": (lambda: there.lse_rows(g, 0.1), lambda: here.lse_rows(g, 0.1)),  # noqa: B023
                "pairwise": (
                    lambda: epsilot.pairwise(H, M, client=client),
                    lambda: epsilot.pairwise(H, M),
                ),
            }
            for case, (on_cluster, in_process) in cases.items():
                wall, processor = measured(client, on_cluster, repeats)
                with parallel.limit(n_workers):
                    own_wall, own = measured(client, in_process, repeats)
                lines.append(
                    {"part": "scaling", "case": case, "workers": n_workers, "seconds": wall,
                     "processor": processor, "in_process_seconds": own_wall,
                     "in_process_processor": own}
                )  # fmt: skip


def placement(lines, toy):
    """Count what the busier of two workers does of tasks that need one array that a task made."""
    from distributed import get_worker

    def wait(shared, seconds):
        time.sleep(seconds)
        return get_worker().address

    n_tasks, repeats = 16, 1 if toy else 8
    with cluster_of(2) as (_, client):
        for seconds in (0.02,) if toy else (0.02, 0.06, 0.3):
            shares, gains = [], []
            for _ in range(repeats):
                shared = client.submit(np.zeros, 10_000, pure=False)
                began = time.perf_counter()
                tasks = [client.submit(wait, shared, seconds, pure=False) for _ in range(n_tasks)]
                done = Counter(client.gather(tasks))
                gains.append(n_tasks * seconds / (time.perf_counter() - began))
                shares.append(max(done.values()) / n_tasks)
            lines.append(
                {"part": "placement", "task_seconds": seconds, "tasks": n_tasks,
                 "busier_share": float(np.median(shares)), "gain": float(np.median(gains))}
            )  # fmt: skip


def kills(lines, toy):
    """Kill workers at random moments while small problems are solved; compare every bit."""
    n_kills = 2 if toy else 200
    X, Y = clouds(600)
    how = {"method": "sinkhorn", "rtol": 1e-9, "max_iter": 4, "multiscale": False,
           "on_limit": "ignore"}  # fmt: skip
    expected = epsilot.solve_sample(X, Y, lazy=True, **how)
    rng, left, same, n_runs = random.Random(0), [n_kills], True, 0
    with (
        cluster_of(2) as (cluster, client),
        changed(points, TUNING=replace(points.TUNING, max_local_entries=0)),
    ):

        def kill():
            while left[0] > 0:
                time.sleep((0.1 if toy else 4.0) * rng.random())  # a worker is back in about one
                # A nanny gives up on a worker that dies while it starts.
                up = [x for x in cluster.workers.values() if x.status.name == "running" and x.pid]
                if up:
                    with suppress(ProcessLookupError, TypeError):  # it has just gone
                        os.kill(rng.choice(up).pid, signal.SIGKILL)
                        left[0] -= 1

        killer = threading.Thread(target=kill)
        killer.start()
        while killer.is_alive() or n_runs == 0:
            result = epsilot.solve_sample(X, Y, client=client, **how)
            same &= result.value == expected.value
            same &= all(map(np.array_equal, result.potentials, expected.potentials))
            n_runs += 1
    lines.append({"part": "kills", "kills": n_kills, "runs": n_runs, "same_bits": bool(same)})


def large(lines, toy):
    """Certify a bracket of a large cloud through the cluster, by two methods."""
    n = 3000 if toy else 100_000
    X, Y = clouds(n)
    cases = {"auction": {"rtol": 1e-6}, "sinkhorn": {"rtol": 0.1}}
    with cluster_of(2) as (_, client):
        for method, how in cases.items():
            began = time.perf_counter()
            result = epsilot.solve_sample(
                X, Y, client=client, method=method, on_limit="ignore", **how
            )
            lines.append(_solved("large", n, method, result, time.perf_counter() - began))


def million(lines, toy):
    """Certify a bracket of a million points that a Zarr store holds."""
    import zarr

    n = 3000 if toy else 1_000_000
    with tempfile.TemporaryDirectory() as folder, cluster_of(2) as (_, client):
        names = [str(Path(folder) / f"{name}.zarr") for name in "ab"]
        for seed, name in enumerate(names):
            array = zarr.create_array(name, shape=(n, 2), chunks=(100_000, 2), dtype=float)
            for start in range(0, n, 100_000):
                rng = np.random.default_rng([seed, start])
                stop = min(start + 100_000, n)
                array[start:stop] = rng.random((stop - start, 2)) ** (1 + 0.5 * seed)
        before, began = peak(), time.perf_counter()
        result = epsilot.solve_sample(*names, client=client, rtol=0.01, on_limit="ignore")
        line = _solved("million", n, result.method, result, time.perf_counter() - began)
        lines.append(line | {"client_gib": peak() / 2**30, "before_gib": before / 2**30})


def _solved(part, n, method, result, seconds):
    return {
        "part": part,
        "n": n,
        "method": method,
        "lower": result.lower_bound,
        "upper": result.value,
        "relative_gap": result.gap / result.lower_bound,
        "converged": result.converged,
        "seconds": seconds,
    }


def peak():
    """Return the largest memory that this process has had, in bytes."""
    import resource

    return 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@contextmanager
def changed(module, **values):
    """Set constants of a module inside the block."""
    before = {name: getattr(module, name) for name in values}
    for name, value in values.items():
        setattr(module, name, value)
    try:
        yield
    finally:
        for name, value in before.items():
            setattr(module, name, value)


def table(lines):
    """Return what was measured as Markdown, with the targets."""
    found = ["| part | measured | target |", "|---|---|---|"]
    one = {x["case"]: x for x in lines if x["part"] == "scaling" and x["workers"] == 1}
    for x in lines:
        part = x["part"]
        if part == "passes":
            target = "40 ms" if x["tasks"] == 8 else ""
            text = f"{x['overhead_ms']:.0f} ms a pass of {x['tasks']} tasks beyond its work"
            found.append(f"| {part} | {text} | {target} |")
        elif part == "scaling":
            ratio = x["processor"] / x["in_process_processor"]
            text = f"{x['case']}, {x['workers']} worker(s): {x['seconds']:.2f} s, processor time "
            text += f"{ratio:.2f} times that of one process ({x['in_process_seconds']:.2f} s)"
            found.append(f"| {part} | {text} | 1.25 |")
            if x["workers"] == 2:
                gain = one[x["case"]]["seconds"] / x["seconds"]
                found.append(f"| {part} | {x['case']}: two workers {gain:.2f} times one | 1.6 |")
        elif part == "placement":
            text = (
                f"{x['tasks']} tasks of {1e3 * x['task_seconds']:.0f} ms that share an array: one "
            )
            text += (
                f"of two workers does {100 * x['busier_share']:.0f} %, {x['gain']:.2f} times one"
            )
            found.append(f"| {part} | {text} |  |")
        elif part == "kills":
            bits = "every bit the same" if x["same_bits"] else "BITS DIFFER"
            found.append(f"| {part} | {x['kills']} kills in {x['runs']} runs: {bits} | all |")
        else:
            text = f"{x['n']:,} points, {x['method']}: {x['lower']:.6g} to {x['upper']:.6g}, gap "
            text += f"{100 * x['relative_gap']:.2g} %, {x['seconds']:.0f} s"
            if "client_gib" in x:
                text += f", client {x['client_gib']:.2f} GiB"
            found.append(f"| {part} | {text} | {'2 GiB' if part == 'million' else 'certified'} |")
    return "\n".join(found)


def main(arguments=None):
    """Run the study with the words of a command line."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=PARTS)
    parser.add_argument("--toy", action="store_true", help="tiny sizes, which measure nothing")
    parser.add_argument("--out", type=Path, help="folder for lines.jsonl and summary.md")
    chosen = parser.parse_args(arguments)
    lines = [] if chosen.out is None else kept(chosen.out, without=chosen.parts)
    for part in chosen.parts:
        globals()[part](lines, chosen.toy)
        print(f"{part}: done", flush=True)
        lines.sort(key=lambda line: PARTS.index(line["part"]))
        if chosen.out is not None:
            write(chosen.out, lines)
    print(table(lines))


def kept(folder, without):
    """Return the lines of an earlier run but for the parts that are measured anew."""
    file = folder / "lines.jsonl"
    lines = map(json.loads, file.read_text().splitlines()) if file.exists() else ()
    return [line for line in lines if line.get("part") in set(PARTS) - set(without)]


def write(folder, lines):
    """Write all lines and their table."""
    folder.mkdir(parents=True, exist_ok=True)
    head = {"versions": versions(), "machine": machine()}
    (folder / "lines.jsonl").write_text("".join(json.dumps(x) + "\n" for x in [head, *lines]))
    text = f"# A Dask cluster on one machine\n\n{table(lines)}\n"
    (folder / "summary.md").write_text(text)
