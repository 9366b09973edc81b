"""Who evaluates coalitions, and where utilities are kept.

Our own solver works in threads; other models in processes that map the data into their memory and stay from call to
call; both on a cluster, where there is one. Answers come in the order of the tasks. What is found is kept on disk by
coalition, if asked.
"""

import copy
import math
import os
import sqlite3
import threading
import time
from collections import deque
from collections.abc import Generator, Iterable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path

import numpy as np

from datassay._cluster import Cluster
from datassay._crew import Calls, Crew, Promise
from datassay._errors import CheckpointError, InputError, UnavailableError, UsageError
from datassay._processes import Processes
from datassay._work import workers
from datassay.results import Floats
from datassay.value.models.coalitions import Answer, Bools, Evaluator, FittedModels, ModelGame, Task


def check_known(game: ModelGame) -> None:
    """Refuse to keep utilities of a model that cannot be told from another."""
    if not game.fingerprint:
        raise UsageError(
            "no cache can be kept of this model or scoring: what it holds (a generator, a file, a lock) cannot be told "
            "from what another one holds"
        )


class UtilityCache:
    """Utilities on disk, by game and coalition: an SQLite file that any number of runs may share.

    Only what a run computed completely is written, so that a run that was cut short goes on where it stopped and ends
    with the same bits.
    """

    def __init__(self, path: object, game: ModelGame) -> None:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(f"cache must be the name of a file, got {path!r}")
        check_known(game)
        self._path, self._game = Path(path), game.fingerprint
        if not self._path.absolute().parent.is_dir():
            raise UsageError(f"the folder {str(self._path.parent)!r} of the cache does not exist")
        try:
            self._connection = sqlite3.connect(self._path, timeout=60)
            try:
                self._load(game)
            except BaseException:
                self.close()
                raise
        except sqlite3.DatabaseError as error:
            kind = UnavailableError if isinstance(error, sqlite3.OperationalError) else InputError  # a full disk, say
            raise kind(f"{str(path)!r} cannot be used as a cache of utilities: {error}") from None

    def _load(self, game: ModelGame) -> None:
        connection = self._connection
        # Written ahead: what was committed outlives this process, and no commit waits for the disk.
        connection.execute("PRAGMA journal_mode = WAL")
        connection.execute("PRAGMA synchronous = NORMAL")
        connection.execute(
            "CREATE TABLE IF NOT EXISTS utilities (game TEXT, coalition BLOB, utility REAL, "
            "PRIMARY KEY (game, coalition)) WITHOUT ROWID"
        )
        connection.execute("CREATE TABLE IF NOT EXISTS reasons (game TEXT PRIMARY KEY, reason TEXT)")
        connection.commit()
        why = connection.execute("SELECT reason FROM reasons WHERE game = ?", (self._game,)).fetchone()
        self._reason = why[0] if why else ""
        rows = connection.execute("SELECT coalition, utility FROM utilities WHERE game = ?", (self._game,))
        self._known: dict[bytes, float] = {k: math.nan if v is None else v for k, v in rows}
        everybody = Task("sets", np.ones((1, game.n_players), np.bool_))
        before = self._known.get(_key(everybody.members[0]), game.full)
        if before != game.full:
            raise InputError(
                f"{str(self._path)!r} has {before:g} for the score of all records, which is {game.full:g}: the model "
                "or the scoring is not what it was; use another cache"
            )
        self.add(everybody, Answer(np.array([game.full]), 1))

    def close(self) -> None:
        """Let go of the file."""
        self._connection.close()

    def find(self, task: Task, game: ModelGame) -> "tuple[Answer | None, Task]":
        """The task's utilities, if all of them are known; and the task that is left to do.

        What is left of a task that cannot be cut short are the coalitions not known yet.
        """
        members, values = [], []
        for present in task.coalitions():
            value = self._known.get(_key(present))
            if value is None and task.truncation >= 0:
                return None, task
            members.append(present.copy())
            values.append(value)
            reached = game.empty if value is not None and math.isnan(value) else value
            if task.kind == "chain" and reached is not None and abs(game.full - reached) <= task.truncation:
                break
        missing = [value is None for value in values]
        if any(missing):
            return None, task if all(missing) else Task("sets", np.array(members)[missing])
        return self._answer(np.array(values, np.float64), np.array(members)), task

    def merged(self, task: Task) -> Answer:
        """The answer to a task of which the rest is known by now."""
        members = np.array([present.copy() for present in task.coalitions()])
        values = np.array([self._known[_key(present)] for present in members])
        return self._answer(values, members)

    def _answer(self, values: Floats, members: Bools) -> Answer:
        failures = int((np.isnan(values) & members.any(axis=1)).sum())
        return Answer(values, 0, failures, self._reason if failures else "")

    def add(self, task: Task, answer: Answer) -> None:
        """Keep what a task found."""
        keys = [_key(members) for members, _ in zip(task.coalitions(), answer.utilities, strict=False)]
        new = dict(zip(keys, answer.utilities.tolist(), strict=True))
        self._known.update(new)
        rows = [(self._game, key, None if math.isnan(value) else value) for key, value in new.items()]
        try:
            with self._connection as connection:
                connection.executemany("INSERT OR IGNORE INTO utilities VALUES (?, ?, ?)", rows)
                if answer.message:
                    self._reason = self._reason or answer.message
                    connection.execute("INSERT OR IGNORE INTO reasons VALUES (?, ?)", (self._game, answer.message))
        except sqlite3.OperationalError as error:
            raise CheckpointError(
                f"{str(self._path)!r} cannot be written ({error}); what was kept there before is whole: make room, run "
                "it again, and it goes on from there"
            ) from None
        except sqlite3.DatabaseError as error:
            raise InputError(
                f"{str(self._path)!r} is damaged ({error}): delete it, and what it held is done again"
            ) from None


