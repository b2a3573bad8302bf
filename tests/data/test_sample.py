from __future__ import annotations

import numpy as np
import onnx

from testifai import models
from testifai.data import sample
from testifai.oracles import predicted


def test_a_thousand_digits_of_every_kind():
    digits = sample.demo_data()
    assert digits.inputs.shape == (1000, 28, 28)
    assert digits.inputs.dtype == np.uint8
    assert digits.inputs.min() == 0
    assert digits.inputs.max() == 255
    counts = np.bincount(digits.labels)
    assert len(counts) == 10
    assert counts.min() > 60  # a random thousand: 100 ± 9 each


def test_the_model_is_small_old_enough_and_right():
    path = sample.demo_model_path()
    assert path.stat().st_size <= 300_000
    assert onnx.load(path).opset_import[0].version <= 17
    model, digits = models.wrap(path), sample.demo_data()
    assert (model.outputs, model.classes) == ("scores", 10)
    assert np.mean(predicted(model(digits.inputs)) == digits.labels) >= 0.98
    assert model.features(digits.inputs[:3]).shape == (3, 84)
