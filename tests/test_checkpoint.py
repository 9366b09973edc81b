"""Stop and resume: killed at any moment, a run goes on to the same bits; another one's folder is refused."""

import errno
import json
import os
import shutil
import sqlite3
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path

import numpy as np
import pytest

import datassay as da
from datassay import _checkpoint
from long_runs import ALL, COALITIONS, PASSES, bits, data, people, reference


@pytest.fixture
def eager(monkeypatch):
    """Every block is kept as soon as it is done."""
    monkeypatch.setattr(_checkpoint, "EVERY", 0.0)
    monkeypatch.setattr(_checkpoint, "SHARE", np.inf)


class Stop(Exception):
    pass


def stop_after(blocks, error=KeyboardInterrupt):
    calls = []

    def progress(done, total):
        calls.append(done)
        if len(calls) > blocks:
            raise error

    return progress


@pytest.mark.parametrize("name", ALL)
def test_a_checkpoint_does_not_change_the_bits_and_a_finished_one_gives_them_at_once(name, tmp_path):
    assert bits(ALL[name](n_jobs=2, checkpoint=tmp_path / "kept")) == reference(name)
    seen = []
    again = ALL[name](n_jobs=1, checkpoint=tmp_path / "kept", progress=lambda done, total: seen.append(done))
    assert bits(again) == reference(name)
    if name in COALITIONS:
        assert again.fits == 0
    elif name not in ("membership_attack", "reidentification_risk", "reidentification_shapley"):
        assert len(seen) <= 1  # everything came from the folder


@pytest.mark.parametrize("error", [KeyboardInterrupt, Stop])
@pytest.mark.parametrize("name", [name for name in PASSES if name != "membership_attack"])
def test_a_run_that_was_stopped_goes_on_to_the_same_bits(name, error, tmp_path):
    """Whether by ^C or by an error: what was done is kept, though the time to write it had not come."""
    before = stop_after(3, error)
    with pytest.raises(error):
        PASSES[name](n_jobs=2, checkpoint=tmp_path / "kept", progress=before)
    kept = sorted(file.name for file in (tmp_path / "kept").glob("*.npz"))
    assert kept
    seen = []
    found = PASSES[name](
        n_jobs=1, checkpoint=tmp_path / "kept", progress=lambda done, total: seen.append((done, total))
    )
    assert bits(found) == reference(name)
    assert seen[-1][0] == seen[-1][1]
    assert [done for done, _ in seen] != [done for done, _ in sorted(set(seen))] or seen[0][0] > 0


def test_a_sum_takes_the_room_of_one_vector_however_many_blocks(tmp_path, eager):
    X, y, X_val, y_val = data()
    da.knn_shapley(X, y, X_val, y_val, checkpoint=tmp_path / "kept", n_jobs=1)
    files = list((tmp_path / "kept").glob("*.npz"))
    assert len(files) == 1
    assert files[0].stat().st_size < 8 * len(X) + 2000


def test_blocks_are_done_once(tmp_path, eager, monkeypatch):
    """The second half is all that the second run does."""
    from datassay.neighbors import FullRanking

    rows = []
    block = FullRanking.block

    def counted(self, space, start, n, scratch):
        rows.extend(range(start, start + n))
        return block(self, space, start, n, scratch)

    monkeypatch.setattr(FullRanking, "block", counted)
    for error in (Stop, None):
        try:
            da.knn_shapley(
                *data(), n_jobs=1, checkpoint=tmp_path / "kept", progress=stop_after(20 if error else 999, Stop)
            )
        except Stop:
            assert 0 < len(rows) < 150
    # The block whose report was interrupted had been computed and not yet been added: it alone is done again.
    assert sorted(set(rows)) == list(range(150))
    assert len(rows) <= 150 + 3


