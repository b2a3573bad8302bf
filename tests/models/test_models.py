"""Of the package itself: what is handed over becomes a model."""

from __future__ import annotations

import socket
import subprocess
import sys

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression

from testifai import models
from testifai.data.sample import demo_model_path
from testifai.errors import InputError
from testifai.models.onnx import OnnxModel
from testifai.models.sklearn import SklearnModel
from testifai.testing import check_model


class Predictor:
    """Not scikit-learn's, not callable, but it predicts."""

    def predict(self, batch):
        return batch[:, 0]


def test_wrap_knows_what_people_have():
    estimator = LogisticRegression().fit([[0.0], [1.0]], [0, 1])
    assert isinstance(models.wrap(estimator), SklearnModel)
    assert isinstance(models.wrap(demo_model_path()), OnnxModel)
    assert isinstance(models.wrap(str(demo_model_path())), OnnxModel)
    assert isinstance(models.wrap(len), models.PythonModel)
    assert models.wrap(Predictor())(np.eye(2)).tolist() == [1.0, 0.0]


class Adapter:
    """Somebody's own: it has a fingerprint and inherits from nothing."""

    name = "theirs"
    thread_safe = True

    @property
    def fingerprint(self):
        raise AssertionError("asked")

    def __call__(self, batch):
        return np.zeros(len(batch), int)


def test_an_adapter_of_others_becomes_a_model_and_its_fingerprint_is_not_asked_for():
    found = models.wrap(Adapter())
    assert isinstance(found, models.Model)
    assert (found.name, found.thread_safe, found.classes, found.batch_size) == ("theirs", True, None, None)
    assert found.features_output is None
    assert not found.traces_layers
    assert found(np.eye(2)).tolist() == [0, 0]
    for ask in (found.features, found.traced):
        with pytest.raises(InputError, match="theirs"):
            ask(np.eye(2))
    with pytest.raises(AssertionError, match="asked"):
        _ = found.fingerprint
    assert models.wrap(found) is found
    model = models.PythonModel(len)
    assert models.wrap(model) is model


def test_what_an_adapter_of_others_can_do_is_found_out_once():
    class Seeing(Adapter):
        fingerprint = ""

        def features(self, batch):
            return batch * 2

        def traced(self, batch, layer=None):
            return self(batch), batch + len(layer or "")

    found = models.wrap(Seeing())
    assert found.features_output
    assert found.traces_layers
    assert found.features(np.ones(2)).tolist() == [2.0, 2.0]
    assert found.traced(np.ones(2), "abc")[1].tolist() == [4.0, 4.0]
    assert "Seeing" in found.fingerprint  # one that says nothing is known by its class
    Seeing.features_output = None
    assert models.wrap(Seeing()).features_output is None


def test_a_model_needs_one_method_only():
    class Scaled(models.Model):
        def __init__(self, factor):
            self.factor = factor

        def __call__(self, batch):
            return batch * self.factor

    check_model(Scaled(2.0), np.ones((6, 3)))
    assert Scaled(2.0).fingerprint == Scaled(2.0).fingerprint != Scaled(3.0).fingerprint
    assert (Scaled(2.0).unidentified_reason, Scaled(2.0).traces_layers) == (None, False)
    with socket.socket() as connection:
        assert Scaled(connection).unidentified_reason


@pytest.mark.parametrize(
    ("model", "message"),
    [
        ("model.pth", r"'model\.pth' is not accepted; a path that ends in \.onnx"),
        (3, "int is not accepted"),
        (LogisticRegression, "LogisticRegression is a class; hand over an instance"),
        (LogisticRegression(), "not fitted"),
        ("missing.onnx", "does not exist"),
    ],
)
def test_what_is_no_model(model, message):
    with pytest.raises(InputError, match=message):
        models.wrap(model)


def test_kinds_and_options_are_checked():
    with pytest.raises(InputError, match="model: 'onxx' is not known; did you mean 'onnx'"):
        models.load("onxx", "a")
    with pytest.raises(InputError, match=r"unknown key 'model.scale' for python \(onnx and torch take it\)"):
        models.load("python", "a:b", scale=1)


def test_importing_stays_light():
    heavy = "torch,sklearn,onnxruntime,cv2,scipy,transformers,tokenizers,xgboost,lightgbm,skops,pandas,onnx"
    modules = "testifai.models, testifai.data, testifai.oracles"
    # Specs are read by the parts of all kinds, long before a model or data are loaded.
    parts = "[*testifai.models.ADAPTERS.values(), *testifai.data.LOADERS.values()]"
    asked = "[testifai.models.recognise(name) for name in ('a.onnx', 'a.skops', 'a.ubj', 'a.txt', 'a.unknown', '.')]"
    code = f"import sys, {modules}; {parts}; {asked}; print(set('{heavy}'.split(',')) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
