"""Composites: order, seeds, and mistakes found before any work is done."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation, apply, get
from testifai.testing import example_images

IMAGES = example_images(6)
add = Perturbation("add", lambda batch, amount, rng: batch + amount, [0, 1, 2])
double = Perturbation("double", lambda batch, factor, rng: batch * factor, [1, 2, 3])
noise = Perturbation("noise", lambda batch, scale, rng: batch + scale * rng.normal(), [0, 1])


def test_a_composite_applies_its_parts_in_the_order_given():
    rows = np.arange(4)
    assert apply({add: 2, double: 1}, rows).tolist() == [4, 6, 8, 10]
    assert apply({double: 1, add: 2}, rows).tolist() == [2, 4, 6, 8]


def test_a_composite_equals_its_parts_one_by_one():
    whole = apply({"mnist_c.zoom": 2, "mnist_c.shear": 0, "mnist_c.rotate": 3}, IMAGES, seed=5, indices=range(6))
    zoomed = get("mnist_c.zoom").apply(IMAGES, 2, seed=5)
    assert np.array_equal(whole, get("mnist_c.rotate").apply(zoomed, 3, seed=5))


def test_two_uses_of_one_perturbation_draw_different_numbers():
    rows = np.zeros(4)
    again = Perturbation("noise", noise.function, noise.severities)
    both = apply({noise: 1, again: 1}, rows)
    assert np.allclose(both, noise.apply(rows, 1) + noise.apply(rows, 1, occurrence=1))


def test_texts_and_empty_composites():
    shout = Perturbation("shout", lambda texts, mark, rng: [text + mark for text in texts], ["", "!", "!!"])
    assert apply({shout: 2}, ["a", "b"]) == ["a!!", "b!!"]
    assert apply({}, IMAGES) is IMAGES
    assert apply({"mnist_c.zoom": 0}, IMAGES) is IMAGES


@pytest.mark.parametrize(
    ("composite", "words"),
    [
        ({"mnist_c.zoom": 2, "mnist_c.blur": 1}, r"'mnist_c\.blur' is not known"),
        (
            {"mnist_c.zoom": 2, "mnist_c.rotate": 6},
            r"'mnist_c\.rotate': severity: must be .* at most 5, got 6",
        ),
        (["mnist_c.zoom"], "^composite: "),
    ],
)
def test_mistakes_are_found_before_anything_is_applied(composite, words, monkeypatch):
    monkeypatch.setattr(Perturbation, "_result", lambda *_: pytest.fail("applied"))
    with pytest.raises(InputError, match=words):
        apply(composite, IMAGES)


def test_an_empty_batch_is_refused_even_when_everything_is_off():
    with pytest.raises(InputError, match=r"^batch: "):
        apply({"mnist_c.zoom": 0}, IMAGES[:0])
