"""Shapley values of the attributes over the distinct rows: all sets of attributes, or random orders of them.

Exactly (Mathematics §8): φ_j = Σ_{u∌j} w(|u|) (val(u+j) − val(u)) with w(s) = s! (d−s−1)!/d!, val(u) = log₂(W/N(u)).
Tasks depend on d alone and are added up in order: threads do not change a bit. By sampling: one draw is a random order
and its d rotations, in which every attribute takes every place once; the spread of draws gives Student's interval.
"""

import math
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Final

import numpy as np
from numpy.typing import NDArray

from datassay._crew import Workers
from datassay._errors import UnavailableError, UsageError
from datassay._run import Schedule
from datassay._work import Bar, chunks, in_order, thread_count
from datassay.identity.counting import Cells
from datassay.results import Floats

MOST_EXACT: Final = 20
FEWEST_DRAWS: Final = 16


def set_weights(d: int, key: bool = False) -> Floats:
    """w(s) for s = 0 … d−1 others: Shapley's, or with a database key among the players formula (11)."""
    players = d + key
    return np.array([1.0 / (players * math.comb(players - 1, s)) for s in range(d)])


def _branch_sums(weights: Floats) -> tuple[Floats, Floats, Floats]:
    """What ``kernels.walk`` adds for a set of s attributes and the 2^R sets of its branch: own, later, before."""
    d = len(weights)
    before_one = np.append(weights, 0.0)
    own_one = before_one + np.append(0.0, weights)
    own_one[0] = 0.0
    own, later, before = np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1)), np.zeros((d + 1, d + 1))
    for s in range(d + 1):
        for R in range(d + 1 - s):
            sizes = range(R + 1)
            own[s, R] = math.fsum(math.comb(R, t) * own_one[s + t] for t in sizes)
            before[s, R] = math.fsum(math.comb(R, t) * before_one[s + t] for t in sizes)
            later[s, R] = math.fsum(math.comb(R - 1, t - 1) * own_one[s + t] for t in sizes if t > 0)
    return own, later, before


def _fixed(d: int) -> int:
    """How many attributes a task decides on: 2^this tasks, however many threads there are."""
    return max(0, min(d - 1, 2)) if d < 10 else 4


@dataclass(frozen=True, eq=False)
class SetTable:
    """Of every set of attributes that vary: mean val (for everyone: the entropy), groups, unique share, smallest group.

    ``members[b]`` is the column of bit b; a column that is not among them is constant and never matters.
    """

    members: tuple[int, ...]
    entropy: Floats
    groups: Floats
    unique: Floats
    smallest: Floats

    def means(self, n_columns: int, key: bool = False) -> Floats:
        """Shapley value of each column on average: that of the game of the entropies (Proposition 3)."""
        found = np.zeros(n_columns)
        found[list(self.members)] = np.maximum(semivalues(self.entropy, set_weights(len(self.members), key)), 0.0)
        return found

    def interactions(self, n_columns: int) -> Floats:
        """Shapley interaction index of each pair of columns, on average."""
        found = np.zeros((n_columns, n_columns))
        at = np.array(self.members, np.intp)
        found[at[:, None], at] = interactions_of_sets(self.entropy, len(at))
        return found


def _active(cells: Cells) -> list[int]:
    """Attributes that vary (one that is constant adds nothing), the most telling first: rows are then soon alone."""
    return sorted(np.flatnonzero(cells.levels > 1).tolist(), key=lambda j: (-cells.entropies[j], j))


def exact_bytes(n_cells: int, d: int, threads: int, wanted: int | None = None) -> int:
    """Memory of the exact walk at its peak, where values of so many cells are ``wanted`` (all, if left out)."""
    wanted, threads = n_cells if wanted is None else wanted, min(threads, 1 << _fixed(d))
    depth = d - _fixed(d) + 1
    projected = 0 if wanted == n_cells else 8 * d + 40  # else in the place of what values need at another time
    walked = threads * (8 * depth + 20 + 8 + 4 + 32 + projected) + 4 * d
    valued = threads * (12 * depth + 16 + 16 * (d + 1)) + 8 * (d + 1) + 16 * (d + 1)
    return n_cells * walked + wanted * valued + (1 << d) * 2 * 4 * 8


