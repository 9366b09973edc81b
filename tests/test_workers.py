"""Whoever does the work, the bits are the same: threads, processes, a real Dask cluster whose workers die."""

import io
import logging
import os
import pickle
import signal
import subprocess
import sys
import time
from functools import partial
from pathlib import Path

import joblib
import numpy as np
import pytest
from joblib.externals.loky import process_executor
from sklearn.linear_model import LogisticRegression

import datassay as da
from commands import run
from datassay import _cluster, _packing, _processes
from datassay._work import chunks, gather, in_order, thread_count, workers
from datassay.cli import main
from long_runs import ALL, COALITIONS, PASSES, bits, data, reference

distributed = pytest.importorskip("distributed")


@pytest.fixture(scope="module")
def client():
    """A cluster of two processes, each with a nanny that starts it again when it dies."""
    with (
        distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
        distributed.Client(cluster) as client,
    ):
        yield client


@pytest.mark.parametrize("name", ALL)
def test_a_cluster_gives_the_bits_of_one_thread(name, client):
    assert bits(ALL[name](client=client)) == reference(name)


@pytest.mark.parametrize("name", ["knn_shapley", "self_waka", "reidentification_risk", "data_shapley of a tree"])
@pytest.mark.parametrize("backend", ["threading", "loky", "multiprocessing", "dask"])
def test_every_backend_of_joblib_gives_the_bits_of_one_thread(name, backend, request):
    if backend == "dask":
        request.getfixturevalue("client")
    with joblib.parallel_config(backend=backend, n_jobs=2):
        assert bits(ALL[name]()) == reference(name)


@pytest.mark.parametrize("name", [*PASSES, "layered_shapley"])
def test_processes_give_the_bits_of_one_thread(name):
    with joblib.parallel_config(backend="loky", n_jobs=2):
        assert bits(ALL[name]()) == reference(name)


def test_other_functions_follow_the_backend_too(client):
    X, y, X_val, y_val = data()

    def found():
        table = da.census(80, seed=3)
        return [
            da.tune_k(X, y, X_val, y_val, candidates=[1, 3, 5]).scores,
            da.tune_tau(X, y, X_val, y_val).scores,
            da.removal_curve(np.arange(900.0), X, y, X_val, y_val, n_random=2).scores["mcc"],
            da.likely_errors(X, y).values,
            da.waka_influence(X, y, removed=[3, 5]).values,
            da.uniqueness_shapley(table).values,
            da.data_oob(LogisticRegression(), table, max_bags=30).values,
        ]

    here = found()
    with joblib.parallel_config(backend="dask", client=client):
        there = found()
    assert [part.tobytes() for part in there] == [part.tobytes() for part in here]


def test_without_a_word_threads_of_this_process_do_it():
    assert workers(3).kind == "threads"
    assert workers(3).count == 3
    with joblib.parallel_config(backend="loky"):
        assert workers(3).kind == "processes"
    with joblib.parallel_config(backend="threading", n_jobs=5):
        assert (workers().kind, workers().count, thread_count(None), thread_count(2)) == ("threads", 5, 5, 2)
    with joblib.parallel_config(n_jobs=3):
        assert thread_count(None) == 3


class Counted:
    """Leaves a mark whenever it arrives anywhere."""

    def __init__(self, file, ballast):
        self.file, self.ballast = file, ballast

    def __reduce__(self):
        return _arrive, (self.file, self.ballast)


def _arrive(file, ballast):
    with open(file, "a") as marks:
        marks.write("x")
    return Counted(file, ballast)


def _counting_task(file, ballast):
    # The module of a test cannot be imported by workers: what the task needs goes with it.
    import cloudpickle

    cloudpickle.register_pickle_by_value(sys.modules[__name__])
    held = Counted(file, ballast)
    return lambda group: (held.ballast[: len(group)].copy(),)


