"""The constants behind docs/sizing.md, measured; and how far off the model is at other sizes.

The constants are fitted to small jobs on one core (files: on all). Then other jobs, up to 64 million records, are
predicted and run: a ratio of 1 is a model that was right.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from dataclasses import asdict, astuple
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

import datassay as da
import sizing
from common import Report, stopwatch
from sizing import GIB, METHODS, MILLION, Job

MEMORY = GIB
CORES = len(os.sched_getaffinity(0))
FITTED = [(1, 8, 8), (1, 72, 8), (1, 8, 32), (1, 72, 32), (16, 4, 4), (16, 20, 4)]  # millions, points, features
CHECKED = [(0.5, 200, 16), (1, 1000, 16), (4, 50, 16), (2, 100, 64), (64, 16, 4)]
IN_FILES = [(1, 8, 8), (1, 264, 8), (1, 8, 32), (1, 264, 32), (4, 64, 16)]
ON_CLUSTER = [(1, 400, 16), (4, 128, 16), (2, 512, 32)]  # the first tells what share of time is of use
FILES_CHECKED = [(8, 200, 16), (2, 1000, 24)]
OFF = 2.0  # the factor that a prediction may be off: others use the machine, too
PEAK = """
import re, sys, json, numpy as np
sys.path.insert(0, {here!r})
import bench_sizing as b, sizing
def kilobytes(name):
    return int(re.search(name + r":\\s+(\\d+)", open("/proc/self/status").read())[1])
