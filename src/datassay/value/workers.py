"""Who evaluates coalitions, and where utilities are kept.

Our own solver works in threads; other models in processes that map the data into their memory and stay from call to
call. Answers come in the order of the tasks, whoever found them. What is found is kept on disk by coalition, if asked.
"""

import math
import os
import pickle
import shutil
import signal
import sqlite3
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from concurrent.futures import BrokenExecutor, Future, ThreadPoolExecutor
from contextlib import suppress
from dataclasses import replace
from hashlib import blake2b
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from datassay._errors import InputError, UsageError
from datassay._work import thread_count
from datassay.value.coalitions import Answer, Bools, Evaluator, Floats, ModelGame, Task, first_line


class UtilityCache:
    """Utilities on disk, by game and coalition: an SQLite file that any number of runs may share.

    Only what a run computed completely is written, so that a run that was cut short goes on where it stopped and ends
    with the same bits.
    """

    def __init__(self, path: object, game: ModelGame) -> None:
        if not isinstance(path, str | os.PathLike):
            raise UsageError(f"cache must be the name of a file, got {path!r}")
        if not game.fingerprint:
            raise UsageError(
                "no cache can be kept of this model or scoring: what it holds (a generator, a file, a lock) cannot be "
                "told from what another one holds"
            )
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
            raise InputError(f"{str(path)!r} cannot be used as a cache of utilities: {error}") from None

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
        with self._connection as connection:
            connection.executemany("INSERT OR IGNORE INTO utilities VALUES (?, ?, ?)", rows)
            if answer.message:
                self._reason = self._reason or answer.message
                connection.execute("INSERT OR IGNORE INTO reasons VALUES (?, ?)", (self._game, answer.message))


def _key(members: Bools) -> bytes:
    return blake2b(np.packbits(members).tobytes(), digest_size=16).digest()


MOST_LOSSES = 3


class WorkerLostError(InputError):
    """Workers died again and again, most likely for lack of memory."""


def evaluate(
    game: ModelGame,
    tasks: Iterable[Task],
    *,
    n_jobs: int | None,
    cache: UtilityCache | None = None,
    seconds: float | None = None,
) -> Iterator[Answer]:
    """Answers to the tasks, in their order, at most a few ahead of the one being consumed.

    Models fitted by scikit-learn work in processes that share the data by memory map; our own solver in threads. Ends
    early when the seconds, counted from when the workers are there, are over.
    """
    jobs = thread_count(n_jobs)
    runner: _Runner
    if jobs == 1:
        runner = _Here(game.evaluator)
    elif game.evaluator.threads:
        runner = _Threads(game.evaluator, jobs)
    else:
        runner = _Processes(game.evaluator, jobs)
    deadline = None if seconds is None else time.time() + seconds
    # What was asked, what of it is being done, and the answer or the promise of one.
    waiting: deque[tuple[Task, Task, Answer | Future[Any]]] = deque()
    ahead = 1 if jobs == 1 else 2 * jobs

    def oldest() -> Answer | None:
        asked, task, found = waiting[0]
        if isinstance(found, Answer):
            waiting.popleft()
            return found
        result: Answer | None = None
        while True:
            try:
                result = found.result()
                break
            except BrokenExecutor:
                runner.renew()
                for at, (other, part, answer) in enumerate(waiting):
                    if not isinstance(answer, Answer):
                        waiting[at] = (other, part, runner.submit(part, deadline))
                again = waiting[0][2]
                assert not isinstance(again, Answer)
                found = again
        waiting.popleft()
        if result is None or cache is None:
            return result
        cache.add(task, result)
        return result if task is asked else replace(cache.merged(asked), fresh=result.fresh)

    try:
        for task in tasks:
            known, left = (None, task) if cache is None else cache.find(task, game)
            if known is not None and known.failures and game.evaluator.on_failure == "raise":
                raise InputError(f"the model cannot be fitted to a coalition: {known.message}")
            waiting.append((task, left, known if known is not None else runner.submit(left, deadline)))
            while len(waiting) >= ahead:
                answer = oldest()
                if answer is None:
                    return
                yield answer
        while waiting:
            answer = oldest()
            if answer is None:
                return
            yield answer
    except BaseException as problem:
        runner.close(at_once=isinstance(problem, KeyboardInterrupt))
        raise
    else:
        runner.close(at_once=False)


class _Runner(Protocol):
    def submit(self, task: Task, deadline: float | None) -> "Future[Any]": ...

    def renew(self) -> None: ...

    def close(self, at_once: bool) -> None: ...


