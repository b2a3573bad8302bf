"""Of the package itself: what is handed over becomes a model."""

from __future__ import annotations

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


def test_an_adapter_stays_and_its_fingerprint_is_not_asked_for():
    class Adapter:
        outputs = "labels"

        @property
        def fingerprint(self):
            raise AssertionError("asked")

        def __call__(self, batch):
            return np.zeros(len(batch), int)

    adapter = Adapter()
    assert models.wrap(adapter) is adapter
    model = models.PythonModel(len)
    assert models.wrap(model) is model


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
    with pytest.raises(InputError, match="kind 'onxx' is not known; did you mean 'onnx'"):
        models.load("onxx", "a")
    with pytest.raises(InputError, match="python has no option 'scale'"):
        models.load("python", "a:b", scale=1)


def test_importing_stays_light():
    heavy = "torch,sklearn,onnxruntime,cv2,scipy"
    modules = "testifai.models, testifai.data, testifai.oracles"
    code = f"import sys, {modules}; print(set('{heavy}'.split(',')) & set(sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.strip() == "set()"
