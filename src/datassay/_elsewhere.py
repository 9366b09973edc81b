"""Work done by other processes, on this machine or on a cluster: what it is about is sent to each of them once.

A task is a function and all that it closes over, the training data above all. Processes on this machine map it from a
file; the workers of a Dask cluster are sent it before the first call, and pass it on to those that come later. A call
then carries a few numbers. Answers come back in order, so whatever is added up is added up in the same order.

Workers may die: their calls are made again. Who has lost them all, or the scheduler, is told so.
"""

import logging
import mmap
import os
import pickle
import re
import shutil
import signal
import stat
import tempfile
import time
import warnings
from collections import deque
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import BrokenExecutor, CancelledError, Future
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from uuid import uuid4

from datassay._errors import LostError, MissingDependencyError, UnavailableError, UsageError
from datassay._version import __version__
from datassay._work import Workers

T = TypeVar("T")
Task = Callable[..., Any]

MOST_LOSSES = 3
PATIENCE = 30.0  # seconds until a cluster without workers is given up
ANSWERS_WITHIN = 10.0  # seconds: a scheduler
LOOK_UP = 5.0  # seconds between two looks at whether somebody still waits for the workers' answers
RECOUNT = 5.0  # seconds between two looks at how large a cluster is
SECONDS_A_CALL = 0.2  # a call takes milliseconds of everybody's time, whatever it asks for
LARGEST_CALL = 32  # groups
ALIGNMENT = 64  # bytes: where arrays begin within the file


class WorkerLostError(LostError):
    """Workers died again and again, most likely for lack of memory."""


class SchedulerLostError(LostError):
    """There is nobody left who could tell the workers of a cluster what to do."""


class Promise(Protocol):
    """An answer that will come."""

    def result(self) -> Any:
        """Wait for it. BrokenExecutor says that a worker was lost and with it the answer: renew, and ask again."""
        ...


class Crew(Protocol):
    """Workers who hold a task."""

    def submit(self, *arguments: Any) -> Promise:
        """Call the task."""
        ...

    def count(self) -> int:
        """How many calls they can run at once, by now."""
        ...

    def renew(self) -> None:
        """Mend what was lost."""
        ...

    def close(self, at_once: bool) -> None:
        """Let go of the task; ``at_once``: whatever they are doing, nobody waits for it."""
        ...