@pytest.mark.parametrize("backend", ["loky", "multiprocessing", "dask"])
def test_the_data_are_sent_to_a_worker_once_and_not_with_every_call(backend, client, tmp_path):
    ballast = np.arange(300_000.0)
    task = _counting_task(str(tmp_path / "marks"), ballast)
    try:
        if backend == "dask":
            (found,) = gather(task, chunks(400, 4), workers(client=client), lambda done: None)
        else:
            with joblib.parallel_config(backend=backend, n_jobs=2):
                (found,) = gather(task, chunks(400, 4), workers(), lambda done: None)
    finally:
        import cloudpickle

        cloudpickle.unregister_pickle_by_value(sys.modules[__name__])
    assert found.tobytes() == np.tile(np.arange(4.0), 100).tobytes()
    assert 1 <= len((tmp_path / "marks").read_text()) <= 2  # two workers, and a hundred calls


def test_what_a_call_carries_is_small():
    """A group of rows, and where the task lies: nothing that grows with the data."""
    call = partial(_packing.call_packed, "/tmp/datassay-0123", True)
    assert len(pickle.dumps((call, range(0, 32)))) < 300


def test_an_error_of_a_task_reaches_the_caller(client):
    def task(group):
        raise ZeroDivisionError(f"at {group.start}")

    for by in (workers(client=client), _loky()):
        with pytest.raises(ZeroDivisionError, match="at 0"):
            list(in_order(task, chunks(40, 4), by, lambda done: None))
    assert bits(PASSES["knn_loo"](client=client)) == reference("knn_loo")  # and the workers are there still


def _loky():
    with joblib.parallel_config(backend="loky"):
        return workers(2)


def test_a_consumer_that_stops_early_leaves_nothing_behind(client):
    stream = in_order(lambda group: group.start, chunks(400, 4), workers(client=client), lambda done: None)
    assert [next(stream), next(stream)] == [0, 4]
    stream.close()
    deadline = time.monotonic() + 10
    while client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) and time.monotonic() < deadline:
        time.sleep(0.05)
    assert client.run_on_scheduler(lambda dask_scheduler: len(dask_scheduler.tasks)) == 0


class TestWorkersDie:
    @pytest.fixture
    def mortal(self):
        with (
            distributed.LocalCluster(n_workers=2, threads_per_worker=1, dashboard_address=":0") as cluster,
            distributed.Client(cluster) as client,
        ):
            yield client

    def kill(self, client, how_many, after=5):
        """A progress callback that kills workers when some work is done."""
        pids = list(client.run(os.getpid).values())
        killed = []

        def progress(done, total):
            progress.calls += 1
            if progress.calls == after and not killed:
                for pid in pids[:how_many]:
                    os.kill(pid, signal.SIGKILL)
                    killed.append(pid)

        progress.calls, progress.killed = 0, killed
        return progress

    @pytest.mark.parametrize(("name", "how_many"), [("knn_shapley", 1), ("self_waka", 2), ("data_shapley", 1)])
    def test_the_others_do_their_work_and_those_that_come_back_too(self, mortal, name, how_many):
        dies = self.kill(mortal, how_many)
        assert bits(ALL[name](client=mortal, progress=dies)) == reference(name)
        assert len(dies.killed) == how_many
        mortal.wait_for_workers(2, timeout=30)  # their nannies have seen to it
        assert bits(ALL[name](client=mortal)) == reference(name)

    def test_one_that_joins_later_is_sent_the_data(self, mortal):
        def progress(done, total):
            progress.calls += 1
            if progress.calls == 4:
                mortal.cluster.scale(3)

        progress.calls = 0
        assert bits(PASSES["self_shapley"](client=mortal, progress=progress)) == reference("self_shapley")

    def test_a_block_that_kills_everybody_is_told(self, mortal):
        def task(group):
            os.kill(os.getpid(), signal.SIGKILL)

        with pytest.raises(da.UnavailableError, match="died 4 times"):
            list(in_order(task, chunks(8, 4), workers(client=mortal), lambda done: None))

    def test_processes_that_die_are_replaced(self):
        def progress(done, total):
            progress.calls += 1
            if progress.calls == 3:
                from joblib.externals.loky import get_reusable_executor

                for worker in list(get_reusable_executor(reuse=True)._processes.values())[:1]:
                    os.kill(worker.pid, signal.SIGKILL)

        progress.calls = 0
        with joblib.parallel_config(backend="loky", n_jobs=2):
            found = PASSES["self_shapley"](progress=progress)
        assert bits(found) == reference("self_shapley")


