"""The contract that every registered measure keeps."""

from __future__ import annotations

import copy
import json

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.models import Model
from testifai.quality import MEASURES, FunctionMeasure, resolve
from testifai.support.batches import take
from testifai.testing import check_measure, example_images

COUNT = 90


class Pixels(Model):
    """A model whose features are coarse pixels; it counts the inputs it is handed."""

    name, outputs, fingerprint, batch_size = "pixels", "values", "1", 16
    features_output = "features"

    def __init__(self):
        self.seen = 0

    def __call__(self, batch):
        raise AssertionError("its outputs are not asked for")

    def features(self, batch):
        self.seen += len(batch)
        return batch.reshape(len(batch), 7, 4, 7, 4).mean(axis=(2, 4)).reshape(len(batch), 49) / 255


def letters(texts):
    """Token vectors without a network: each word as the counts of its letters."""
    return [[[word.count(letter) for letter in "abcdefghij"] + [1] for word in text.split()] for text in texts]


def images():
    return example_images(COUNT)


def darker(batch, strength):
    return (batch * (1 - 0.3 * strength)).astype(np.uint8)


def texts():
    rng = np.random.default_rng(0)
    return ["".join(rng.choice(list("abcdefghij      "), 40)) + f" e{row}" for row in range(COUNT)]


def pairs():
    return list(zip(texts(), texts()[::-1], strict=True))


def replaced(batch, strength):
    changes = [("a", "zz"), ("b", ""), ("c", "y")][:strength]

    def one(text):
        for old, new in changes:
            text = text.replace(old, new)
        return text

    return [tuple(map(one, row)) if isinstance(row, tuple) else one(row) for row in batch]


def mean_difference(clean, perturbed):
    return np.abs(clean.astype(float) - perturbed).mean(axis=(1, 2))


mean_difference.higher_is_better = False

# What each measure is told, the inputs that suit it, a perturbation of strengths 0 to 3, and inputs of a wrong kind.
CASES = {
    "kid": ({"use": "kid", "sample": 60}, images, darker, None),
    "ssim": ({"use": "ssim", "sample": 30}, images, darker, texts),
    "bleu": ({"use": "bleu", "sample": 30}, texts, replaced, images),
    "edit_similarity": ({"use": "edit_similarity", "sample": 30}, texts, replaced, images),
    "bertscore": ({"use": "bertscore", "sample": 30, "encoder": letters}, texts, replaced, images),
    "bleu of pairs": ({"use": "bleu", "sample": 30}, pairs, replaced, images),
    "edit_similarity of pairs": ({"use": "edit_similarity", "sample": 30, "side": "first"}, pairs, replaced, images),
    "bertscore of pairs": ({"use": "bertscore", "sample": 30, "encoder": letters}, pairs, replaced, images),
    "a function": (FunctionMeasure(mean_difference, sample=30), images, darker, None),
}

pytestmark = pytest.mark.parametrize("case", CASES)


def prepared(case, seed=1):
    told, inputs, perturb, _ = CASES[case]
    measure, model, clean = resolve(told), Pixels(), inputs()
    return measure, model, clean, perturb, measure.reference(clean, model, seed=seed)


def test_every_registered_measure_is_here(case):
    assert set(MEASURES) <= set(CASES)


def test_it_describes_itself_in_plain_data(case):
    told = CASES[case][0]
    first, again = resolve(told), resolve(told)
    assert json.loads(json.dumps(first.describe())) == first.describe() == again.describe()
    assert isinstance(first.name, str)
    assert {type(first.higher_is_better), type(first.uses_model)} == {bool}
    assert first.describe()["use"] == first.name
    if isinstance(told, dict):
        assert resolve({**told, "sample": 50}).describe() != first.describe()


def test_rows_depend_on_the_seed_and_the_number_of_inputs_alone(case):
    measure, model, clean, _, reference = prepared(case)
    rows = reference.rows
    assert rows.dtype == np.intp
    assert len(set(rows.tolist())) == len(rows) <= measure.sample
    assert 0 <= rows.min() <= rows.max() < COUNT
    turned = take(clean, np.arange(COUNT)[::-1])
    assert np.array_equal(measure.reference(turned, model, seed=1).rows, rows)
    assert not np.array_equal(measure.reference(clean, model, seed=2).rows, rows)


