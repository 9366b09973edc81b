"""Training records that do not fit into memory: 50 million × 16 float32 in Parquet files, 200 validation points.

The files (3.2 GB) are written into a temporary folder, valued on all cores in a fresh process for each method, which
tells its peak of resident memory, and removed. ``DATASSAY_BENCH_RECORDS`` sets another number of records.
"""

import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from common import Report

FEATURES, POINTS, FILES, GROUP = 16, 200, 20, 250_000
LIMIT = 2048  # MiB
CALL = """
import json, resource, sys, time
import numpy as np
import datassay as da
folder, call = sys.argv[1:]
rng = np.random.default_rng(1)
X_val, y_val = rng.normal(size=({points}, {features})).astype(np.float32), rng.integers(0, 2, {points})
small = da.open_records(folder + "/small.parquet", "y")
calls = {{
    "open_records": lambda records: None,
    "tknn_shapley": lambda records: da.tknn_shapley(records, X_val=X_val, y_val=y_val, tau=-0.5),
    "knn_banzhaf": lambda records: da.knn_banzhaf(records, X_val=X_val, y_val=y_val, k=5),
    "knn_shapley": lambda records: da.knn_shapley(records, X_val=X_val, y_val=y_val, k=5, tolerance=0.001),
}}
calls[call](small)  # compiles
start = time.perf_counter()
records = da.open_records(folder + "/part-*.parquet", "y")
opened, before = time.perf_counter(), time.process_time()
values = calls[call](records)
seconds, worked = time.perf_counter() - opened, time.process_time() - before
peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
told = {{"opened": opened - start, "seconds": seconds, "worked": worked, "peak": peak}}
if values is not None:
    told["total"] = float(values.values.sum())
    told["valued"] = int(np.count_nonzero(values.values))
print(json.dumps(told))
"""


def write(folder: Path, n: int) -> float:
    """Gaussian features, labels that depend on them; returns bytes on disk."""
    rng = np.random.default_rng(0)
    schema = pa.schema([*((f"x{j}", pa.float32()) for j in range(FEATURES)), ("y", pa.int8())])

    def table(rows: int) -> pa.Table:
        X = rng.standard_normal((FEATURES, rows), np.float32)
        y = (X[0] + rng.standard_normal(rows, np.float32) > 0).astype(np.int8)
        return pa.table([*map(pa.array, X), pa.array(y)], schema=schema)

    pq.write_table(table(5000), folder / "small.parquet")
    size = 0
    for part in range(FILES):
        rows = n * (part + 1) // FILES - n * part // FILES
        file = folder / f"part-{part:03d}.parquet"
        with pq.ParquetWriter(file, schema, compression="none", use_dictionary=False) as writer:
            for start in range(0, rows, GROUP):
                writer.write_table(table(min(GROUP, rows - start)))
        size += file.stat().st_size
    return float(size)


def run(report: Report) -> None:
    """Write, time and print."""
    n = int(os.environ.get("DATASSAY_BENCH_RECORDS", "50000000"))
    free = shutil.disk_usage(tempfile.gettempdir()).free
    if free < 2 * 68 * n:
        raise SystemExit(f"{free / 2**30:.0f} GiB of disk are free, and the files need {68 * n / 2**30:.0f}")
    with tempfile.TemporaryDirectory() as folder:
        start = time.perf_counter()
        size = write(Path(folder), n)
        report("written_size", f"{n:,} × {FEATURES} float32 written as {FILES} Parquet files", size / 2**30, "GiB")
        report("written_seconds", "  time to write them", time.perf_counter() - start, "s")
        code = CALL.format(points=POINTS, features=FEATURES)
        for call, what in (
            ("open_records", "opened, their labels read"),
            ("tknn_shapley", f"tknn_shapley, {POINTS} validation points, tau = −0.5, exact"),
            ("knn_banzhaf", f"knn_banzhaf, {POINTS} validation points, k = 5, exact"),
            ("knn_shapley", f"knn_shapley, {POINTS} validation points, k = 5, within 0.001"),
        ):
            asked = subprocess.run(
                [sys.executable, "-c", code, folder, call], capture_output=True, text=True, check=True
            )
            found = json.loads(asked.stdout)
            report(f"{call}_seconds", what, found["opened" if call == "open_records" else "seconds"], "s")
            limit = None if call in ("open_records", "knn_shapley") else float(LIMIT)
            report(f"{call}_peak", "  peak resident memory", found["peak"], "MiB", limit, at_least=False)
            if "valued" in found:
                report(f"{call}_worked", "  processor time, all threads", found["worked"], "s")
                report(f"{call}_rate", "  pairs per second", n * POINTS / found["seconds"], "/s")
                report(f"{call}_valued", "  records with a value other than 0", found["valued"], "")