def exact_seconds(n_cells: int, d: int) -> float:
    """Up to how long the exact walk takes one core, about: less where most rows are soon alone."""
    return 2.5e-8 * n_cells * 1.86**d


def order_seconds(n_cells: int, wanted: int) -> float:
    """About how long a core takes for a random order of the attributes."""
    return 6e-8 * n_cells + 6e-8 * wanted


def sampled_bytes(n_cells: int, d: int, threads: int, wanted: int | None = None) -> int:
    """Memory of sampling at its peak: the draws of the threads and those waiting, the running mean and spread."""
    valued = threads * (2 * 8 * d + 8 * d // 8) + 10 * 8 * d
    return n_cells * (threads * 80 + 4 * d) + (n_cells if wanted is None else wanted) * valued


def _workers_within(schedule: Schedule, what: str, needed: Callable[[int], int]) -> Workers:
    """As many threads as memory allows; an error that says what one needs."""
    memory, threads = schedule.memory, thread_count(schedule.n_jobs)
    while threads > 1 and needed(threads) > memory:
        threads -= 1
    if needed(threads) > memory:
        raise UnavailableError(
            f"{what} needs about {needed(1) / 2**20:,.0f} MiB and memory allows {memory / 2**20:,.0f} MiB; allow more, "
            "coarsen an attribute or leave one out"
        )
    return schedule.workers().at_most(threads)


def _logarithms(cells: Cells) -> Floats:
    """A table of logarithms for the sizes of groups, as far as groups are small: most are."""
    from datassay.identity import kernels

    return np.asarray(kernels.logarithms(int(min(cells.weights.sum() + 1, 2**16))))


def exact(
    cells: Cells, mass: Floats, schedule: Schedule, *, wanted: int = 0, key: bool = False
) -> tuple[Floats, SetTable]:
    """φ of the ``wanted`` first cells (× attributes), and the table of all sets, with means by mass.

    Cells that are wanted must have mass. If others have none, walks are the shorter: groups without mass end them.
    """
    from datassay.identity import kernels

    n_columns, n = cells.codes.shape
    active = _active(cells)
    d = len(active)
    if d > MOST_EXACT:
        raise UsageError(f"exact values of {d} attributes would visit 2^{d} sets; {MOST_EXACT} is the most")
    fixed = _fixed(d)
    what = f"{n:,} distinct rows and {d} attributes: the exact calculation"
    by = _workers_within(schedule, what, lambda threads: exact_bytes(n, d, threads, wanted))
    own, later, before = _branch_sums(set_weights(d, key))
    names = tuple(cells.names[j] for j in active)
    everything = Cells(tuple(cells.columns[j] for j in active), cells.codes[active], names, cells.weights)
    own_mass = mass is cells.weights
    logs = _logarithms(cells)

    def task(patterns: range) -> tuple[range, list[int], NDArray[np.int32] | None, Floats, Floats, Floats]:
        inside = [j for j in range(fixed) if (patterns.start >> j) & 1]
        chosen = [*inside, *range(fixed, d)]
        some, where, many = everything, None, wanted
        given = np.empty(0) if own_mass else mass
        if len(chosen) < d:
            some, where = everything.project(chosen)
            if not own_mass:
                given = np.bincount(where, mass, minlength=len(some.weights)).astype(np.float64)
            where, many = where[:wanted], len(some.weights) if wanted == n else 0
            if 0 < wanted < n:
                some, given, where, many = bring_forward(some, given, where)
        phi, base = np.zeros((len(chosen), many)), np.zeros(many)
        # Of every set the sum of val, groups, unique weight, smallest size: of those in groups, and of those alone.
        here, alone = np.tile([0.0, 0.0, 0.0, np.inf], (2, 2 ** (d - fixed), 1))
        kernels.walk(
            some.codes, some.levels, some.weights, given, logs,
            len(inside), own, later, before, phi, base, here, alone,
        )  # fmt: skip
        return patterns, chosen, where, phi, base, _handed_down(here, alone)

    phi, base = np.zeros((d, wanted)), np.zeros(wanted)
    statistics = np.empty((2 ** (d - fixed), 2**fixed, 4))
    tasks = chunks(2**fixed, 1)
    with Bar(schedule.progress, len(tasks), "parts") as report:
        for pattern, chosen, where, more_phi, more_base, said in in_order(task, tasks, by, report):
            statistics[:, pattern.start] = said
            if wanted and where is None:
                phi += more_phi
                base += more_base
            elif wanted:
                kernels.spread(more_base, where, base)
                for q, j in enumerate(chosen):
                    kernels.spread(more_phi[q], where, phi[j])
    found = np.zeros((wanted, n_columns))
    if wanted:
        found[:, active] = np.maximum(phi - base, 0.0).T
    entropy, groups, unique, smallest = statistics.reshape(-1, 4).T
    entropy, unique = np.maximum(entropy / mass.sum(), 0.0), unique / cells.weights.sum()
    return found, SetTable(tuple(active), entropy, groups, unique, smallest)


def bring_forward(cells: Cells, mass: Floats, where: NDArray[np.int32]) -> tuple[Cells, Floats, NDArray[np.int32], int]:
    """The cells with those first that are anybody's (``where``): cells, mass, whose is which, their number."""
    theirs = np.zeros(len(mass), bool)
    theirs[where] = True
    order = np.argsort(~theirs, kind="stable")
    rank = np.empty(len(order), np.int32)
    rank[order] = np.arange(len(order))
    moved = replace(cells, codes=np.ascontiguousarray(cells.codes[:, order]), weights=cells.weights[order])
    return moved, mass[order], rank[where], int(theirs.sum())


def _handed_down(here: Floats, alone: Floats) -> Floats:
    """Add to each set what rows alone in a set before it in its branch put down there."""
    step = 1
    while step < len(alone):
        parents, children = alone[:step], alone[step : 2 * step]
        children[:, :3] += parents[:, :3]
        np.minimum(children[:, 3], parents[:, 3], out=children[:, 3])
        step *= 2
    total = here + alone
    total[:, 3] = np.minimum(here[:, 3], alone[:, 3])
    return total


@dataclass(frozen=True)
class RandomOrders:
    """Random orders of the attributes: how many, or until when, and of what intervals."""

    permutations: int | None = None
    tolerance: float | None = None
    seconds: float | None = None
    seed: int = 0
    confidence: float = 0.95


@dataclass(frozen=True, eq=False)
class Sampled:
    """Estimates by random orders: φ of every cell, and its mean; half-widths of their intervals."""

    values: Floats
    half: Floats
    mean: Floats
    mean_half: Floats
    permutations: int


def sample(
    cells: Cells, asked: RandomOrders, schedule: Schedule, *, mass: Floats | None = None, wanted: int | None = None
) -> Sampled:
    """Estimate φ from random orders: as many as asked for, or until the means are known to the tolerance (in bits).

    Of all cells, or of the ``wanted`` first ones; means are by ``mass`` (by weight, if left out).
    """
    from datassay.identity import kernels

    n_columns, n = cells.codes.shape
    active = _active(cells)
    d = len(active)
    if d == 0:
        nothing = np.zeros((n, n_columns))
        return Sampled(nothing, nothing, np.zeros(n_columns), np.zeros(n_columns), 0)
    codes, levels = np.ascontiguousarray(cells.codes[active]), cells.levels[active]
    what = f"{n:,} distinct rows and {d} attributes: sampling"
    by = _workers_within(schedule, what, lambda threads: sampled_bytes(n, d, threads, wanted))
    logs = _logarithms(cells)
    mass = cells.weights if mass is None else mass
    wanted = n if wanted is None else wanted
    share = (mass / mass.sum())[:wanted]
    started = time.monotonic()

    def draw(numbers: range) -> Floats:
        phi = np.zeros((wanted, d))
        for number in numbers:
            order = np.random.default_rng([asked.seed, number]).permutation(d)
            orders = np.array([np.roll(order, shift) for shift in range(d)], np.int64)
            kernels.reveal(codes, levels, cells.weights, logs, orders, phi)
        phi /= d
        return phi

    centre, spread = np.zeros((wanted, d)), np.zeros((wanted, d))
    means: list[Floats] = []

    def spread_of_means() -> Floats:
        return half_width(np.var(means, axis=0, ddof=1), len(means), asked.confidence)

    def late() -> bool:
        enough = len(means) >= FEWEST_DRAWS
        return asked.seconds is not None and time.monotonic() - started > asked.seconds and enough

    goal = max(FEWEST_DRAWS, -(-(asked.permutations or 0) // d))
    bar = Bar(schedule.progress, goal * d, "orders")
    with bar as report:
        while len(means) < goal:
            numbers = chunks(goal, 1)[len(means) :]
            for phi in in_order(draw, numbers, by, lambda more: report(more * d)):
                means.append(share @ phi)
                change = phi - centre
                centre += change / len(means)
                phi -= centre
                change *= phi
                spread += change
                if late():
                    break
            known = asked.tolerance is not None and spread_of_means().max() <= asked.tolerance
            if asked.permutations is None and not known and not late():
                goal = 2 * len(means)
                bar.extend(goal * d)
            else:
                goal = len(means)
    values, halves = np.zeros((wanted, n_columns)), np.zeros((wanted, n_columns))
    mean, mean_half = np.zeros(n_columns), np.zeros(n_columns)
    values[:, active] = np.maximum(centre, 0.0)
    halves[:, active] = half_width(np.maximum(spread, 0.0) / (len(means) - 1), len(means), asked.confidence)
    mean[active], mean_half[active] = np.mean(means, axis=0), spread_of_means()
    return Sampled(values, halves, mean, mean_half, len(means) * d)


def half_width(variance: Floats, count: int, confidence: float) -> Floats:
    """Half the width of Student's interval of a mean of ``count`` draws that have this (sample) variance."""
    from scipy.special import stdtrit

    return np.asarray(stdtrit(count - 1, 0.5 + confidence / 2) * np.sqrt(variance / count))


def semivalues(worth: Floats, weights: Floats) -> Floats:
    """Σ_u w(|u|) (v(u+j) − v(u)) of games given by the worth of every set, by bit mask (the last axis)."""
    d = len(weights)
    sets = np.arange(2**d)
    found = np.empty((*worth.shape[:-1], d))
    for j in range(d):
        u = sets[(sets >> j) & 1 == 0]
        found[..., j] = (worth[..., u | (1 << j)] - worth[..., u]) @ weights[np.bitwise_count(u)]
    return found


def interactions_of_sets(worth: Floats, d: int) -> Floats:
    """Shapley interaction indices (Grabisch & Roubens 1999): Σ_u |u|!(d−|u|−2)!/(d−1)! · Δ_ij(u), a matrix."""
    found = np.zeros((d, d))
    sets = np.arange(2**d)
    weights = [1.0 / ((d - 1) * math.comb(d - 2, s)) for s in range(d - 1)]
    for i in range(d):
        for j in range(i):
            u = sets[((sets >> i) | (sets >> j)) & 1 == 0]
            more = worth[u | (1 << i) | (1 << j)] - worth[u | (1 << i)] - worth[u | (1 << j)] + worth[u]
            found[i, j] = found[j, i] = (np.array(weights)[np.bitwise_count(u)] * more).sum()
    return found