class _Here:
    """No workers: a task is done when it is asked for."""

    def __init__(self, evaluator: Evaluator) -> None:
        from threadpoolctl import ThreadpoolController

        self._evaluator = evaluator
        self._controller = ThreadpoolController()

    def submit(self, task: Task, deadline: float | None) -> "Future[Any]":
        future: Future[Any] = Future()
        # Models of few records lose more time by handing work to BLAS's threads than they gain; workers have one, too.
        with self._controller.limit(limits=1, user_api="blas"):
            future.set_result(self._evaluator.run(task, deadline))
        return future

    def renew(self) -> None:
        raise AssertionError("there are no workers to lose")

    def close(self, at_once: bool) -> None:
        pass


class _Threads:
    def __init__(self, evaluator: Evaluator, jobs: int) -> None:
        self._evaluator = evaluator
        self._pool = ThreadPoolExecutor(jobs, thread_name_prefix="datassay")

    def submit(self, task: Task, deadline: float | None) -> "Future[Any]":
        return self._pool.submit(self._evaluator.run, task, deadline)

    def renew(self) -> None:
        raise AssertionError("threads do not die by themselves")

    def close(self, at_once: bool) -> None:
        self._pool.shutdown(wait=True, cancel_futures=True)


class _Processes:
    """Workers that stay from call to call; the data are mapped into their memory, and no task carries them."""

    def __init__(self, evaluator: Evaluator, jobs: int) -> None:
        import cloudpickle  # carries models defined in a notebook, which pickle does not

        self._jobs, self._losses = jobs, 0
        rest = dict(vars(evaluator))
        arrays = {n: a for n, a in rest.items() if isinstance(a, np.ndarray) and a.dtype != object}
        rest = {name: part for name, part in rest.items() if name not in arrays}
        try:
            packed = cloudpickle.dumps((type(evaluator), rest, list(arrays)))
        except Exception as error:
            raise UsageError(
                f"the model or the scoring cannot be sent to workers ({first_line(error)}); n_jobs=1 needs none"
            ) from None
        self._futures: list[Future[Any]] = []
        self._folder = Path(tempfile.mkdtemp(prefix="datassay-"))
        try:
            for name, array in arrays.items():
                np.save(self._folder / f"{name}.npy", array)
            (self._folder / "rest").write_bytes(packed)
            self._pool = self._start()
            self._wait()
        except BaseException:
            shutil.rmtree(self._folder, ignore_errors=True)
            raise

    def _start(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(
            self._jobs,
            timeout=300,
            env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )

    def _wait(self) -> None:
        """Until a worker is there. Those of an earlier call may just have gone, and nobody has noticed yet."""
        while True:
            try:
                self._pool.submit(_ready).result()
                return
            except BrokenExecutor:
                self.renew()

    def submit(self, task: Task, deadline: float | None) -> "Future[Any]":
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that idle workers went home and others come is nobody's concern
            try:
                future: Future[Any] = self._pool.submit(_in_worker, str(self._folder), task, deadline)
            except BrokenExecutor:
                self.renew()
                future = self._pool.submit(_in_worker, str(self._folder), task, deadline)
        self._futures = [f for f in self._futures if not f.done()] + [future]
        return future

    def renew(self) -> None:
        """Replace workers of which one died."""
        self._losses += 1
        if self._losses > MOST_LOSSES:
            raise WorkerLostError(
                f"workers died {self._losses} times, most likely for lack of memory; with n_jobs=1 the model is fitted "
                "here, and what goes wrong is seen"
            )
        self._pool = self._start()

    def close(self, at_once: bool) -> None:
        if at_once:  # interrupted: whatever they are doing, nobody waits for it. loky finds them gone, and cleans up
            self._pool.shutdown(wait=False)
            for worker in list(getattr(self._pool, "_processes", {}).values()):
                with suppress(ProcessLookupError, TypeError):
                    os.kill(worker.pid, signal.SIGKILL)
        else:
            for future in self._futures:
                future.cancel()
        shutil.rmtree(self._folder, ignore_errors=True)


def _ready() -> None:
    """Run by a worker when it has started."""


_in_this_worker: dict[str, Evaluator] = {}


def _in_worker(folder: str, task: Task, deadline: float | None) -> Answer | None:
    """Run by a worker: the evaluator is put together from the folder once, its arrays mapped, not read."""
    if folder not in _in_this_worker:
        with suppress(ValueError):  # ^C is for the one who asked; workers are told by them
            signal.signal(signal.SIGINT, signal.SIG_IGN)
        kind, rest, arrays = pickle.loads((Path(folder) / "rest").read_bytes())
        evaluator = kind.__new__(kind)
        vars(evaluator).update(rest)
        for name in arrays:
            vars(evaluator)[name] = np.asarray(np.load(Path(folder) / f"{name}.npy", mmap_mode="r"))
        _in_this_worker.clear()
        _in_this_worker[folder] = evaluator
    return _in_this_worker[folder].run(task, deadline)
