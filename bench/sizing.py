"""What a job takes: seconds, memory and network, from a few measured constants.

Bytes follow from what is held and sent. Seconds are a sum of counts (records, pairs, features read from memory), each
times a constant. ``bench_sizing`` fits the constants to some jobs and then times others, to see how far off the
model is; ``python bench/sizing.py`` prints the tables of docs/sizing.md.
"""

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from datassay.neighbors import group_size
from figures import known, load

METHODS = ("knn_shapley", "knn_banzhaf", "tknn_shapley")
MILLION = 1_000_000
GIB = 2**30


@dataclass(frozen=True)
class Job:
    """n training records in float32 against m validation points, with d features."""

    method: str
    n: int
    m: int = 1000
    d: int = 16

    @property
    def pairs(self) -> float:
        return float(self.n) * self.m

    @property
    def group(self) -> int:
        """Validation points that are valued by the same worker, one block after the other."""
        return group_size(self.m, self.d)

    @property
    def groups(self) -> int:
        """How many of these there are: more workers than that have nothing to do."""
        return -(-self.m // self.group)


# ------------------------------------------------------------------------------------------------------- bytes


def features_bytes(job: Job) -> float:
    """Training features in tiles, and labels as codes: a process holds them once, a worker is sent them."""
    return job.n * (4.0 * job.d + 1)


def answer_bytes(job: Job) -> float:
    """What comes back of a group: a number for every training record."""
    return 8.0 * job.n


def fixed_bytes(job: Job) -> float:
    """What a thread holds whatever its block: the group's sum, one that waits, the kernel's, buffers of the sort."""
    return (44.0 if job.method == "knn_shapley" else 24.0) * job.n


def row_bytes(job: Job) -> float:
    """What a thread holds for each validation point of its block: distances, and ranks or marks."""
    return {"knn_shapley": 8.0, "knn_banzhaf": 4.0, "tknn_shapley": 5.0}[job.method] * job.n


def plan(job: Job, threads: int, memory: float) -> tuple[int, int]:
    """How many threads work within this memory for blocks, and the rows of a block; (0, 0): not even one fits."""
    threads = min(threads, job.groups, int(memory // (fixed_bytes(job) + row_bytes(job))))
    if threads < 1:
        return 0, 0
    return threads, min(job.group, int((memory / threads - fixed_bytes(job)) // row_bytes(job)))


# ------------------------------------------------------------------------------------------------------- seconds


@dataclass(frozen=True)
class Cost:
    """Nanoseconds on one core, each for what it is the cost of.

    ``doubling``: of a pair, for every doubling of the records beyond a million, as less and less of what is
    sorted lies in caches; ``reading``: of a feature of a record that comes from memory, once for each block.
    """

    record: float
    record_feature: float
    pair: float
    pair_feature: float
    doubling: float = 0.0
    reading: float = 0.0

    def of(self, counts: Sequence[float]) -> float:
        """Seconds for so many of each."""
        rates = (self.record, self.record_feature, self.pair, self.pair_feature, self.doubling, self.reading)
        return 1e-9 * sum(rate * count for rate, count in zip(rates, counts, strict=True))


def counts(job: Job, rows: int) -> tuple[float, ...]:
    """How many there are of what costs something, in the order of the fields of Cost."""
    blocks = job.m // job.group * -(-job.group // rows) + -(-(job.m % job.group) // rows)
    doublings = max(0.0, math.log2(job.n / MILLION))
    values = float(job.n) * job.d
    return (job.n, values, job.pairs, job.pairs * job.d, job.pairs * doublings, blocks * values)


def counts_in_files(job: Job, passes: int) -> tuple[float, ...]:
    """The same of records that are read in blocks: features come from files, and distances are found, in every pass."""
    values, pairs = passes * float(job.n) * job.d, passes * job.pairs
    return (job.n, values, pairs, pairs * job.d, 0.0, 0.0)


def passes(job: Job, memory: float = 2**29) -> int:
    """TKNN counts before it values: it reads files twice, unless a bit for every pair fits into half of the memory."""
    return 2 if job.method == "tknn_shapley" and job.n * -(-job.m // 8) > memory // 2 else 1


def fitted(measured: Sequence[tuple[Sequence[float], float]]) -> Cost:
    """The constants, none negative, by which counts explain seconds with the least relative error."""
    from scipy.optimize import nnls

    rows = np.array([np.asarray(these) / seconds for these, seconds in measured]) * 1e-9
    scale = np.maximum(rows.max(axis=0), 1e-300)
    return Cost(*(nnls(rows / scale, np.ones(len(rows)))[0] / scale).tolist())


def once(job: Job, cost: Cost) -> float:
    """What is done before and after the pairs, by one core."""
    return cost.of((*counts(job, 1)[:2], 0, 0, 0, 0))


def seconds(job: Job, cost: Cost, threads: int, memory: float, efficiency: float = 1.0) -> float:
    """On one machine, with so much memory for blocks; ∞ where not even one thread fits."""
    used, rows = plan(job, threads, memory)
    if used == 0:
        return math.inf
    work = cost.of(counts(job, rows)) - once(job, cost)
    share = -(-job.groups // used) / job.groups  # some wait while the last groups are done
    return once(job, cost) + work * share / (efficiency if used > 1 else 1.0)


@dataclass(frozen=True)
class Network:
    """Bytes per second: of one copy of the training data, and of answers on their way back, added up here."""

    copy: float
    back: float


def copies_in_turn(workers: int) -> int:
    """Copies made one after the other: to the scheduler, to a worker, and by all who have it to two others each."""
    return 2 + min(workers - 1, 2 * math.ceil(math.log(workers, 3) - 1e-9))


def transferred_bytes(job: Job, workers: int) -> float:
    """What goes over the network in all: answers, too, pass through the scheduler."""
    return (workers + 1) * features_bytes(job) + 2 * job.groups * answer_bytes(job)


def cluster_seconds(
    job: Job, cost: Cost, workers: int, memory: float, net: Network, efficiency: float = 1.0, apart: bool = True
) -> float:
    """Everybody is sent the features; then groups are worked on while answers come in: the slower of the two.

    If the workers are not ``apart`` from the scheduler and the caller, all share their cores and times add up.
    """
    rows = plan(job, 1, memory)[1]
    if rows == 0:
        return math.inf
    work = (cost.of(counts(job, rows)) - once(job, cost)) * -(-job.groups // workers) / job.groups / efficiency
    answers = job.groups * answer_bytes(job) / net.back
    sent = features_bytes(job) * copies_in_turn(workers) / net.copy
    return once(job, cost) + sent + (max(work, answers) if apart else work + answers)


# ------------------------------------------------------------------------ what bench_sizing measured, and what follows

MEASURED = {name: figure.value for name, figure in known().items() if name.startswith(("sizing.", "gpu."))}


def measured_cost(name: str) -> Cost:
    """The constants of a method, as measured."""
    return Cost(*(MEASURED[f"sizing.{name}_{field.name}"] for field in fields(Cost)))


COSTS = {method: measured_cost(method) for method in METHODS}
IN_FILES = {method: measured_cost(f"{method}_files") for method in METHODS[1:]}
EFFICIENCY = MEASURED["sizing.efficiency"]
NETWORK = Network(copy=1.25e9, back=1e9)  # ten gigabits a second, or as fast as answers are added up
# Seconds on one graphics card, from the call to the result in memory, features on the card: measured, not modelled.
GPU = {method: {n: MEASURED[f"gpu.{method}_{n}"] for n in (10**6, 10**8)} for method in METHODS}

CORES, WORKERS = 32, 100
ROOM = {"core": 128 * GIB, "machine": 256 * GIB, "worker": 128 * GIB}
RECORDS = (10**6, 10**8, 10**9)


def duration(seconds: float) -> str:
    """Two digits, in the unit that suits."""
    if math.isinf(seconds):
        return "does not fit"
    for unit, size in (("days", 86400.0), ("h", 3600.0), ("min", 60.0)):
        if seconds >= 1.5 * size:
            return f"{float(f'{seconds / size:.2g}'):g} {unit}"
    return f"{float(f'{seconds:.2g}'):g} s"


def amount(number: float) -> str:
    """Bytes, in the unit that suits."""
    for unit, size in (("GB", 1e9), ("MB", 1e6)):
        if number >= size:
            return f"{float(f'{number / size:.3g}'):g} {unit}"
    return f"{number:g} bytes"


def written(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in Markdown."""
    return "\n".join("| " + " | ".join(row) + " |" for row in (head, ["---"] * len(head), *rows))


def constants_table() -> str:
    """Nanoseconds on one core, and of records in files on two."""
    rows = []
    for where, costs in (("", COSTS), (", in files, 2 cores", IN_FILES)):
        for method, cost in costs.items():
            of_files = ["", ""] if where else [f"{cost.doubling:.3g}", f"{cost.reading:.3g}"]
            rows.append([
                f"`{method}`{where}", f"{cost.record:.3g}", f"{cost.record_feature:.3g}", f"{cost.pair:.3g}",
                f"{cost.pair_feature:.3g}", *of_files,
            ])  # fmt: skip
    head = ["ns", "a record", "its feature", "a pair", "its feature", "a pair, each doubling beyond 10⁶ records",
            "a record's feature, each block"]  # fmt: skip
    return written(head, rows)


def time_table() -> str:
    """How long 1,000 validation points take."""
    rows = []
    for method in METHODS:
        for n in RECORDS:
            job, cost = Job(method, n), COSTS[method]
            spare = {who: room - features_bytes(job) for who, room in ROOM.items()}
            gpu = GPU[method].get(n)
            files = None if method not in IN_FILES else IN_FILES[method].of(counts_in_files(job, passes(job)))
            rows.append([
                f"`{method}`", f"10{'⁶⁸⁹'[RECORDS.index(n)]}",
                duration(seconds(job, cost, 1, spare["core"])),
                duration(seconds(job, cost, CORES, spare["machine"], EFFICIENCY)),
                duration(cluster_seconds(job, cost, WORKERS, spare["worker"], NETWORK, EFFICIENCY)),
                "not run" if gpu is None else duration(gpu),
                "cannot" if files is None else duration(files),
            ])  # fmt: skip
    head = ["method", "records", "1 core", f"1 machine, {CORES} cores", f"{WORKERS} workers", "1 GPU", "files, 2 cores"]
    return written(head, rows)


def memory_table() -> str:
    """What is held and sent."""
    rows = []
    for method in METHODS:
        for n in RECORDS:
            job = Job(method, n)
            least = features_bytes(job) + fixed_bytes(job) + row_bytes(job)
            rows.append([
                f"`{method}`", f"10{'⁶⁸⁹'[RECORDS.index(n)]}", amount(features_bytes(job)), amount(fixed_bytes(job)),
                amount(row_bytes(job)), amount(least), amount(answer_bytes(job)),
                amount(job.groups * answer_bytes(job)),
            ])  # fmt: skip
    head = ["method", "records", "training data, sent to a worker once", "a thread", "and each row of its block",
            "least memory of a worker", "answer to a block", "all answers"]  # fmt: skip
    return written(head, rows)


def checks_table() -> str:
    """Jobs other than those that constants were fitted to: what they took, and what was predicted."""
    suite = load("sizing")
    found = {figure.name: figure for figure in suite.figures} if suite else {}
    rows = []
    for name, figure in found.items():
        if f"{name}_predicted" in found:
            took = duration(figure.value) if figure.unit == "s" else amount(figure.value)
            method, _, job = figure.what.partition(", ")
            rows.append([f"`{method}`, {job}", took, f"{found[f'{name}_predicted'].value:.2f}"])
    return written(["job", "measured", "predicted / measured"], rows)


if __name__ == "__main__":
    print(constants_table(), checks_table(), time_table(), memory_table(), sep="\n\n")