def test_clean_inputs_have_the_best_score(case):
    measure, _, clean, _, reference = prepared(case)
    value, error = reference.score(take(clean, reference.rows))
    assert value == pytest.approx(1.0 if measure.higher_is_better else 0.0, abs=1e-9)
    assert error == pytest.approx(0, abs=1e-9)


def test_scores_get_worse_with_more_damage(case):
    measure, _, clean, perturb, reference = prepared(case)
    chosen = take(clean, reference.rows)
    scores = [reference.score(perturb(chosen, strength)) for strength in (0, 1, 2, 3)]
    values = [score.value for score in scores]
    assert values == sorted(values, reverse=measure.higher_is_better)
    assert len(set(values)) == 4
    assert all(np.isfinite(score.error) and score.error >= 0 for score in scores)
    assert {type(one) for score in scores for one in score} == {float}


def test_scores_repeat_in_any_order_and_arguments_stay(case):
    _, _, clean, perturb, reference = prepared(case)
    _, _, _, _, other = prepared(case)
    chosen = take(clean, reference.rows)
    changed = {strength: perturb(chosen, strength) for strength in (1, 2, 3)}
    before = copy.deepcopy(changed[1])
    forward = [reference.score(changed[strength]) for strength in (1, 2, 3)]
    backward = [other.score(changed[strength]) for strength in (3, 2, 1, 1)]
    assert forward == backward[2::-1]
    assert backward[3] == backward[2]
    assert np.array_equal(np.asarray(changed[1]), np.asarray(before))


def test_what_the_model_is_handed_is_counted(case):
    measure, model, clean, perturb, reference = prepared(case)
    assert reference.inferences == model.seen
    reference.score(perturb(take(clean, reference.rows), 1))
    assert reference.inferences == model.seen
    assert (model.seen > 0) == measure.uses_model


def test_fewer_inputs_than_the_sample_are_all_used_and_too_few_are_refused(case):
    told, inputs, _, _ = CASES[case]
    measure, few = resolve(told), inputs()[:24]
    rows = measure.reference(few, Pixels(), seed=0).rows
    assert len(rows) == (12 if measure.name == "kid" else 24)
    for count in (0, 1):
        with pytest.raises(
            InputError, match=rf"^quality: {measure.name} needs at least \d+ inputs; there are {count}$"
        ):
            measure.reference(few[:count], Pixels(), seed=0)


def test_only_versions_of_the_rows_can_be_scored(case):
    measure, _, clean, _, reference = prepared(case)
    with pytest.raises(InputError, match=rf"^quality: {measure.name} was handed 89 perturbed inputs"):
        reference.score(clean[1:])


def test_inputs_of_a_wrong_kind_are_refused_in_one_line(case):
    told, _, _, wrong = CASES[case]
    if wrong is None:
        pytest.skip("takes inputs of every kind")
    measure = resolve(told)
    with pytest.raises(InputError, match=f"^quality: {measure.name} compares ") as problem:
        measure.reference(wrong(), Pixels(), seed=0)
    assert "\n" not in str(problem.value)


def test_wrong_options_are_refused_in_one_line(case):
    told = CASES[case][0]
    if not isinstance(told, dict):
        pytest.skip("has no name to give options to")
    for wrong in (0, 1, -5, 2.5, "many", None, True):
        with pytest.raises(InputError, match=r"^quality: sample: must be a whole number, at least \d+, got .*$"):
            resolve({**told, "sample": wrong})
    with pytest.raises(InputError, match=rf"^quality: {told['use']} has no option 'smaple'; did you mean 'sample'"):
        resolve({**told, "smaple": 3})


def test_it_keeps_the_contract_that_others_are_held_to(case):
    told, inputs, perturb, _ = CASES[case]
    check_measure(told, inputs(), lambda batch: perturb(batch, 2), Pixels())
