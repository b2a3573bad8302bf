"""Failing inputs as a file: the model fails on all of them again, as it did, and on none of the clean ones."""

from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai.data.sample import demo_data, demo_model_path
from testifai.errors import InputError
from testifai.locality import Local, local
from testifai.locality.explain import explain, export_failures
from testifai.models.onnx import OnnxModel

# The same perturbation twice draws numbers of its own each time.
PROPERTIES = {
    "noise": ("classic.gaussian_noise", [0, 3, 5]),
    "again": ("classic.gaussian_noise", [0, 3]),
    "rotation": ("classic.rotation", [0, 4]),
}


@pytest.fixture(scope="module")
def measured():
    model, data = OnnxModel(demo_model_path()), demo_data()
    return model, data, local(model, data, PROPERTIES, per_class=30, seed=3)


def test_the_model_fails_on_every_row_as_it_did(measured, tmp_path):
    model, data, table = measured
    found = explain(table, arity=1)
    count = export_failures(found, data, PROPERTIES, tmp_path / "failures.npz")
    with np.load(tmp_path / "failures.npz") as file:
        kept = dict(file)
    assert count == len(kept["x"]) == int((table.trials - table.passes).sum())
    np.testing.assert_array_equal(model(kept["x"]).argmax(axis=1), kept["predicted"].astype(int))
    np.testing.assert_array_equal(model(kept["clean"]).argmax(axis=1), kept["y"])
    np.testing.assert_array_equal(kept["clean"], np.asarray(data.inputs)[kept["index"]])
    assert (kept["predicted"].astype(int) != kept["y"]).all()
    assert set(kept["property"]) == set(PROPERTIES)
    for rank, trend in enumerate(found.trends, start=1):
        mine = kept["trend"] == rank
        assert mine.sum() == trend.failures
        assert set(kept["property"][mine]) == {trend.property}
        assert set(kept["severity"][mine]) <= set(trend.severities)
        assert set(kept["predicted"][mine]) == set(trend.answers)


def test_equal_tables_make_equal_files(measured, tmp_path):
    _, data, table = measured
    for name in ("a.npz", "b.npz"):
        export_failures(table, data, ta.Space(PROPERTIES, order_sensitive=name == "b.npz"), tmp_path / name)
    assert (tmp_path / "a.npz").read_bytes() == (tmp_path / "b.npz").read_bytes()


def test_texts_are_exported_too(tmp_path):
    texts = [f"{word} number {i}" for i in range(20) for word in ("good", "bad")]
    labels = np.array([int(text.startswith("good")) for text in texts])
    cut = {"cut": ta.Perturbation("cut", lambda batch, by, rng: [text[by:] for text in batch], [0, 2])}
    found = local(lambda batch: np.array([int(text.startswith("good")) for text in batch]), (texts, labels), cut)
    assert export_failures(found, (texts, labels), cut, tmp_path / "f.npz") == 20
    with np.load(tmp_path / "f.npz") as file:
        assert file["x"][0].startswith("od number")
        assert file["clean"][0].startswith("good number")


def test_mistakes_are_one_line(measured, tmp_path):
    _, data, table = measured
    with pytest.raises(InputError, match=r"must end in .npz"):
        export_failures(table, data, PROPERTIES, tmp_path / "f.csv")
    with pytest.raises(InputError, match="properties: 'again'"):
        export_failures(table, data, {"noise": "classic.gaussian_noise"}, tmp_path / "f.npz")
    with pytest.raises(InputError, match="data: 10 inputs do not fit"):
        export_failures(table, (np.asarray(data.inputs)[:10], data.labels[:10]), PROPERTIES, tmp_path / "f.npz")
    counts = Local.from_counts("ab", ["noise"], [[3]], [[[[9, 1], [1, 9]]]])
    with pytest.raises(InputError, match="counts alone"):
        export_failures(counts, data, PROPERTIES, tmp_path / "f.npz")
    right = {"noise": ta.Perturbation("none", lambda x, by, rng: x, [0, 1])}
    model = OnnxModel(demo_model_path())
    with pytest.raises(InputError, match="no input failed"):
        export_failures(local(model, data, right, per_class=2), data, right, tmp_path / "f.npz")
    assert list(tmp_path.iterdir()) == []