def in_order(
    task: Callable[[range], T], groups: Sequence[range], by: Workers, report: Callable[[int], None]
) -> Iterator[T]:
    """Results of the tasks in their order, at most a few ahead of the one being consumed."""
    if by.kind == "joblib":
        yield from _through_joblib(task, groups, by.count, report)
        return
    crew: Crew
    if by.kind == "dask":
        crew = Cluster(_Several(task), by.client)
    else:
        crew = Processes(_Several(task), min(by.count, max(1, len(groups))), writable=True)
    waiting: deque[tuple[Sequence[range], Promise]] = deque()

    def oldest() -> tuple[Sequence[range], float, list[T]]:
        while True:
            try:
                seconds, found = waiting[0][1].result()
                return waiting.popleft()[0], seconds, found
            except BrokenExecutor:
                crew.renew()
                for at, (batch, _) in enumerate(waiting):
                    waiting[at] = (batch, crew.submit(batch))

    at, size = 0, 1
    try:
        while at < len(groups) or waiting:
            while at < len(groups) and len(waiting) <= 2 * crew.count() + 1:
                # As many as are worth a call, but so that at the end nobody waits for a long one.
                taken = groups[at : at + max(1, min(size, (len(groups) - at) // (4 * crew.count())))]
                waiting.append((taken, crew.submit(taken)))
                at += len(taken)
            batch, seconds, found = oldest()
            size = min(LARGEST_CALL, max(1, int(SECONDS_A_CALL * len(batch) / max(seconds, 1e-6))))
            for group, result in zip(batch, found, strict=True):
                yield result
                report(len(group))
    except BaseException as problem:
        crew.close(at_once=isinstance(problem, KeyboardInterrupt))
        raise
    else:
        crew.close(at_once=False)


class _Several:
    """A task that is called for several groups at once, and says how long they took."""

    def __init__(self, task: Task) -> None:
        self.task = task

    def __call__(self, groups: Sequence[range]) -> tuple[float, list[Any]]:
        """Call the task for each."""
        began = time.perf_counter()
        found = [self.task(group) for group in groups]
        return time.perf_counter() - began, found


def _through_joblib(
    task: Callable[[range], T], groups: Sequence[range], jobs: int, report: Callable[[int], None]
) -> Iterator[T]:
    """By whatever backend the caller registered with joblib."""
    import joblib
    from joblib.parallel import get_active_backend

    backend = get_active_backend(prefer="threads")[0]
    near = type(backend).__name__ == "MultiprocessingBackend"  # on this machine: the task goes by file
    folder = _pack(task, "the task") if near else None
    call = joblib.delayed(task if folder is None else _Packed(str(folder), writable=True))
    try:
        if getattr(backend, "supports_return_generator", False):
            parts, kept = [groups], "generator"
        else:  # a few at a time, since all would have to be kept otherwise
            parts, kept = [groups[at : at + 4 * jobs] for at in range(0, len(groups), 4 * jobs)], "list"
        with joblib.Parallel(n_jobs=jobs, return_as=kept, batch_size=1) as parallel:
            for part in parts:
                for group, answer in zip(part, parallel(call(group) for group in part), strict=True):
                    yield answer
                    report(len(group))
    finally:
        if folder is not None:
            _remove(folder)


_owned: dict[Path, Any] = {}
"""Folders of tasks, each with a file in it that is locked while this process lives."""


def _own_folder() -> Path:
    """A folder for a task, marked as that of a process that is alive; those of processes that were killed are removed.

    A lock is the system's to release, however a process ends: no other has it then, whatever its number.
    """
    _remove_deserted()
    folder = Path(tempfile.mkdtemp(prefix="datassay-"))
    with suppress(ImportError, OSError):  # not every system has locks, nor every place: then there is no mark
        import fcntl

        mark = (folder / "owner.new").open("wb")
        try:
            fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)
            os.replace(folder / "owner.new", folder / "owner")  # nobody sees it before it is locked
        except BaseException:
            mark.close()
            raise
        _owned[folder] = mark
    return folder


def _remove_deserted() -> None:
    """Remove what processes of this user left that were killed before they could."""
    try:
        import fcntl
    except ImportError:  # not on Windows
        return
    for folder in Path(tempfile.gettempdir()).glob("datassay-*"):
        with suppress(OSError):
            found = folder.lstat()
            if stat.S_ISDIR(found.st_mode) and found.st_uid == os.geteuid() and (folder / "owner").is_file():
                with (folder / "owner").open("rb") as mark:
                    fcntl.flock(mark, fcntl.LOCK_EX | fcntl.LOCK_NB)  # refused while its process lives
                    shutil.rmtree(folder, ignore_errors=True)


def _remove(folder: Path) -> None:
    """Remove the folder of a task."""
    shutil.rmtree(folder, ignore_errors=True)
    mark = _owned.pop(folder, None)
    if mark is not None:
        mark.close()


def _pack(task: Task, what: str) -> Path:
    """Write a task to a folder of its own: the arrays as they are, to be mapped, and the rest."""
    import cloudpickle  # carries closures, and models defined in a notebook, which pickle does not

    buffers: list[pickle.PickleBuffer] = []
    try:
        packed = cloudpickle.dumps(task, protocol=5, buffer_callback=buffers.append)
    except Exception as error:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        raise UsageError(f"{what} cannot be sent to workers ({told}); n_jobs=1 needs none") from None
    folder = _own_folder()
    try:
        places: list[tuple[int, int]] = []
        with (folder / "arrays").open("wb") as file:
            for buffer in buffers:
                file.seek(-(-file.tell() // ALIGNMENT) * ALIGNMENT)
                raw = buffer.raw()
                places.append((file.tell(), raw.nbytes))
                file.write(raw)
        (folder / "rest").write_bytes(pickle.dumps((places, packed)))
    except BaseException as error:
        _remove(folder)
        if isinstance(error, OSError):
            raise UnavailableError(
                f"the data cannot be written to {str(folder.parent)!r}, from where workers would map them: "
                f"{error.strerror}"
            ) from None
        raise
    return folder


def _unpack(folder: str, writable: bool) -> Task:
    """The task of a folder, its arrays mapped, not read.

    Kernels were compiled for arrays that may be written to: these may, and what is written stays in this process.
    """
    places, packed = pickle.loads((Path(folder) / "rest").read_bytes())
    file = Path(folder) / "arrays"
    whole = memoryview(b"")
    if file.stat().st_size:
        with file.open("rb") as opened:
            access = mmap.ACCESS_COPY if writable else mmap.ACCESS_READ
            whole = memoryview(mmap.mmap(opened.fileno(), 0, access=access))
    buffers = [whole[start : start + size] if size else bytearray() for start, size in places]
    task: Task = pickle.loads(packed, buffers=buffers)
    return task


_held: dict[str, Task] = {}


class _Packed:
    """Stands for a task whose folder a worker looks into once."""

    def __init__(self, folder: str, writable: bool) -> None:
        self.folder, self.writable = folder, writable

    def __call__(self, *arguments: Any) -> Any:
        """Call the task."""
        task = _held.get(self.folder)
        if task is None:
            with suppress(ValueError):  # ^C is for the one who asked; workers are told by them
                signal.signal(signal.SIGINT, signal.SIG_IGN)
            task = _unpack(self.folder, self.writable)
            _held.clear()
            _held[self.folder] = task
        return task(*arguments)


def _ready() -> None:
    """Run by a worker when it has started."""


def _unattended(pool: Any) -> bool:
    """Whether the thread that hands out work and takes in answers has ended, and nobody noticed.

    Where warnings are errors, one that loky gives in that thread ends it: then no answer ever comes.
    """
    thread = getattr(pool, "_executor_manager_thread", None)
    return thread is not None and not thread.is_alive()


class _Attended:
    """An answer that will come, or be known not to."""

    def __init__(self, future: "Future[Any]", pool: Any) -> None:
        self._future, self._pool = future, pool

    def result(self) -> Any:
        """Wait for it, looking up from time to time."""
        while True:
            try:
                return self._future.result(timeout=LOOK_UP)
            except TimeoutError:
                if self._future.done():  # the task itself ran out of some time, or the answer has just come
                    return self._future.result()
                if _unattended(self._pool):
                    raise BrokenExecutor("nobody waits for the workers' answers any more") from None


class Processes:
    """Workers on this machine that stay from call to call; no call carries the data."""

    def __init__(self, task: Task, jobs: int, *, writable: bool = False, what: str = "the task") -> None:
        self._jobs, self._losses = jobs, 0
        self._futures: list[Future[Any]] = []
        self._folder = _pack(task, what)
        self._call = _Packed(str(self._folder), writable)
        try:
            self._pool = self._start()
            self._wait()
        except BaseException:
            _remove(self._folder)
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
                _Attended(self._pool.submit(_ready), self._pool).result()
                return
            except BrokenExecutor:
                self.renew()

    def submit(self, *arguments: Any) -> _Attended:
        """Call the task."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # that idle workers went home and others come is nobody's concern
            try:
                future: Future[Any] = self._pool.submit(self._call, *arguments)
            except BrokenExecutor:
                self.renew()
                future = self._pool.submit(self._call, *arguments)
        self._futures = [f for f in self._futures if not f.done()] + [future]
        return _Attended(future, self._pool)

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
        if _unattended(self._pool):
            self._pool.shutdown(wait=False, kill_workers=True)
        self._pool = self._start()

    def close(self, at_once: bool) -> None:
        """Let go of the task."""
        if at_once:  # interrupted: whatever they are doing, nobody waits for it. loky finds them gone, and cleans up
            self._pool.shutdown(wait=False)
            for worker in list(getattr(self._pool, "_processes", {}).values()):
                with suppress(ProcessLookupError, TypeError):
                    os.kill(worker.pid, signal.SIGKILL)
        else:
            for future in self._futures:
                future.cancel()
        _remove(self._folder)


def dask_distributed() -> Any:
    """The package, or how to install it."""
    try:
        import distributed
    except ImportError:
        raise MissingDependencyError(
            'work on a cluster needs Dask, which is not installed: pip install "datassay[dask]"'
        ) from None
    return distributed


@contextmanager
def connect(address: str) -> Iterator[Any]:
    """A client of the cluster whose scheduler is at this address, for as long as it is needed; Dask logs nothing."""
    distributed = dask_distributed()
    scheme, _, host = address.rpartition("://")
    if scheme not in ("", "tcp", "tls", "ucx", "ws", "wss") or not host:
        raise UsageError(f"{address!r} is no address of a Dask scheduler, such as tcp://HOST:8786")
    if scheme not in ("ws", "wss") and not re.fullmatch(r".+:[0-9]{1,5}", host):  # a Client would not get over it
        raise UsageError(f"{address!r} names no port; an address of a Dask scheduler is such as tcp://HOST:8786")
    with _dask_silent():
        try:
            client = distributed.Client(address, timeout=ANSWERS_WITHIN, set_as_default=False)
        except (OSError, TimeoutError):
            raise UnavailableError(f"no Dask scheduler answers at {address!r}; is it running?") from None
        except (ValueError, TypeError, ImportError) as error:
            raise UsageError(
                f"{address!r} is no address of a Dask scheduler, such as tcp://HOST:8786 ({error})"
            ) from None
        try:
            yield client
        finally:
            with suppress(Exception):  # a scheduler that is gone says goodbye badly
                client.close()


@contextmanager
def _dask_silent() -> Iterator[None]:
    """Keep the tracebacks that Dask logs off the screen of somebody who is told in one line what went wrong."""
    names = ["distributed", *(name for name in logging.root.manager.loggerDict if name.startswith("distributed."))]
    loggers = [logging.getLogger(name) for name in names]
    levels = [logger.level for logger in loggers]
    try:
        for logger in loggers:
            logger.setLevel(logging.CRITICAL + 1)
        yield
    finally:
        for logger, level in zip(loggers, levels, strict=True):
            logger.setLevel(level)


def threads_of(client: object) -> int:
    """How many calls the workers of a Dask cluster can run at once; waits until there is one."""
    distributed = dask_distributed()
    if not isinstance(client, distributed.Client):
        raise UsageError(f"client must be a dask.distributed.Client, got {type(client).__name__}")
    if client.asynchronous:
        raise UsageError("client must not be asynchronous: make it with Client(address), outside of an event loop")
    _check_scheduler(client)
    try:
        client.wait_for_workers(1, timeout=PATIENCE)
    except TimeoutError:
        raise UnavailableError(f"the Dask cluster at {_address(client)} has no workers; start some") from None
    return max(1, sum(int(threads) for threads in client.nthreads().values()))


def _address(client: Any) -> str:
    return str(getattr(client.scheduler, "address", None) or "an unknown address")


def _check_scheduler(client: Any) -> None:
    if client.status in ("closing", "closed"):  # it also closes itself, if its scheduler does not come back
        raise SchedulerLostError(
            "client is closed, by close() or because its scheduler was lost; make another one with Client(address)"
        )
    if client.status != "running":
        raise SchedulerLostError(f"the Dask scheduler at {_address(client)} does not answer any more")


class _Shipment:
    """A task on its way; workers must be of the same version, lest they compute something else."""

    def __init__(self, task: Task) -> None:
        self.task, self.version = task, __version__


def _call(shipment: _Shipment, arguments: tuple[Any, ...]) -> Any:
    """Run by a worker of a cluster: the shipment is there already. The worker may have joined since all were asked."""
    if shipment.version != __version__:
        raise UnavailableError(
            f"a Dask worker has datassay {__version__}, and who asks it {shipment.version}: install the same on every "
            "worker"
        )
    return shipment.task(*arguments)


def _version() -> str:
    """Run by a worker of a cluster."""
    return __version__


class Cluster:
    """Workers of a Dask cluster: the task is sent to all of them once, and kept by them until it is closed."""

    def __init__(self, task: Task, client: Any) -> None:
        self._client, self._shipment, self._losses, self._calls = client, _Shipment(task), 0, 0
        self._name = uuid4().hex
        self._count, self._counted = threads_of(client), time.monotonic()
        self._futures: dict[int, Any] = {}
        self._check_versions()
        self._ship()

    def _check_versions(self) -> None:
        """Another version may give other values, or none: better to know before anything is sent."""
        try:
            found = self._client.run(_version, on_error="return")
        except Exception as error:  # what a scheduler says while it goes down
            raise self._lost(error) from None
        for worker, version in found.items():
            if isinstance(version, OSError):  # it died just now, and that is seen to later
                continue
            if version != __version__:
                said = "cannot load datassay" if isinstance(version, Exception) else f"has datassay {version}"
                raise UnavailableError(
                    f"the Dask worker at {worker} {said}, and here is {__version__}: install the same on every worker"
                )

    def _ship(self) -> None:
        try:
            [self._held] = self._client.scatter([self._shipment], broadcast=True, hash=False)
        except (TypeError, AttributeError, pickle.PicklingError) as error:
            told = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
            raise UsageError(f"the task cannot be sent to workers ({told}); without a client it runs here") from None
        except (OSError, TimeoutError, CancelledError) as error:
            if isinstance(error, TimeoutError) and self._deserted():
                raise WorkerLostError(
                    f"all Dask workers of {_address(self._client)} died while the data were sent to them, most likely "
                    "for lack of memory"
                ) from None
            raise self._lost(error) from None

    def _deserted(self) -> bool:
        """Whether the scheduler is there, and no worker."""
        with suppress(Exception):
            return not self._client.nthreads()
        return False

    def _lost(self, error: BaseException) -> UnavailableError:
        told = (str(error).strip().splitlines() or [type(error).__name__])[0][:200]
        return SchedulerLostError(f"the Dask scheduler at {_address(self._client)} does not answer any more ({told})")

    def submit(self, *arguments: Any) -> Promise:
        """Call the task."""
        _check_scheduler(self._client)
        self._calls += 1
        key = f"datassay-{self._name}-{self._calls}"
        future = self._client.submit(_call, self._held, arguments, key=key, pure=False)
        self._futures[self._calls] = future
        return _Awaited(self, self._calls)

    def count(self) -> int:
        """How many calls they can run at once: a cluster may grow and shrink."""
        if time.monotonic() > self._counted + RECOUNT:
            with suppress(Exception):  # a scheduler that is lost is found out by whoever waits for an answer
                self._count = max(1, sum(int(threads) for threads in self._client.nthreads().values()))
            self._counted = time.monotonic()
        return self._count

    def result_of(self, number: int) -> Any:
        """Wait for the answer to a call, and let go of it."""
        distributed = dask_distributed()
        future = self._futures[number]
        try:
            found = future.result()
        except distributed.KilledWorker as error:
            raise WorkerLostError(
                f"Dask workers died {MOST_LOSSES + 1} times at the same block, most likely for lack of memory: allow "
                f"fewer bytes with memory, or give workers more ({error.task})"
            ) from None
        except CancelledError:
            # Cut off from the scheduler all futures are cancelled; otherwise every worker that held the data is gone.
            _check_scheduler(self._client)
            raise BrokenExecutor("the data were lost with the workers") from None
        except OSError as error:
            if future.status == "error":  # what the task itself ran into
                raise
            raise self._lost(error) from None
        del self._futures[number]
        return found

    def renew(self) -> None:
        """Send the task again, after all who held it were lost."""
        self._losses += 1
        if self._losses > MOST_LOSSES:
            raise WorkerLostError(
                f"all Dask workers died {self._losses} times, most likely for lack of memory: allow fewer bytes with "
                "memory, or give workers more"
            )
        self._futures.clear()
        try:
            threads_of(self._client)
        except LostError:
            raise
        except UnavailableError:
            raise WorkerLostError(
                f"all Dask workers died, and within {PATIENCE:g} seconds none came back to {_address(self._client)}"
            ) from None
        self._ship()

    def close(self, at_once: bool) -> None:
        """Let go of the task."""
        with suppress(Exception):  # whatever is wrong with a cluster that is left, it is nobody's concern any more
            if self._client.status == "running" and self._futures:
                self._client.cancel(list(self._futures.values()), force=at_once)
        self._futures.clear()
        self._held = None


class _Awaited:
    def __init__(self, cluster: Cluster, number: int) -> None:
        self._cluster, self._number = cluster, number

    def result(self) -> Any:
        return self._cluster.result_of(self._number)
