"""One writer at a time, and no lock outlives its process."""

import signal
import subprocess
import sys
import time

import pytest

from testifai.errors import InputError
from testifai.runs import lock as lock_module
from testifai.runs.lock import Lock, is_held
from testifai.runs.store import Store

HOLD = """
import sys, time
from testifai.runs.lock import Lock, is_held
from pathlib import Path
lock = Lock(Path(sys.argv[1]))
print("held", flush=True)
time.sleep(60)
"""


@pytest.fixture
def holder(tmp_path):
    """Another process that holds the lock of run.db."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(tmp_path / "run.db")], stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "held\n"
    yield process
    process.kill()
    process.wait()
    process.stdout.close()


def test_a_second_writer_is_refused_with_one_line_and_the_next_one_let_in(tmp_path):
    first = Lock(tmp_path / "run.db")
    with pytest.raises(InputError, match=r"run\.db is being written by another testifai; wait") as caught:
        Lock(tmp_path / "run.db")
    assert "\n" not in str(caught.value)
    Lock(tmp_path / "other.db").release()
    first.release()
    first.release()  # twice is harmless
    Lock(tmp_path / "run.db").release()
    assert not list(tmp_path.iterdir())


def test_a_writer_in_another_process_keeps_us_out_and_changes_nothing(tmp_path, holder):
    with pytest.raises(InputError, match="being written by another testifai"):
        Store.create_or_open(tmp_path / "run.db")
    assert not (tmp_path / "run.db").exists()
    assert holder.poll() is None


@pytest.mark.parametrize("how", [signal.SIGKILL, signal.SIGTERM])
def test_the_lock_is_gone_with_its_process(tmp_path, holder, how):
    holder.send_signal(how)
    holder.wait()
    assert (tmp_path / "run.db-lock").exists()  # the name stays, the lock does not
    Lock(tmp_path / "run.db").release()
    assert not (tmp_path / "run.db-lock").exists()


def test_a_link_to_the_file_is_the_same_file(tmp_path):
    (tmp_path / "link.db").symlink_to(tmp_path / "run.db")
    with Store.create_or_open(tmp_path / "run.db"), pytest.raises(InputError, match="another testifai"):
        Store.create_or_open(tmp_path / "link.db")


def test_a_lock_taken_while_its_name_goes_away_is_taken_again(tmp_path, monkeypatch):
    """Between our open and our lock the holder may remove the name; locking the nameless file would keep nobody out."""
    from testifai.runs import lock as module

    real, calls = module._try_lock, []

    def try_lock(handle):
        calls.append(handle)
        if len(calls) == 1:
            (tmp_path / "run.db-lock").unlink()
        return real(handle)

    monkeypatch.setattr(module, "_try_lock", try_lock)
    held = Lock(tmp_path / "run.db")
    assert len(calls) == 2
    monkeypatch.undo()
    with pytest.raises(InputError, match="another testifai"):
        Lock(tmp_path / "run.db")
    held.release()


def test_many_processes_never_hold_it_together(tmp_path):
    """Each adds one to a file without any care but the lock's."""
    (tmp_path / "count").write_text("0")
    script = """
import sys, time
from pathlib import Path
from testifai.errors import InputError
from testifai.runs.lock import Lock, is_held
folder = Path(sys.argv[1])
done = 0
while done < 25:
    try:
        lock = Lock(folder / "run.db")
    except InputError:
        time.sleep(0.0005)
        continue
    value = int((folder / "count").read_text())
    time.sleep(0.0005)
    (folder / "count").write_text(str(value + 1))
    lock.release()
    done += 1
"""
    started = [subprocess.Popen([sys.executable, "-c", script, str(tmp_path)]) for _ in range(4)]
    deadline = time.monotonic() + 30
    codes = [process.wait(max(1, deadline - time.monotonic())) for process in started]
    assert codes == [0] * 4
    assert (tmp_path / "count").read_text() == "100"


def test_a_folder_that_cannot_be_written_is_named(tmp_path):
    (tmp_path / "file").touch()
    with pytest.raises(InputError, match=r"cannot write in .*file \(.*\); choose another place with --out"):
        Lock(tmp_path / "file" / "run.db")


def test_whether_it_is_held_is_seen_without_taking_it(tmp_path, holder):
    assert is_held(tmp_path / "run.db")
    holder.kill()
    holder.wait()
    assert not is_held(tmp_path / "run.db")
    assert not is_held(tmp_path / "other.db")


def test_who_looks_whether_it_is_held_keeps_no_writer_out(tmp_path, monkeypatch):
    """Even one who is slow about it: a writer waits a little."""
    fcntl = pytest.importorskip("fcntl")
    monkeypatch.setattr(lock_module, "MOMENT", 60)
    with (tmp_path / "run.db-lock").open("w") as looked_at:
        fcntl.flock(looked_at, fcntl.LOCK_SH)
        monkeypatch.setattr(lock_module.time, "sleep", lambda _: fcntl.flock(looked_at, fcntl.LOCK_UN))
        Lock(tmp_path / "run.db").release()