def _key(members: Bools) -> bytes:
    return blake2b(np.packbits(members).tobytes(), digest_size=16).digest()


def evaluate(
    game: ModelGame,
    tasks: Iterable[Task],
    *,
    n_jobs: int | None,
    client: object = None,
    cache: UtilityCache | None = None,
    seconds: float | None = None,
) -> Generator[Answer, None, None]:
    """Answers to the tasks, at most a few ahead of the one being consumed, until the seconds are over.

    They are counted from when the workers are there.
    """
    by = workers(n_jobs, client)
    runner: Crew
    if by.kind == "dask":
        runner = Cluster(_Anywhere(game.evaluator), by.client)
    elif by.count == 1:
        runner = _Here(game.evaluator)
    elif game.evaluator.threads:
        runner = _Threads(game.evaluator, by.count)
    else:
        runner = Processes(game.evaluator.run, by.count, what="the model or the scoring")
    deadline = None if seconds is None else time.time() + seconds
    # What was asked, what of it is being done, and the answer if that was known.
    waiting: deque[tuple[Task, Task, Answer | None]] = deque()
    with Calls(runner) as calls:

        def oldest() -> Answer | None:
            asked, task, found = waiting.popleft()
            if found is not None:
                return found
            result: Answer | None = calls.oldest()
            if result is None or cache is None:
                return result
            cache.add(task, result)
            return result if task is asked else replace(cache.merged(asked), fresh=result.fresh)

        for task in tasks:
            known, left = (None, task) if cache is None else cache.find(task, game)
            if known is None:
                calls.make(left, deadline)
            elif known.failures and game.evaluator.on_failure == "raise":
                raise InputError(f"the model cannot be fitted to a coalition: {known.message}")
            waiting.append((task, left, known))
            while len(waiting) >= (1 if isinstance(runner, _Here) else 2 * runner.count()):
                answer = oldest()
                if answer is None:
                    return
                yield answer
        while waiting:
            answer = oldest()
            if answer is None:
                return
            yield answer


class _Here:
    """No workers: a task is done when it is asked for."""

    def __init__(self, evaluator: Evaluator) -> None:
        from threadpoolctl import ThreadpoolController

        self._evaluator = evaluator
        self._controller = ThreadpoolController()

    def submit(self, task: Task, deadline: float | None) -> Promise:
        # Models of few records lose more time by handing work to BLAS's threads than they gain; workers have one, too.
        with self._controller.limit(limits=1, user_api="blas"):
            found = self._evaluator.run(task, deadline)
        return lambda: found

    def count(self) -> int:
        return 1

    def renew(self) -> None:
        raise AssertionError("there are no workers to lose")

    def close(self, at_once: bool) -> None:
        pass


class _Threads:
    def __init__(self, evaluator: Evaluator, jobs: int) -> None:
        self._evaluator, self._jobs = evaluator, jobs
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="datassay")

    def submit(self, task: Task, deadline: float | None) -> Promise:
        return self._pool.submit(self._evaluator.run, task, deadline).result

    def count(self) -> int:
        return self._jobs

    def renew(self) -> None:
        raise AssertionError("threads do not die by themselves")

    def close(self, at_once: bool) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Anywhere:
    """An evaluator among the threads of a worker, which share what they are sent: each has a model of its own."""

    def __init__(self, evaluator: Evaluator) -> None:
        self._evaluator = evaluator
        self._own = threading.local()

    def __reduce__(self) -> tuple[type["_Anywhere"], tuple[Evaluator]]:
        return _Anywhere, (self._evaluator,)

    def __call__(self, task: Task, deadline: float | None) -> Answer | None:
        """Run by a worker."""
        from threadpoolctl import ThreadpoolController

        own = self._own.__dict__
        if not own:
            evaluator = copy.copy(self._evaluator)
            if isinstance(evaluator, FittedModels):
                evaluator.model = copy.deepcopy(evaluator.model)
            own |= {"evaluator": evaluator, "controller": ThreadpoolController()}
        # One thread for BLAS, as everywhere: another number of them may round another way.
        with own["controller"].limit(limits=1, user_api="blas"):
            found: Answer | None = own["evaluator"].run(task, deadline)
        return found