@pytest.fixture
def own_scheduler(tmp_path):
    """A scheduler and a worker as processes of their own, as on a real cluster; and a client."""
    file = tmp_path / "scheduler.json"
    log = (tmp_path / "log").open("wb")
    python = [sys.executable, "-W", "ignore", "-m"]
    scheduler = subprocess.Popen(
        [*python, "distributed.cli.dask_scheduler", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)],
        stdout=log, stderr=log,
    )  # fmt: skip
    worker = subprocess.Popen(
        [*python, "distributed.cli.dask_worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-dashboard",
         "--local-directory", str(tmp_path), "--death-timeout", "60"],
        stdout=log, stderr=log,
    )  # fmt: skip
    client = None
    try:
        deadline = time.monotonic() + 60
        while not file.exists() and time.monotonic() < deadline:
            time.sleep(0.1)
        client = distributed.Client(scheduler_file=str(file), timeout=5, set_as_default=False)
        client.wait_for_workers(1, timeout=60)
        yield scheduler, client
    finally:
        for process in (scheduler, worker):
            process.kill()
            process.wait()
        if client is not None:
            client.close(timeout=1)
        log.close()


def test_a_scheduler_that_is_lost_is_told_and_the_checkpoint_gone_on_from(own_scheduler, tmp_path):
    scheduler, client = own_scheduler

    def progress(done, total):
        progress.calls += 1
        if progress.calls == 5:
            scheduler.kill()

    progress.calls = 0
    began = time.monotonic()
    with pytest.raises(
        da.UnavailableError, match=r"Dask scheduler at tcp://.* does not answer.*[1-9]\d* of 38 blocks are kept in"
    ) as told:
        PASSES["knn_shapley"](client=client, checkpoint=tmp_path / "kept", progress=progress)
    assert time.monotonic() - began < 20
    assert "run it again with the same checkpoint" in str(told.value)
    seen = []
    found = PASSES["knn_shapley"](checkpoint=tmp_path / "kept", progress=lambda done, total: seen.append(done))
    assert bits(found) == reference("knn_shapley")
    assert seen[0] >= 4 * 4  # blocks of 4 validation points
    with pytest.raises(
        da.UnavailableError, match="does not answer any more|client is closed, .* its scheduler was lost"
    ):
        PASSES["knn_shapley"](client=client)


def test_workers_that_are_all_lost_for_good_are_told_and_the_checkpoint_gone_on_from(
    own_scheduler, tmp_path, monkeypatch
):
    _, client = own_scheduler
    [pids] = client.run(lambda: (os.getppid(), os.getpid())).values()  # its nanny first, who would start it again
    monkeypatch.setattr(_cluster, "PATIENCE", 1.0)

    def progress(done, total):
        progress.calls += 1
        if progress.calls == 5:
            for pid in pids:
                os.kill(pid, signal.SIGKILL)

    progress.calls = 0
    with pytest.raises(
        da.UnavailableError, match=r"all Dask workers died, and within 1 seconds none.*[1-9]\d* of 38 blocks are kept"
    ):
        PASSES["knn_shapley"](client=client, checkpoint=tmp_path / "kept", progress=progress)
    assert bits(PASSES["knn_shapley"](checkpoint=tmp_path / "kept")) == reference("knn_shapley")


def test_workers_that_die_while_the_data_are_sent_are_not_taken_for_the_scheduler(own_scheduler, monkeypatch):
    _, client = own_scheduler
    [pids] = client.run(lambda: (os.getppid(), os.getpid())).values()
    ship = _cluster.Cluster._ship

    def dying(self):
        for pid in pids:
            os.kill(pid, signal.SIGKILL)
        deadline = time.monotonic() + 30
        while client.nthreads() and time.monotonic() < deadline:
            time.sleep(0.05)
        ship(self)

    monkeypatch.setattr(_cluster.Cluster, "_ship", dying)
    with pytest.raises(da.UnavailableError, match=r"all Dask workers of tcp://.* died while the data were sent"):
        PASSES["knn_loo"](client=client)


def test_semivalues_tell_of_a_lost_scheduler_too(own_scheduler, tmp_path):
    scheduler, client = own_scheduler

    def progress(done, total):
        scheduler.kill()

    with pytest.raises(da.UnavailableError, match=r"does not answer.*coalitions are kept: run it again"):
        COALITIONS["data_shapley"](client=client, checkpoint=tmp_path / "kept", progress=progress)
    assert bits(COALITIONS["data_shapley"](n_jobs=1, checkpoint=tmp_path / "kept")) == reference("data_shapley")


