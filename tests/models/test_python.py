from __future__ import annotations

import functools
import sys

import numpy as np
import pytest

from testifai import models
from testifai.errors import InputError
from testifai.models.python import PythonModel
from testifai.support.user_code import import_object


def first_column(batch):
    return batch[:, 0]


def last_column(batch):
    return batch[:, -1]


class Linear:
    def __init__(self, weights):
        self.weights = weights

    def __call__(self, batch):
        return batch @ self.weights


def closed_over(weights):
    return lambda batch: batch @ weights


TABLE = np.arange(6.0).reshape(2, 3)


def test_the_batch_goes_through_untouched():
    seen = []
    model = PythonModel(lambda batch: seen.append(batch) or batch[:, 0], outputs="values")
    assert model(TABLE).tolist() == [0.0, 3.0]
    assert seen[0] is TABLE
    assert model.outputs == "values"
    assert not model.thread_safe


def test_fingerprint_follows_name_source_and_what_is_held():
    ones, twos = np.ones((3, 2)), np.full((3, 2), 2.0)
    kinds = [
        first_column,
        last_column,
        Linear(ones),
        Linear(twos),
        closed_over(ones),
        closed_over(twos),
        functools.partial(np.dot, ones),
        functools.partial(np.dot, twos),
        Linear(ones).__call__,
        np.sum,
    ]
    prints = [PythonModel(kind).fingerprint for kind in kinds]
    assert len(set(prints)) == len(kinds)
    assert PythonModel(Linear(np.ones((3, 2)))).fingerprint == prints[2]
    assert PythonModel(closed_over(np.ones((3, 2)))).fingerprint == prints[4]


def test_fingerprint_without_a_source_file():
    spaces = [{}, {}, {}]
    for space, factor in zip(spaces, (2, 3, 2), strict=True):
        exec(f"def f(batch): return [{factor} * x for x in batch]", space)
    prints = [PythonModel(space["f"]).fingerprint for space in spaces]
    assert prints[0] == prints[2] != prints[1]


@pytest.fixture
def module(tmp_path):
    (tmp_path / "testifai_user_models.py").write_text(
        "class Namespace:\n    @staticmethod\n    def inner(batch):\n        return batch[:, 1]\n\n"
        "def outer(batch):\n    return batch[:, 0]\n\nnumber = 3\n"
    )
    (tmp_path / "testifai_broken_model.py").write_text("import testifai_missing_module\n")
    (tmp_path / "testifai_failing_model.py").write_text("1 / 0\n")
    yield tmp_path
    for name in ("testifai_user_models", "testifai_broken_model", "testifai_failing_model"):
        sys.modules.pop(name, None)


def test_named_in_a_spec(module, monkeypatch):
    before = list(sys.path)
    monkeypatch.setattr(sys, "path", list(before))
    model = models.load("python", "testifai_user_models:outer", folder=module, outputs="values")
    assert model(TABLE).tolist() == [0.0, 3.0]
    assert model.name == "testifai_user_models:outer"
    assert models.load("python", "testifai_user_models:Namespace.inner", folder=module)(TABLE).tolist() == [1.0, 4.0]
    loaded = models.load("python", "testifai_user_models:outer", folder=module, classes=4)
    assert loaded.classes == 4
    assert loaded.fingerprint == model.fingerprint
    assert sys.path == [*before, str(module.resolve())]  # last: it hides no library


@pytest.mark.parametrize(
    ("path", "message"),
    [
        ("testifai_user_models", "'package.module:name' is"),
        ("testifai_user_models:", "'package.module:name' is"),
        ("../evil:name", "'package.module:name' is"),
        ("testifai_no_such:name", "no module 'testifai_no_such'"),
        ("testifai_user_models:inner", "has no 'inner'"),
        ("testifai_broken_model:f", "no module 'testifai_missing_module'"),
        ("testifai_failing_model:f", "importing testifai_failing_model failed: ZeroDivisionError"),
        ("testifai_user_models:number", "int cannot be called"),
        ("testifai_user_models:Namespace", "Namespace is a class"),
    ],
)
def test_names_that_lead_nowhere(module, path, message):
    with pytest.raises(InputError, match=message) as caught:
        models.load("python", path, folder=module)
    assert "\n" not in str(caught.value)


def test_import_names_the_field():
    with pytest.raises(InputError, match=r"^oracle\.python: "):
        import_object("nothing", field="oracle.python")


def test_outputs_that_do_not_exist():
    with pytest.raises(InputError, match="outputs: must be one of labels, scores, values, boxes, maps, got 'probs'"):
        PythonModel(first_column, outputs="probs")


def test_texts_and_pairs_come_as_lists():
    seen = []

    def longer(batch):
        seen.extend(batch)
        return [int(len(first) > len(second)) for first, second in batch]

    assert PythonModel(longer)([("ab", "c"), ("", "d")]) == [1, 0]
    assert seen == [("ab", "c"), ("", "d")]
    assert PythonModel(lambda batch: [len(text) for text in batch])(["ab", ""]) == [2, 0]
