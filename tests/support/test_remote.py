"""Files elsewhere: fetched once, anew when they change, and one line for whatever stands in between."""

import pickle
import sys

import pytest

from testifai.errors import InputError
from testifai.support import remote

fsspec = pytest.importorskip("fsspec")


@pytest.fixture(autouse=True)
def cache(tmp_path, monkeypatch):
    monkeypatch.setenv("TESTIFAI_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def memory():
    system = fsspec.filesystem("memory")
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def fetches(monkeypatch) -> list[str]:
    fetched: list[str] = []
    plain = remote._fetch
    monkeypatch.setattr(remote, "_fetch", lambda address, copy: (fetched.append(address), plain(address, copy)))
    return fetched


def test_a_file_is_fetched_once_and_again_when_it_changes(memory, monkeypatch):
    fetched = fetches(monkeypatch)
    memory.pipe("/x/file.bin", b"one")
    first = remote.place("memory://x/file.bin")
    assert (first.read_bytes(), first.name) == (b"one", "file.bin")
    assert remote.place("memory://x/file.bin") == first
    assert fetched == ["memory://x/file.bin"]
    memory.pipe("/x/file.bin", b"two")
    assert remote.place("memory://x/file.bin").read_bytes() == b"two"
    assert len(fetched) == 2


def test_a_storage_that_says_nothing_of_versions_is_asked_in_every_process(memory, monkeypatch):
    monkeypatch.setattr(type(memory), "info", lambda self, path, **_: {"name": path, "size": 3, "type": "file"})
    fetched = fetches(monkeypatch)
    memory.pipe("/x.bin", b"one")
    remote.place("memory://x.bin")
    remote.place("memory://x.bin")
    assert len(fetched) == 1
    monkeypatch.setattr(remote, "_fetched", {})  # another process
    memory.pipe("/x.bin", b"two")
    assert remote.place("memory://x.bin").read_bytes() == b"two"


def test_what_is_here_is_opened_where_it_is(tmp_path):
    assert remote.place(f"file://{tmp_path}/x.npz") == tmp_path / "x.npz"
    assert remote.place("file://x.npz", tmp_path) == tmp_path / "x.npz"


def test_another_process_gets_the_same_file_or_a_line(memory, tmp_path):
    memory.pipe("/model.onnx", b"one")
    copy = remote.place("memory://model.onnx")
    told = pickle.loads(pickle.dumps(remote.portable(copy)))
    assert remote.opened(told) == copy
    copy.unlink()  # another machine
    assert remote.opened(told).read_bytes() == b"one"
    memory.pipe("/model.onnx", b"two")
    with pytest.raises(InputError, match=r"memory://model\.onnx is not what it was when the run began"):
        remote.opened(told)
    assert remote.opened(remote.portable(tmp_path)) == tmp_path


@pytest.mark.parametrize(
    ("address", "line"),
    [
        ("memory://nothing.npz", "memory://nothing.npz does not exist"),
        ("nowhere://x.npz", "nowhere://x.npz cannot be read (ValueError: Protocol not known: nowhere)"),
    ],
)
def test_what_is_not_there_is_one_line(address, line):
    with pytest.raises(InputError) as told:
        remote.place(address)
    assert str(told.value) == line


def test_a_missing_library_is_named(monkeypatch):
    from fsspec.registry import known_implementations

    lost = {"class": "no_such_library.X", "err": "Install no_such_library to access it"}
    monkeypatch.setitem(known_implementations, "lost", lost)
    with pytest.raises(InputError, match=r"lost://x\.npz needs another library: Install no_such_library to access it"):
        remote.place("lost://x.npz")
    monkeypatch.setitem(sys.modules, "fsspec.core", None)
    with pytest.raises(InputError, match=r"fsspec is not installed; install it with: pip install 'testifai\[remote\]'"):
        remote.place("s3://bucket/x.npz")
