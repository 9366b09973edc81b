"""TKNN-Shapley values of records that are read in blocks (Mathematics §3).

What a record is worth depends on how many neighbours each validation point has among *all* records, so there are two
passes: one to count, one to value. If a bit for each pair fits into memory, who is near whom is remembered, and the
files are read once.
"""

import threading

import numpy as np
from numpy.typing import NDArray

from datassay._work import Bar, chunks, in_order, thread_count
from datassay.neighbors import RecordSpace, group_size, kept_pass, mark_bytes, visit_within
from datassay.value.game import Game

AT_ONCE = 2**16


def streamed_threshold_total(game: Game, tau: float) -> NDArray[np.float64]:
    """Weighted sums over validation points, with the bits of the sums over records in memory."""
    from datassay.value import kernels

    space, run = game.space, game.keeping("tknn_shapley", {"tau": tau}).run
    assert isinstance(space, RecordSpace)
    codes, targets, n, m = game.inputs.codes, game.inputs.codes_val, space.n_train, space.n_validation
    remembers = run.checkpoint is None and mark_bytes(m) * n <= run.memory // 2
    for_blocks = run.memory - run.memory // 2
    kept = np.empty((mark_bytes(m), n), np.uint8) if remembers else None
    near, matching = np.zeros(m, np.int64), np.zeros(m, np.int64)
    lock = threading.Lock()

    def count(start: int, marks: NDArray[np.uint8]) -> None:
        stop = start + marks.shape[1]
        if kept is not None:
            kept[:, start:stop] = marks
        here, alike = np.zeros(m, np.int64), np.zeros(m, np.int64)
        kernels.count_marked(marks, codes[start:stop], targets, here, alike)
        with lock:  # whole numbers: their order does not matter
            near[:] += here
            matching[:] += alike

    with Bar(run.progress, n if remembers else 2 * n, "records") as report:
        with kept_pass(run, "sum", lambda first, stop: (near, matching)) as done:
            first = 0
            for blocks, (these, alike) in done.before():
                near[:], matching[:], first = these, alike, blocks.stop
                report(first)
            visit_within(space, tau, count, run.n_jobs, for_blocks, report, first, done)
        worth = np.empty((m, 2))
        kernels.write_threshold_worth(near, matching, game.weights, _harmonic_at(near), game.n_classes, worth)
        group = np.arange(m) // group_size(m, space.n_features)
        total = np.empty(n)

        def add(start: int, marks: NDArray[np.uint8]) -> None:
            stop = start + marks.shape[1]
            kernels.add_marked(marks, codes[start:stop], targets, worth, group, total[start:stop])

        if kept is None:
            with kept_pass(run, "rows", lambda first, stop: (total[first:stop],)) as done:
                first = 0
                for blocks, (part,) in done.before():
                    total[blocks.start : blocks.stop], first = part, blocks.stop
                    report(len(blocks))
                visit_within(space, tau, add, run.n_jobs, for_blocks, report, first, done)
        else:
            marked = kept

            def again(some: range) -> None:
                add(some.start, np.ascontiguousarray(marked[:, some.start : some.stop]))

            for _ in in_order(again, chunks(n, AT_ONCE), thread_count(run.n_jobs), lambda _: None):
                pass
    return total


def _harmonic_at(counts: NDArray[np.int64]) -> NDArray[np.float64]:
    """H of these numbers, summed from 1 on in that order, a piece at a time: a count may be that of all records."""
    found, so_far = np.zeros(len(counts)), 0.0
    for piece in chunks(int(counts.max(initial=0)), 2**20):
        sums = 1.0 / np.arange(piece.start + 1, piece.stop + 1)
        sums[0] += so_far
        np.cumsum(sums, out=sums)
        here = (counts > piece.start) & (counts <= piece.stop)
        found[here] = sums[counts[here] - piece.start - 1]
        so_far = float(sums[-1])
    return found
