from __future__ import annotations

import os
import signal
import subprocess
import sys
import time

import pytest

from testifai.errors import InputError
from testifai.operational.label_file import ChangedError, Classes, Filling

ANIMALS = Classes(("cat", "dog", "=frog"))
CONTENT = "id,mine,label\n17,x,dog\n3,y,\n5,z,\n"


@pytest.fixture
def path(tmp_path):
    made = tmp_path / "a.csv"
    made.write_text(CONTENT)
    return made


def test_labels_are_kept_changed_and_taken_away(path):
    file = Filling(path, ANIMALS)
    assert (file.examples, file.labels) == ((17, 3, 5), ["dog", "", ""])
    file.put(1, "Cat")
    file.put(0, "=frog")
    assert path.read_text() == "id,mine,label\n17,x,'=frog\n3,y,cat\n5,z,\n"  # no formula for a spreadsheet
    assert Filling(path, ANIMALS).labels == file.labels == ["=frog", "cat", ""]
    file.put(0, "dog")
    file.put(1, "")
    assert path.read_text() == CONTENT


def test_what_is_no_class_is_refused_and_nothing_is_written(path):
    with pytest.raises(InputError, match="'cow' is not a class"):
        Filling(path, ANIMALS).put(1, "cow")
    assert path.read_text() == CONTENT


def test_nothing_is_written_over_what_was_not_read(path):
    one, other = Filling(path, ANIMALS), Filling(path, ANIMALS)
    other.put(1, "cat")
    with pytest.raises(ChangedError, match=r"^a\.csv was changed by somebody else meanwhile"):
        one.put(2, "dog")
    assert path.read_text() == CONTENT.replace("y,", "y,cat")
    assert one.refresh()
    assert not one.refresh()
    one.put(2, "dog")
    assert Filling(path, ANIMALS).labels == ["dog", "cat", "dog"]
    path.unlink()
    with pytest.raises(InputError, match="does not exist"):
        one.put(2, "cat")


def test_a_disk_that_is_full_costs_nothing(path, monkeypatch):
    file = Filling(path, ANIMALS)
    monkeypatch.setattr("pathlib.Path.replace", lambda *_: (_ for _ in ()).throw(OSError(28, "No space left")))
    with pytest.raises(InputError, match="No space left"):
        file.put(1, "cat")
    monkeypatch.undo()
    assert (path.read_text(), file.labels[1]) == (CONTENT, "")
    file.put(1, "cat")
    assert [one.name for one in path.parent.iterdir()] == ["a.csv"]


def test_a_link_stays_one_and_others_may_read_as_before(path, tmp_path):
    path.chmod(0o664)
    link = tmp_path / "link.csv"
    link.symlink_to(path)
    Filling(link, ANIMALS).put(1, "cat")
    assert link.is_symlink()
    assert "3,y,cat" in path.read_text()
    assert path.stat().st_mode & 0o777 == 0o664


def test_a_file_without_rows(path):
    path.write_text("id,label\n")
    with pytest.raises(InputError, match="has no row to label"):
        Filling(path, ANIMALS)


WRITER = """
import sys
from pathlib import Path
from testifai.operational.label_file import Filling
from testifai.operational.label_file import Classes
file = Filling(Path(sys.argv[1]), Classes(("cat", "dog")))
print("ready", flush=True)
while True:
    for name in ("cat", "dog"):
        for row in range(len(file.labels)):
            file.put(row, name)
"""


@pytest.mark.skipif(not hasattr(signal, "SIGKILL"), reason="no SIGKILL here")
def test_killed_at_any_moment_the_file_is_whole(path):
    rows = 200
    path.write_text("id,label\n" + "".join(f"{row},\n" for row in range(rows)))
    for pause in (0.05, 0.13):
        process = subprocess.Popen([sys.executable, "-c", WRITER, str(path)], stdout=subprocess.PIPE)
        process.stdout.readline()
        time.sleep(pause)
        os.kill(process.pid, signal.SIGKILL)
        process.wait()
        process.stdout.close()
        assert len(Filling(path, Classes(("cat", "dog"))).labels) == rows
