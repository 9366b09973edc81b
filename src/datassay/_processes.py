"""Work done by other processes of this machine, which map the data from a file and stay from call to call."""

import os
import signal
import warnings
from concurrent.futures import BrokenExecutor, Future
from contextlib import suppress
from functools import partial
from typing import Any

from datassay._crew import MOST_LOSSES, Promise, Task, WorkerLostError
from datassay._packing import call_packed, pack, remove

LOOK_UP = 5.0  # seconds between two looks at whether the workers' answers are still taken in


def _is_given_up(pool: Any) -> bool:
    """Whether the thread that hands out work and takes in answers has ended unnoticed.

    Where warnings are errors, one that loky gives in that thread ends it: then no answer ever comes.
    """
    thread = getattr(pool, "_executor_manager_thread", None)
    return thread is not None and not thread.is_alive()


def _answer(future: "Future[Any]", pool: Any) -> Any:
    """Wait for an answer, looking up from time to time whether it can still come."""
    while True:
        try:
            return future.result(timeout=LOOK_UP)
        except TimeoutError:
            if future.done():  # the task itself ran out of some time, or the answer has just come
                return future.result()
            if _is_given_up(pool):
                raise BrokenExecutor("nobody waits for the workers' answers any more") from None


class Processes:
    """Workers on this machine that stay from call to call; no call carries the data."""

    def __init__(self, task: Task, jobs: int, *, writable: bool = False, what: str = "the task") -> None:
        self._jobs, self._losses = jobs, 0
        self._futures: list[Future[Any]] = []
        self._folder = pack(task, what)
        self._call = partial(call_packed, str(self._folder), writable)
        try:
            self._pool = self._start()
            while not self._is_there():
                self.renew()
        except BaseException:
            remove(self._folder)
            raise

    def _start(self) -> Any:
        from joblib.externals.loky import get_reusable_executor

        return get_reusable_executor(
            self._jobs,
            timeout=300,
            env={"OMP_NUM_THREADS": "1", "OPENBLAS_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"},
        )

    def _is_there(self) -> bool:
        """Wait for a worker; those of an earlier call may just have gone."""
        with suppress(BrokenExecutor):
            return not _answer(self._pool.submit(bool), self._pool)
        return False

    def submit(self, *arguments: Any) -> Promise:
        """Call the task."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that idle workers went home and others come
            try:
                future: Future[Any] = self._pool.submit(self._call, *arguments)
            except BrokenExecutor:
                self.renew()
                future = self._pool.submit(self._call, *arguments)
        self._futures = [f for f in self._futures if not f.done()] + [future]
        return partial(_answer, future, self._pool)

    def count(self) -> int:
        """How many there are."""
        return self._jobs

    def renew(self) -> None:
        """Replace workers of which one died."""
        self._losses += 1
        if self._losses > MOST_LOSSES:
            raise WorkerLostError(
                f"workers died {self._losses} times, most likely for lack of memory; with n_jobs=1 the work is done "
                "here, and what goes wrong is seen"
            )
        if _is_given_up(self._pool):
            self._pool.shutdown(wait=False, kill_workers=True)
        self._pool = self._start()

    def close(self, at_once: bool) -> None:
        """Let go of the task."""
        if at_once:  # interrupted, and not waited for: loky finds them gone, and cleans up
            self._pool.shutdown(wait=False)
            for worker in list(getattr(self._pool, "_processes", {}).values()):
                with suppress(ProcessLookupError, TypeError):
                    os.kill(worker.pid, signal.SIGKILL)
        else:
            for future in self._futures:
                future.cancel()
        remove(self._folder)
