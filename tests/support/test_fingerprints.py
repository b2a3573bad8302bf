"""What fingerprints of files and code cover; tests/faults/test_identity.py says what they must tell apart."""

from __future__ import annotations

import collections
import collections.abc
import enum
import functools
import hashlib
import logging
import pickle
import random
import re
import sqlite3
import sys
import threading
from types import ModuleType

import numpy as np
import pytest
from sklearn.ensemble import RandomForestClassifier

from testifai.support.fingerprints import fingerprint_code, fingerprint_files, is_library


@pytest.mark.parametrize(
    ("file", "library"),
    [
        ("/opt/base/lib/python3.11/site-packages/nets/layers.py", True),  # of another environment
        ("/usr/lib/python3/dist-packages/nets/layers.py", True),
        ("/home/me/project/nets/layers.py", False),
        ("/home/me/my-site-packages/nets/layers.py", False),
    ],
)
def test_what_is_installed_is_a_library_in_whichever_environment(file, library, monkeypatch):
    module = ModuleType("nets.layers")
    module.__file__ = file
    monkeypatch.setitem(sys.modules, "nets.layers", module)
    assert is_library("nets.layers") is library


def test_one_file_is_identified_by_its_sha256_and_several_also_by_their_names(tmp_path):
    for name in ("a", "b"):
        (tmp_path / name).write_text(name)
    one, two = tmp_path / "a", tmp_path / "b"
    assert fingerprint_files({"": one}) == hashlib.sha256(b"a").hexdigest()
    found = {fingerprint_files(files) for files in ({"": one, "w": two}, {"": one, "v": two}, {"": two, "w": one})}
    assert len(found) == 3


class Kind(enum.Enum):
    first = 1


class Holder(collections.abc.Sized):
    pattern, log, lock = re.compile("x"), logging.getLogger("x"), threading.Lock()

    def __init__(self, number):
        self.table = collections.defaultdict(list, {1: [number]})
        self.kind, self.dice, self.names = Kind.first, random.Random(), {("a", number), ("b", 2)}
        self.call = functools.partial(max, number)

    def __len__(self):
        return 1


def test_what_objects_hold_identifies_them_and_what_changes_with_use_does_not():
    found = fingerprint_code(Holder(1))
    assert found.unidentified_reason is None
    assert fingerprint_code(Holder(1)) == found
    assert fingerprint_code(Holder(2)) != found


def test_an_estimator_is_identified_by_what_it_learned():
    rows = np.random.default_rng(0).normal(size=(60, 3))
    forest = RandomForestClassifier(5, random_state=0).fit(rows, rows[:, 0] > 0)
    found = fingerprint_code(forest)
    assert found.unidentified_reason is None
    assert fingerprint_code(pickle.loads(pickle.dumps(forest))) == found
    assert fingerprint_code(forest.fit(rows, rows[:, 1] > 0)) != found


def test_what_cannot_be_identified_is_named_unless_there_is_a_version():
    connection = sqlite3.connect(":memory:")
    assert "sqlite3.Connection" in fingerprint_code(lambda batch: connection).unidentified_reason
    one, two = (fingerprint_code(lambda batch: connection, version) for version in ("1", "2"))
    assert one.unidentified_reason is None
    assert one != two


def test_sets_of_objects_that_refer_to_each_other_end_soon():
    class Node:
        def __init__(self):
            self.others = set()

    nodes = [Node() for _ in range(6)]
    for node in nodes:
        node.others = set(nodes)
    assert "too much" in fingerprint_code(nodes[0]).unidentified_reason
