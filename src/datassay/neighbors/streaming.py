"""Sums over validation points when the training records pass by in blocks: the twin of ``accumulate``.

The lists of the nearest are put together first, in one pass over the files for as many validation points as fit into
memory; then the kernel adds what they say, in the order that ``accumulate`` keeps.
"""

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from datassay import _checks
from datassay._errors import UsageError
from datassay._run import Schedule
from datassay._work import Bar, chunks
from datassay.neighbors.records import NOT_IN_MEMORY, RecordSpace, nearest_of, points_at_once
from datassay.neighbors.views import FullRanking, NearestDistances, NearestRanking, Ranked, group_size


def accumulate_records(
    space: RecordSpace, view: object, add: Callable[[Any, NDArray[np.float64]], None], run: Schedule
) -> NDArray[np.float64]:
    """Sum over validation points: ``add(block, total)`` adds, row after row, to one number per training record."""
    if isinstance(view, FullRanking):
        limit = space.n_train
    elif isinstance(view, NearestRanking) and not isinstance(view, NearestDistances):
        limit = view.limit
    else:
        raise UsageError(NOT_IN_MEMORY)
    memory = _checks.integer("memory", run.memory, at_least=1)
    for_lists, for_blocks = memory // 2, memory - memory // 2
    spans = chunks(space.n_validation, points_at_once(space, limit, run.n_jobs, for_lists))
    size = group_size(space.n_validation, space.n_features)
    result, part = np.zeros(space.n_train), np.zeros(space.n_train)
    touched: list[NDArray[np.uint32]] = []
    with Bar(run.progress, len(spans) * space.n_train, "records") as report:
        for span in spans:
            order = nearest_of(space, span, limit, run, for_blocks, report)
            start = span.start
            while start < span.stop:
                stop = min(start - start % size + size, span.stop)
                some = order[start - span.start : stop - span.start]
                add(Ranked(slice(start, stop), some), part)
                touched.append(some.reshape(-1))
                if stop % size == 0 or stop == space.n_validation:  # the group is whole: its sum joins the others
                    for those in touched:  # who is there twice is added and cleared once: the second time it adds 0
                        here = np.unique(those)
                        result[here] += part[here]
                        part[here] = 0.0
                    touched.clear()
                start = stop
    return result