class TestRefused:
    @pytest.fixture
    def folder(self, tmp_path):
        self.run(tmp_path / "kept")
        return tmp_path / "kept"

    def run(self, folder, data=None, function=da.knn_shapley, **options):
        return function(*(data or globals()["data"]()), checkpoint=folder, **{"k": 3, **options})

    def test_another_parameter_is_named(self, folder):
        with pytest.raises(da.InputError, match=r"other parameters: k was 3 and is 4; give another folder"):
            self.run(folder, k=4)
        with pytest.raises(da.InputError, match="utility was 'soft' and is 'fraction'"):
            self.run(folder, utility="fraction")

    def test_another_method_is_named(self, folder):
        with pytest.raises(da.InputError, match="one of knn_shapley, not of knn_loo"):
            self.run(folder, function=da.knn_loo)

    def test_another_version_is_named(self, folder):
        file = folder / "checkpoint.json"
        there = json.loads(file.read_text())
        there["datassay"]["version"] = "0.0.1"
        file.write_text(json.dumps(there))
        with pytest.raises(da.InputError, match=r"one of datassay 0\.0\.1, and this is"):
            self.run(folder)

    @pytest.mark.parametrize("which", range(4))
    def test_one_number_of_the_data_is_enough(self, folder, which):
        changed = [part.copy() for part in data()]
        changed[which][5] = changed[which][5] + 1 if which % 2 == 0 else (changed[which][5] + 1) % 3
        with pytest.raises(da.InputError, match="one of other data"):
            self.run(folder, data=changed)

    def test_other_weights_are_other_data(self, folder):
        with pytest.raises(da.InputError, match="weights was None and is 'given'"):
            self.run(folder, weights=np.arange(150))

    def test_how_it_is_run_is_nobodys_concern(self, folder):
        assert bits(self.run(folder, n_jobs=2, memory=2**20)) == bits(da.knn_shapley(*data(), k=3))

    def test_a_folder_of_something_else_is_left_alone(self, tmp_path):
        (tmp_path / "thesis.tex").write_text("42")
        with pytest.raises(da.InputError, match=r"holds .*thesis\.tex.* and no checkpoint"):
            self.run(tmp_path)
        assert [file.name for file in tmp_path.iterdir()] == ["thesis.tex"]

    def test_a_file_or_a_folder_in_the_void_is_refused(self, tmp_path):
        (tmp_path / "file").write_text("")
        with pytest.raises(da.InputError, match="is a file"):
            self.run(tmp_path / "file")
        with pytest.raises(da.InputError, match="does not exist"):
            self.run(tmp_path / "no" / "where")
        with pytest.raises(da.InputError, match="must be the name of a folder"):
            self.run(5)

    def test_a_damaged_file_is_named(self, folder):
        [file] = folder.glob("*.npz")
        content = bytearray(file.read_bytes())
        content[len(content) // 2] ^= 1
        file.write_bytes(content)
        with pytest.raises(da.InputError, match=r"sum-1\.npz' of the checkpoint is damaged"):
            self.run(folder)

    def test_a_file_of_another_calculation_is_named(self, folder, tmp_path):
        """As when a folder is deleted under a run, and another one begins in it: each would write to it."""
        self.run(tmp_path / "other", k=4)
        (tmp_path / "other" / "sum-1.npz").rename(folder / "sum-1.npz")
        with pytest.raises(da.InputError, match=r"sum-1\.npz' was not written by this calculation"):
            self.run(folder)

    @pytest.mark.parametrize("told", [{"version": None}, {"parameters": [1]}, {"parameters": None}])
    def test_a_description_that_lacks_something_is_named(self, folder, told):
        file = folder / "checkpoint.json"
        there = json.loads(file.read_text())
        if "version" in told:
            del there["datassay"]["version"]
        file.write_text(json.dumps(there | {name: value for name, value in told.items() if name != "version"}))
        with pytest.raises(da.InputError, match=r"checkpoint\.json' is not a checkpoint of datassay"):
            self.run(folder)

    def test_a_control_group_is_part_of_the_data(self, tmp_path):
        PASSES["reidentification_risk"](checkpoint=tmp_path / "kept")
        with pytest.raises(da.InputError, match="other data"):
            da.reidentification_risk(people(), people(), control=people(50, 8), checkpoint=tmp_path / "kept")

    def test_semivalues_of_another_model_are_refused(self, tmp_path):
        COALITIONS["data_shapley"](checkpoint=tmp_path / "kept", n_jobs=1)
        with pytest.raises(da.InputError, match="model was"):
            COALITIONS["data_shapley of a tree"](checkpoint=tmp_path / "kept", n_jobs=1)
        with pytest.raises(da.InputError, match="one of data_shapley, not of beta_shapley"):
            COALITIONS["beta_shapley"](checkpoint=tmp_path / "kept", n_jobs=1)
        with pytest.raises(da.InputError, match="leave out one of cache and checkpoint"):
            COALITIONS["data_shapley"](checkpoint=tmp_path / "kept", cache=tmp_path / "cache", n_jobs=1)


def test_two_processes_do_not_share_a_folder(tmp_path):
    script = f"""
        import fcntl, time
        lock = open({str(tmp_path / "kept" / ".lock")!r}, "wb")
        fcntl.lockf(lock, fcntl.LOCK_EX)
        print("held", flush=True)
        time.sleep(60)
    """
    da.knn_shapley(*data(), checkpoint=tmp_path / "kept")
    other = subprocess.Popen([sys.executable, "-c", textwrap.dedent(script)], stdout=subprocess.PIPE)
    try:
        assert other.stdout.readline() == b"held\n"
        with pytest.raises(da.InputError, match="another process is writing"):
            da.knn_shapley(*data(), checkpoint=tmp_path / "kept")
    finally:
        other.kill()
        other.wait()
        other.stdout.close()
    assert bits(da.knn_shapley(*data(), checkpoint=tmp_path / "kept")) == reference("knn_shapley")


def test_two_threads_do_not_share_a_folder(tmp_path):
    refused = []

    def progress(done, total):
        if not refused:
            with ThreadPoolExecutor(1) as pool, pytest.raises(da.UnavailableError, match="another thread is writing"):
                pool.submit(da.knn_shapley, *data(), checkpoint=tmp_path / "kept").result()
            refused.append(done)

    assert bits(da.knn_shapley(*data(), checkpoint=tmp_path / "kept", progress=progress)) == reference("knn_shapley")
    assert refused


def test_of_two_that_begin_in_a_new_folder_at_once_the_later_finds_what_the_earlier_wrote(tmp_path, monkeypatch):
    looks = []
    look = _checkpoint.Checkpoint._is_there

    def meanwhile(self, own):
        found = look(self, own)
        if not looks:  # between a look and what follows from it, somebody else begins
            looks.append(found)
            da.knn_shapley(*data(), k=4, checkpoint=tmp_path / "kept")
        return found

    monkeypatch.setattr(_checkpoint.Checkpoint, "_is_there", meanwhile)
    with pytest.raises(da.InputError, match="k was 4 and is 3"):
        da.knn_shapley(*data(), k=3, checkpoint=tmp_path / "kept")
    assert looks == [False]


def test_a_folder_that_cannot_be_locked_is_told(tmp_path, monkeypatch):
    fcntl = pytest.importorskip("fcntl")
    (tmp_path / "kept" / ".lock").mkdir(parents=True)
    with pytest.raises(da.UnavailableError, match=r"no checkpoint can be kept in .*kept"):
        da.knn_shapley(*data(), checkpoint=tmp_path / "kept")

    def no_locks(*arguments):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(fcntl, "lockf", no_locks)
    with pytest.raises(da.UnavailableError, match=r"no checkpoint can be kept in .*locks"):
        da.knn_shapley(*data(), checkpoint=tmp_path / "other")


def test_copies_that_somebody_made_do_no_harm(tmp_path, eager):
    PASSES["self_shapley"](checkpoint=tmp_path / "kept")
    for file in list((tmp_path / "kept").glob("*.npz")):
        file.rename(file.with_stem(f"{file.stem} (1)"))
    assert bits(PASSES["self_shapley"](checkpoint=tmp_path / "kept")) == reference("self_shapley")


def test_a_folder_that_is_deleted_meanwhile_is_told(tmp_path, eager):
    def progress(done, total):
        shutil.rmtree(tmp_path / "kept", ignore_errors=True)

    with pytest.raises(da.UnavailableError, match="it was deleted while this ran"):
        PASSES["knn_shapley"](n_jobs=1, checkpoint=tmp_path / "kept", progress=progress)
    assert bits(PASSES["knn_shapley"](n_jobs=1, checkpoint=tmp_path / "kept")) == reference("knn_shapley")


def test_scores_that_turn_out_to_be_damaged_when_others_join_them_are_told(tmp_path, monkeypatch):
    class Damaged(sqlite3.Connection):
        def executemany(self, *arguments):
            if len(arguments[1]) > 1:  # what is kept when the file is opened goes well
                raise sqlite3.DatabaseError("database disk image is malformed")
            return super().executemany(*arguments)

    monkeypatch.setattr(sqlite3, "connect", partial(sqlite3.connect, factory=Damaged))
    with pytest.raises(da.InputError, match=r"utilities\.sqlite' is damaged \(database disk image is malformed\)"):
        COALITIONS["data_shapley"](checkpoint=tmp_path / "kept", n_jobs=1)


@pytest.mark.parametrize("name", ["knn_shapley", "self_waka"])
def test_a_full_disk_is_told_and_what_was_kept_before_is_gone_on_from(name, tmp_path, eager, monkeypatch):
    calls = []
    sync = os.fsync

    def full(handle):
        calls.append(handle)
        if len(calls) > 12:
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        sync(handle)

    with monkeypatch.context() as patched:
        patched.setattr(os, "fsync", full)
        with pytest.raises(da.UnavailableError, match=r"cannot be written \(No space left on device\); what was kept"):
            PASSES[name](n_jobs=1, checkpoint=tmp_path / "kept")
    assert not list((tmp_path / "kept").glob(".writing-*"))
    assert list((tmp_path / "kept").glob("*.npz"))
    assert bits(PASSES[name](n_jobs=1, checkpoint=tmp_path / "kept")) == reference(name)


# NumPy 2.0 leaves the archive open that it could not write.
@pytest.mark.filterwarnings("ignore:.*ZipFile:pytest.PytestUnraisableExceptionWarning")
@pytest.mark.parametrize("name", ["membership_attack", "data_shapley"])
def test_a_disk_that_is_really_full_is_told_too(name, tmp_path, eager):
    if os.name != "posix" or os.geteuid() != 0:
        pytest.skip("only root can mount a small disk")
    mounted = subprocess.run(["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(tmp_path)], capture_output=True)
    if mounted.returncode:
        pytest.skip(f"no small disk can be mounted here: {mounted.stderr.decode().strip()}")
    try:
        with pytest.raises(da.UnavailableError, match=r"cannot be written"):
            ALL[name](n_jobs=1, checkpoint=tmp_path / "kept")
        subprocess.run(["mount", "-o", "remount,size=64m", str(tmp_path)], check=True)
        assert bits(ALL[name](n_jobs=1, checkpoint=tmp_path / "kept")) == reference(name)
    finally:
        subprocess.run(["umount", str(tmp_path)], check=True)


def test_scores_that_cannot_be_opened_are_nothing_about_the_data_unless_they_are_something_else(tmp_path):
    kept = tmp_path / "kept"
    COALITIONS["data_shapley"](checkpoint=kept, n_jobs=1)
    (kept / "utilities.sqlite").unlink()
    (kept / "utilities.sqlite").mkdir()  # which nobody can open either
    with pytest.raises(da.UnavailableError, match=r"utilities\.sqlite' cannot be used as a cache of utilities"):
        COALITIONS["data_shapley"](checkpoint=kept, n_jobs=1)
    (kept / "utilities.sqlite").rmdir()
    (kept / "utilities.sqlite").write_bytes(b"no database" * 100)
    with pytest.raises(da.InputError, match="cannot be used as a cache of utilities") as told:
        COALITIONS["data_shapley"](checkpoint=kept, n_jobs=1)
    assert not isinstance(told.value, da.UnavailableError)


KILLED = """
    import os, random, signal, sqlite3, sys, time
    from pathlib import Path

    sys.path.insert(0, {tests!r})
    import numpy as np
    from long_runs import ALL, bits, reference
    from datassay import _checkpoint

    _checkpoint.EVERY, _checkpoint.SHARE = 0.0, float("inf")
    random.seed(0)
    name, folder = sys.argv[1], Path(sys.argv[2])
    expected = reference(name)
    began = time.monotonic()
    ALL[name](n_jobs=1, checkpoint=folder / "timed")
    whole = time.monotonic() - began
    kills = runs = 0
    while kills < int(sys.argv[3]):
        runs += 1
        kept = folder / str(runs)
        while True:
            child = os.fork()
            if child == 0:
                code = 1
                try:
                    code = 0 if bits(ALL[name](n_jobs=1, checkpoint=kept)) == expected else 2
                finally:
                    os._exit(code)
            time.sleep(random.uniform(0, 0.7 * whole))
            os.kill(child, signal.SIGKILL)
            status = os.waitpid(child, 0)[1]
            for file in kept.glob("*.npz"):
                with np.load(file) as content:
                    [content[part] for part in content.files]
            for file in kept.glob("*.sqlite"):
                database = sqlite3.connect(file)
                assert database.execute("PRAGMA integrity_check").fetchone() == ("ok",)
                database.close()
            if os.WIFSIGNALED(status):
                kills += 1
            else:
                assert os.WEXITSTATUS(status) == 0, (name, status)
                break
        assert bits(ALL[name](n_jobs=1, checkpoint=kept)) == expected
    print(kills, "kills,", runs, "runs")
"""


@pytest.mark.parametrize(("name", "kills"), [("knn_shapley", 20), ("self_shapley", 20), ("data_shapley of a tree", 6)])
def test_killed_at_any_moment_it_goes_on_to_the_same_bits(name, kills, tmp_path):
    """kill -9 at random moments, until the run gets through; again and again."""
    script = textwrap.dedent(KILLED.format(tests=str(Path(__file__).parent)))
    done = subprocess.run(
        [sys.executable, "-c", script, name, str(tmp_path), str(kills)], capture_output=True, text=True, timeout=300
    )
    assert done.returncode == 0, done.stderr[-2000:]
    assert int(done.stdout.split()[0]) >= kills