class TestRefused:
    def test_what_is_no_client(self):
        with pytest.raises(da.InputError, match=r"client must be a dask\.distributed\.Client, got str"):
            PASSES["knn_loo"](client="tcp://somewhere:8786")

    def test_a_client_that_is_closed(self, client):
        own = distributed.Client(client.scheduler.address, set_as_default=False)
        own.close()
        with pytest.raises(da.UnavailableError, match=r"client is closed, .*make another one with Client\(address\)"):
            PASSES["knn_loo"](client=own)

    def test_a_cluster_without_workers(self, monkeypatch):
        monkeypatch.setattr(_cluster, "PATIENCE", 0.2)
        with (
            distributed.LocalCluster(n_workers=0, dashboard_address=":0") as cluster,
            distributed.Client(cluster, set_as_default=False) as client,
            pytest.raises(da.UnavailableError, match="has no workers"),
        ):
            PASSES["knn_loo"](client=client)

    def test_workers_of_another_version(self, client, monkeypatch):
        monkeypatch.setattr(_cluster, "__version__", "9.9")
        with pytest.raises(da.UnavailableError, match=r"has datassay .*, and here is 9\.9: install the same"):
            PASSES["knn_loo"](client=client)

    def test_a_worker_of_another_version_that_joins_later(self, client, monkeypatch):
        monkeypatch.setattr(_cluster.Cluster, "_check_versions", lambda self: None)  # it was not there to be asked
        monkeypatch.setattr(_cluster, "__version__", "9.9")
        with pytest.raises(
            da.UnavailableError, match=r"worker has datassay .*, and who asks it 9\.9: install the same"
        ):
            PASSES["knn_loo"](client=client)

    def test_a_model_that_cannot_be_sent(self, client):
        import threading

        lock = threading.Lock()

        def scoring(model, X, y):
            with lock:
                return float(model.score(X, y))

        train, validation = da.census(40, seed=2).split(0.5)
        with pytest.raises(da.InputError, match="cannot be sent to workers"):
            da.data_shapley(
                LogisticRegression(), train, X_val=validation, scoring=scoring, client=client, max_coalitions=200
            )

    def test_no_dask(self, monkeypatch):
        monkeypatch.setitem(sys.modules, "distributed", None)
        with pytest.raises(da.MissingDependencyError, match=r'pip install "datassay\[dask\]"'):
            PASSES["knn_loo"](client=object())


