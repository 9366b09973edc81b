"""Uniqueness Shapley: against one GROUP BY of all columns by DuckDB, and how the cost grows.

The whole answer (every person's value of every attribute) is timed from typed columns in memory; so is the yardstick,
on the same columns as integers and, as users have them, with words for categories.
"""

import subprocess
import sys
from pathlib import Path

import duckdb
import numpy as np
import pyarrow as pa

import datassay as da
from common import Report, stopwatch
from datassay.data import Column, Table

COLUMNS = ["zip", "race", "party", "gender", "age"]
MEMORY = """
import datassay as da
def told(name):
    return next(int(line.split()[1]) for line in open("/proc/self/status") if line.startswith(name))
table = da.voters({n})
da.uniqueness_shapley(da.voters(1000))
open("/proc/self/clear_refs", "w").write("5")  # the peak so far is forgotten
before = told("VmRSS")
da.uniqueness_shapley(table)
print((told("VmHWM") - before) / 1024)
"""


def group_by(table: Table, words: bool) -> float:
    """Seconds that DuckDB takes to count the distinct rows, with its own storage of the columns."""
    arrays = {}
    for name in COLUMNS:
        column = table.columns[name]
        coded = pa.array(column.data)
        if words and column.categories is not None:
            arrays[name] = pa.DictionaryArray.from_arrays(coded, pa.array(column.categories.tolist()))
        else:
            arrays[name] = coded
    with duckdb.connect() as connection:
        connection.register("people", pa.table(arrays))
        connection.execute("CREATE TABLE stored AS SELECT * FROM people")
        listed = ", ".join(COLUMNS)
        return stopwatch(lambda: connection.sql(f"SELECT {listed}, count(*) FROM stored GROUP BY ALL").to_arrow_table())


def random_table(n: int, d: int, levels: int) -> Table:
    """Rows of independent attributes, rare values rarer."""
    rng = np.random.default_rng(0)
    names = np.array([f"v{v:02d}" for v in range(levels)])
    draw = lambda: np.minimum(rng.integers(0, levels, n), rng.integers(0, levels, n)).astype(np.int32)  # noqa: E731
    return Table({f"a{j}": Column("categorical", draw(), names) for j in range(d)}, np.arange(n))


def growth(report: Report) -> None:
    """Cost in distinct rows at five attributes and in attributes at fixed rows, with fitted exponents; a figure."""
    import matplotlib as mpl

    mpl.use("agg")
    from matplotlib import pyplot as plt

    sizes, seconds = [], []
    for n in (250_000, 500_000, 1_000_000, 2_000_000, 4_000_000):
        table = da.voters(n)
        found = da.uniqueness_shapley(table)
        sizes.append(len(found.sizes))
        seconds.append(stopwatch(lambda: da.uniqueness_shapley(table), 3))  # noqa: B023
    slope = float(np.polyfit(np.log(sizes), np.log(seconds), 1)[0])
    counts, times = [6, 8, 10, 12, 14, 16], []
    for d in counts:
        table = random_table(20_000, d, 3)
        distinct = len(da.uniqueness_shapley(table).sizes)
        times.append(stopwatch(lambda: da.uniqueness_shapley(table, n_jobs=1), 1) / distinct)  # noqa: B023
    factor = float(2 ** np.polyfit(counts, np.log2(times), 1)[0])
    report("exponent", "cost in distinct rows, 250,000 to 4,000,000 voters: exponent (1 is linear)", slope)
    report("factor", "cost of a distinct row with one attribute more, 6 to 16 attributes: factor", factor, "×")
    figure, (left, right) = plt.subplots(1, 2, figsize=(9, 3.6), layout="constrained")
    left.loglog(sizes, seconds, "o-", color="#4477aa")
    left.set_xlabel("distinct rows (5 attributes)")
    left.set_ylabel("seconds")
    left.set_title(f"exponent {slope:.2f}", loc="left")
    right.semilogy(counts, times, "o-", color="#4477aa")
    right.set_xlabel("attributes (20,000 rows, one thread)")
    right.set_ylabel("seconds for each distinct row")
    right.set_title(f"× {factor:.2f} for each attribute", loc="left")
    for ax in (left, right):
        ax.spines[["top", "right"]].set_visible(False)
    figure.savefig(Path(__file__).parents[1] / "docs" / "figures" / "uniqueness-cost.svg")


def run(report: Report) -> None:
    """Time and print."""
    n = 7_538_125
    table = da.voters(n)
    ours = stopwatch(lambda: da.uniqueness_shapley(table))
    report("voters_seconds", f"uniqueness_shapley, {n:,} simulated voters × 5", ours, "s")
    for words, what in ((False, "integers"), (True, "words")):
        yardstick = group_by(table, words)
        report(f"group_by_{what}_seconds", f"  one GROUP BY of the five columns in DuckDB, {what}", yardstick, "s")
        report(
            f"group_by_{what}_ratio", f"  time / that GROUP BY's, {what}", ours / yardstick, "×", 4.0, at_least=False
        )
    asked = subprocess.run([sys.executable, "-c", MEMORY.format(n=n)], capture_output=True, text=True, check=True)
    report("peak", "  peak memory above the table's", float(asked.stdout), "MiB")
    small = da.voters(253_563)
    report(
        "small_seconds",
        "uniqueness_shapley, 253,563 × 5",
        stopwatch(lambda: da.uniqueness_shapley(small)),
        "s",
        0.2,
        False,
    )
    growth(report)
