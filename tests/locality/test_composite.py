"""A composed system as a model: swept, scanned, and equal to combining the model's own answers."""

from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError
from testifai.locality import composite

ROWS = np.random.default_rng(0).uniform(0, 3, size=(900, 1))
SHIFT = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.2, 0.4], levels=(0.0, 0.8))
JITTER = ta.Perturbation("jitter", lambda x, by, rng: x + by * rng.uniform()[:, None], [0.0, 0.5], levels=(0.0, 1.0))


def model(batch):
    return np.clip(np.floor(batch[:, 0]), 0, 2).astype(int)


DATA = (ROWS, model(ROWS))


def test_the_system_answers_what_its_parts_answers_make():
    for combine in (None, max, lambda a, b: a == b):
        system = composite(model, DATA, combine)
        inputs = system.under(SHIFT).apply(system.data.inputs, 2)
        parts = model(inputs.reshape(-1, 1)).reshape(-1, 2)
        truth = model(system.data.inputs.reshape(-1, 1)).reshape(-1, 2)
        function = combine or (lambda a, b: a + b)
        wanted = [function(*a) == function(*b) for a, b in zip(parts.tolist(), truth.tolist(), strict=True)]
        assert (system.model(inputs) == system.data.labels).tolist() == wanted


def test_no_input_is_in_two_combinations_unless_they_are_given():
    system = composite(model, DATA, arity=3, pairs=100)
    assert system.data.inputs.shape == (100, 3, 1)
    assert len(np.unique(system.data.inputs)) == 300
    given = composite(model, DATA, pairs=[(0, 0), (5, 1)])
    np.testing.assert_array_equal(given.data.inputs, ROWS[[[0, 0], [5, 1]]])


def test_parts_have_draws_of_their_own():
    system = composite(model, DATA)
    moved = system.under(JITTER).apply(system.data.inputs, 1) - system.data.inputs
    assert abs(np.corrcoef(moved[:, 0, 0], moved[:, 1, 0])[0, 1]) < 0.2
    alone = system.under(JITTER).apply(system.data.inputs[7:8], 1, indices=[7]) - system.data.inputs[7:8]
    np.testing.assert_array_equal(alone[0], moved[7])


def test_images_of_a_suite_are_changed_part_by_part():
    images = np.random.default_rng(1).integers(0, 256, (40, 8, 8), dtype=np.uint8)
    system = composite(lambda x: x[:, 0, 0].astype(int) % 2, (images, images[:, 0, 0] % 2))
    turned = system.under("classic.rotation").apply(system.data.inputs, 3)
    each = ta.apply({"classic.rotation": 3}, system.data.inputs.reshape(-1, 8, 8))
    np.testing.assert_array_equal(turned.reshape(-1, 8, 8), each)
    noisy = system.under("classic.noise").apply(system.data.inputs, 3)
    assert noisy.shape == system.data.inputs.shape


def test_a_sweep_and_a_scan_of_it_find_the_product_of_independent_parts():
    system = composite(model, DATA, lambda a, b: (a, b))
    found = ta.sweep_model(system.model, system.data, system.under(SHIFT), threshold=0.5, confidence=None)
    alone = ta.sweep_model(model, DATA, SHIFT, threshold=0.5**0.5, confidence=None)
    assert found.robustness == pytest.approx(alone.robustness, abs=0.05)
    assert found.name == "shift (2 parts)"
    tomogram = ta.scan(system.model, system.data, ta.Space({"shift": system.under(SHIFT)}), strategy="full")
    right = system.model(system.under(SHIFT).apply(system.data.inputs, 1)) == system.data.labels
    assert tomogram.query("shift = 1").robustness == pytest.approx(right.mean())
    assert 0.5 < right.mean() < 0.9


def test_what_decides_the_answers_decides_the_fingerprint():
    first = composite(model, DATA)
    assert composite(model, DATA).model.fingerprint == first.model.fingerprint
    assert composite(model, DATA, max).model.fingerprint != first.model.fingerprint
    assert composite(model, DATA, seed=1).data.fingerprint != first.data.fingerprint


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"pairs": 451}, "pairs: 451 combinations of 2 of 900 inputs; accepted: up to 450"),
        ({"pairs": [(0, 900)]}, "pairs: input numbers from 0 to 899"),
        ({"arity": 0}, "arity"),
        ({"combine": lambda a: a}, "combine: raised TypeError"),
    ],
)
def test_mistakes_are_one_line(options, message):
    with pytest.raises(InputError, match=message):
        composite(model, DATA, **options)


def test_texts_are_refused():
    with pytest.raises(InputError, match="data: texts"):
        composite(lambda texts: np.zeros(len(texts), int), (["a", "b", "c", "d"], [0, 0, 1, 1]))


def test_perturbations_of_tables_are_refused():
    with pytest.raises(InputError, match="is for tables"):
        composite(model, DATA).under("tabular.noise")