job = sizing.Job(*json.loads({job!r}))
b.call(sizing.Job(job.method, 1000, 8, job.d), *b.arrays(1000, 8, job.d))
given = b.arrays(job.n, job.m, job.d)
before = kilobytes("VmRSS")
b.call(job, *given, n_jobs={threads}, memory={memory})
print((kilobytes("VmHWM") - before) * 1024)
"""


def arrays(n: int, m: int, d: int) -> tuple[np.ndarray, ...]:
    """Gaussian features, labels by chance."""
    rng = np.random.default_rng(0)
    X, X_val = rng.standard_normal((n, d), np.float32), rng.standard_normal((m, d), np.float32)
    return X, rng.integers(0, 2, n, np.int8), X_val, rng.integers(0, 2, m, np.int8)


def call(job: Job, X: object, y: object, X_val: object, y_val: object, **run: object) -> object:
    """The values of a job."""
    options = {"tau": -0.5} if job.method == "tknn_shapley" else {"k": 5}
    return getattr(da, job.method)(X, y, X_val, y_val, **options, **run)


def timed(job: Job, repeats: int = 3, **run: object) -> float:
    """Seconds of a job, in memory."""
    given = arrays(job.n, job.m, job.d)
    call(Job(job.method, 1000, 8, job.d), *arrays(1000, 8, job.d), **run)
    best = np.inf
    for _ in range(repeats):
        start = time.perf_counter()
        call(job, *given, **{"n_jobs": 1, "memory": MEMORY, **run})
        best = min(best, time.perf_counter() - start)
    return float(best)


def job_of(method: str, size: tuple[float, int, int]) -> Job:
    return Job(method, round(size[0] * MILLION), *size[1:])


def measure(method: str) -> sizing.Cost:
    """Constants of a method, on one core."""
    jobs = [(job, MEMORY) for job in (job_of(method, size) for size in FITTED)]
    small = jobs[3][0]  # once more, one row at a time
    jobs.append((small, sizing.fixed_bytes(small) + 1.5 * sizing.row_bytes(small)))
    return sizing.fitted(
        [(sizing.counts(job, sizing.plan(job, 1, memory)[1]), timed(job, memory=int(memory))) for job, memory in jobs]
    )


def in_files(folder: Path, sizes: list[tuple[float, int, int]], method: str) -> list[tuple[Job, float]]:
    """Seconds of jobs whose records are in files, on all cores."""
    found = []
    for at, (millions, m, d) in enumerate(sizes):
        file = folder / f"{at}-{millions}-{d}.parquet"
        job = job_of(method, (millions, m, d))
        if not file.exists():
            X, y, _, _ = arrays(job.n, 1, d)
            table = pa.table({**{f"x{j}": np.ascontiguousarray(X[:, j]) for j in range(d)}, "y": y})
            pq.write_table(table, file, row_group_size=250_000, compression="none", use_dictionary=False)
        X_val, y_val = arrays(1, m, d)[2:]

        def value(job: Job = job, file: Path = file, X_val: object = X_val, y_val: object = y_val) -> None:
            call(job, da.open_records(file, "y"), None, X_val, y_val)

        found.append((job, stopwatch(value, repeats=2)))
    return found


def transferred() -> int:
    """Bytes that this machine has sent to itself."""
    lines = Path("/proc/net/dev").read_text().splitlines()
    return int(next(line for line in lines if line.strip().startswith("lo:")).split()[1])


def on_cluster(costs: dict[str, sizing.Cost], report: Report) -> None:
    """What a cluster of two processes on this machine takes; features and answers go through its scheduler."""
    from dask.distributed import Client, LocalCluster

    with (
        LocalCluster(n_workers=2, threads_per_worker=1, memory_limit=0, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        array = np.ones(16 * MILLION)

        def scatter() -> None:
            client.cancel(client.scatter([array], broadcast=True, hash=False))

        def answers() -> None:
            total = np.zeros(2 * MILLION)
            for future in client.map(lambda n, _: np.ones(n), [2 * MILLION] * 16, range(16), pure=False):
                total += future.result()

        net = sizing.Network(
            sizing.copies_in_turn(2) * array.nbytes / stopwatch(scatter, 3),
            16 * 2 * MILLION * 8 / stopwatch(answers, 3),
        )
        report("copy_rate", "Dask, two processes on this machine: copies of features, bytes per second", net.copy, "/s")
        report("back_rate", "  answers fetched and added up, bytes per second", net.back, "/s")
        efficiency = 1.0
        for at, size in enumerate(ON_CLUSTER):
            job = job_of("knn_shapley", size)
            before = transferred()
            found = timed(job, 1, client=client)
            moved = transferred() - before
            cost = costs[job.method]
            expected = sizing.cluster_seconds(job, cost, 2, MEMORY, net, efficiency, apart=False)
            if at == 0:
                work = expected - sizing.cluster_seconds(job, cost, 2, MEMORY, net, np.inf, apart=False)
                efficiency = work / (found - expected + work)
                report("workers_efficiency", "  share of the workers' time that was of use", efficiency)
            else:
                compare("workers", job, "two workers", expected, found, "s", report)
            compare("sent", job, "two workers: sent", sizing.transferred_bytes(job, 2), moved, "bytes", report)


def compare(where: str, job: Job, what: str, predicted: float, found: float, unit: str, report: Report) -> None:
    name = f"{where}_{job.method}_{job.n}_{job.m}_{job.d}"
    report(name, f"{job.method}, {job.n:,} × {job.m:,} × {job.d}, {what}", found, unit)
    ratio = predicted / found
    report(f"{name}_predicted", "  predicted / measured", ratio, "×")
    report(f"{name}_off", "    which is off by a factor of", max(ratio, 1 / ratio), "×", OFF, at_least=False)


def run(report: Report) -> None:
    """Measure, predict, measure what was predicted."""

    def tell(where: str, what: str, cost: sizing.Cost) -> None:
        for name, value in asdict(cost).items():
            report(f"{where}_{name}", f"{what}: {name.replace('_', ' ')}", value, "ns")

    costs = {method: measure(method) for method in METHODS}
    for method, cost in costs.items():
        tell(method, method, cost)
    for method, cost in costs.items():
        for size in CHECKED:
            job = job_of(method, size)
            memory = MEMORY if job.n < 16 * MILLION else 8 * GIB
            found = timed(job, 2, memory=memory)
            compare("core", job, "one core", sizing.seconds(job, cost, 1, memory), found, "s", report)
    job = Job("knn_shapley", MILLION, 1000)
    both = timed(job, 2, n_jobs=CORES)
    efficiency = sizing.seconds(job, costs["knn_shapley"], CORES, MEMORY) / both
    report("efficiency", f"knn_shapley, {CORES} cores: share of their time that was of use", efficiency)
    job = Job("knn_shapley", 3 * MILLION, 200)
    expected = sizing.seconds(job, costs["knn_shapley"], CORES, MEMORY, efficiency)
    compare("cores", job, f"{CORES} cores", expected, timed(job, 2, n_jobs=CORES), "s", report)
    for method in METHODS:
        job, threads = Job(method, 4 * MILLION, 64), 2
        code = PEAK.format(
            here=str(Path(__file__).parent),
            job=json.dumps(astuple(job)),
            threads=threads,
            memory=MEMORY,
        )
        asked = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
        used, rows_a_block = sizing.plan(job, threads, MEMORY)
        blocks = used * (sizing.fixed_bytes(job) + rows_a_block * sizing.row_bytes(job))
        expected = sizing.features_bytes(job) + blocks
        compare("memory", job, "two threads: memory above the arrays", expected, float(asked.stdout), "bytes", report)
    with tempfile.TemporaryDirectory() as folder:
        for method in METHODS[1:]:
            measured = in_files(Path(folder), IN_FILES, method)
            cost = sizing.fitted([(sizing.counts_in_files(job, sizing.passes(job)), s) for job, s in measured])
            tell(f"{method}_files", f"{method} of records in files, {CORES} cores", cost)
            for job, found in in_files(Path(folder), FILES_CHECKED, method):
                expected = cost.of(sizing.counts_in_files(job, sizing.passes(job)))
                compare("files", job, f"in files, {CORES} cores", expected, found, "s", report)
    on_cluster(costs, report)