class TestCommandLine:
    def run(self, *arguments):
        command = str(Path(sys.executable).parent / "datassay")
        return subprocess.run([command, *arguments], capture_output=True, text=True, timeout=120)

    def test_values_from_a_cluster_are_those_from_here(self, client, tmp_path):
        address = client.scheduler.address
        plain = run("value", "iris", "--k", "auto", "-q", "-o", str(tmp_path / "plain.csv"))
        there = self.run(
            "value", "iris", "--k", "auto", "-q", "-o", str(tmp_path / "there.csv"), "--dask", address,
            "--checkpoint", str(tmp_path / "kept"),
        )  # fmt: skip
        assert (plain.exit_code, there.returncode) == (0, 0), there.stderr
        assert (tmp_path / "plain.csv").read_bytes() == (tmp_path / "there.csv").read_bytes()
        other = self.run("value", "iris", "--k", "3", "-q", "--checkpoint", str(tmp_path / "kept"))
        assert other.returncode == 2
        assert "other parameters: k was" in other.stderr.replace("\n", " ")

    @pytest.mark.parametrize(
        ("address", "status", "told"),
        [
            ("tcp://127.0.0.1:9", 4, "no Dask scheduler answers"),
            ("nonsense://x", 2, "is no address of a Dask scheduler"),
        ],
    )
    def test_nobody_at_the_address_is_told(self, address, status, told, capsys, monkeypatch):
        monkeypatch.setattr(_cluster, "ANSWERS_WITHIN", 0.5)
        monkeypatch.setattr(sys, "argv", ["datassay", "value", "iris", "--dask", address, "-q"])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == status
        assert told in " ".join(capsys.readouterr().err.split())

    @pytest.mark.parametrize("address", ["foo", "tcp://foo", "tcp://foo:", "tls://[::1]", "foo:port"])
    def test_an_address_without_a_port_is_refused_before_there_is_a_client(self, address, capsys, monkeypatch):
        monkeypatch.setattr(distributed, "Client", lambda *_, **__: pytest.fail("a client was made"))
        monkeypatch.setattr(sys, "argv", ["datassay", "value", "iris", "--dask", address, "-q"])
        with pytest.raises(SystemExit) as stop:
            main()
        assert stop.value.code == 2
        assert f"{address!r} names no port" in " ".join(capsys.readouterr().err.split())

    def test_what_dask_logs_is_kept_off_the_screen_by_the_command_line_alone(self, client):
        ours = [logging.getLogger(name) for name in ("distributed", "distributed.client")]
        before = [logger.level for logger in ours]
        screen = logging.StreamHandler(io.StringIO())
        for logger in ours:
            logger.addHandler(screen)
        try:
            with _cluster.connect(client.scheduler.address):
                for name in ("distributed", "distributed.client", "distributed.new"):
                    logging.getLogger(name).error("a traceback of thirty lines")
                assert screen.stream.getvalue() == ""
            assert [logger.level for logger in ours] == before
            ours[1].error("heard")
            assert "heard" in screen.stream.getvalue()
        finally:
            for logger in ours:
                logger.removeHandler(screen)

    def test_attack_and_risk_keep_what_they_do(self, client, tmp_path, monkeypatch):
        monkeypatch.chdir(tmp_path)
        da.census(60, seed=1).save("people.csv")
        for at, arguments in enumerate(
            [("attack", "iris", "--games", "2"), ("risk", "people.csv", "people.csv", "--shapley", "--people", "9")]
        ):
            plain = run(*arguments, "--json", "-q")
            kept = ("--json", "-q", "--checkpoint", f"kept{at}", "--dask", client.scheduler.address)
            first, again = self.run(*arguments, *kept), run(*arguments, *kept)
            assert plain.stdout == first.stdout == again.stdout != ""
            assert len(list((tmp_path / f"kept{at}").iterdir())) >= 2


def test_what_a_killed_process_left_for_workers_is_removed_and_what_a_live_one_holds_is_not(tmp_path, monkeypatch):
    program = "import sys; from datassay._packing import pack; print(pack(len, 'it'), flush=True); sys.stdin.read()"
    processes = [
        subprocess.Popen(
            [sys.executable, "-c", program], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env={**os.environ, "TMPDIR": str(tmp_path)},
        )
        for _ in range(2)
    ]  # fmt: skip
    try:
        dead, alive = (Path(process.stdout.readline().strip()) for process in processes)
        processes[0].kill()
        processes[0].wait()
        (tmp_path / "datassay-of-mine").mkdir()  # with no mark of ours
        monkeypatch.setattr(_packing.tempfile, "tempdir", str(tmp_path))
        assert dead.parent == alive.parent == tmp_path
        assert dead.is_dir()
        here = _packing.pack(len, "it")
        again = _packing.pack(len, "it")
        assert sorted(tmp_path.iterdir()) == sorted([alive, here, again, tmp_path / "datassay-of-mine"])
        for folder in (here, again):
            _packing.remove(folder)
        assert sorted(tmp_path.iterdir()) == sorted([alive, tmp_path / "datassay-of-mine"])
    finally:
        for process in processes:
            process.kill()
            process.communicate()


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_answers_come_although_the_thread_that_takes_them_in_has_ended(monkeypatch):
    """As it does where warnings are errors and loky warns that a worker went home."""
    monkeypatch.setattr(_processes, "LOOK_UP", 0.2)
    with joblib.parallel_config(backend="loky", n_jobs=2):
        da.knn_shapley(*data())  # workers are there
        kind, ended = process_executor._ExecutorManagerThread, []
        as_before = kind.process_result_item

        def process_result_item(self, item):
            if not ended:
                ended.append(self)
                raise RuntimeError
            return as_before(self, item)

        monkeypatch.setattr(kind, "process_result_item", process_result_item)
        assert bits(da.knn_shapley(*data())) == reference("knn_shapley")
    assert not ended[0].is_alive()
