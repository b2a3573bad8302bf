"""A pipeline of transformers as a model of texts."""

from __future__ import annotations

import numpy as np
import pytest

from testifai import models
from testifai.errors import InputError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("tokenizers")

TEXTS = ["what is the best way to learn a language?", "why", "cat"]
PAIRS = list(zip(TEXTS, TEXTS[::-1], strict=True))


@pytest.fixture
def pipeline(classifier_folder):
    module = transformers.AutoModelForSequenceClassification.from_pretrained(classifier_folder).eval()
    tokenizer = transformers.AutoTokenizer.from_pretrained(classifier_folder)
    return transformers.TextClassificationPipeline(model=module, tokenizer=tokenizer, task="text-classification")


def test_scores_are_those_of_the_same_model_from_its_folder(pipeline, classifier_folder):
    model = models.wrap(pipeline)
    for inputs in (TEXTS, PAIRS):
        np.testing.assert_allclose(model(inputs), models.wrap(classifier_folder)(inputs), atol=1e-4)
    assert model.classes == 3
    assert model.fingerprint == models.wrap(pipeline).fingerprint


def test_what_it_does_not_take_is_one_line(pipeline):
    with pytest.raises(InputError, match="takes texts; the inputs are numbers"):
        models.wrap(pipeline)(np.zeros((2, 3)))
    pipeline.task = "summarization"
    with pytest.raises(InputError, match="a pipeline for 'summarization' is not accepted; one of text-classification"):
        models.wrap(pipeline)
