from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.models.preprocess import Preprocess, guess

RNG = np.random.default_rng(0)
GREY = RNG.integers(0, 256, (3, 4, 5), dtype=np.uint8)
COLOUR = RNG.integers(0, 256, (3, 4, 5, 3), dtype=np.uint8)


def by_the_book(batch, layout, scale, mean, std):
    """Scale, normalise, transpose: one plain step after the other, in double precision."""
    images = batch.astype(np.float64)
    images = (
        {"unit": images / 255, "raw": images, "signed": images / 127.5 - 1}.get(scale)
        if isinstance(scale, str)
        else images * scale
    )
    images = images[..., np.newaxis] if images.ndim == 3 else images
    images = (images - (0 if mean is None else np.array(mean))) / (1 if std is None else np.array(std))
    if layout == "NCHW":
        return np.moveaxis(images, -1, 1)
    return images if layout == "NHWC" else images.reshape(len(images), -1)


@given(
    batch=st.sampled_from([GREY, COLOUR]),
    layout=st.sampled_from(["NCHW", "NHWC", "flat"]),
    scale=st.sampled_from(["unit", "raw", "signed", 1 / 255, 2, -0.5]),
    normal=st.sampled_from([(None, None), (0.5, 0.25), (0.1, None), (None, 0.3), ([0.4, 0.5, 0.6], [0.1, 0.2, 0.3])]),
)
def test_one_pass_equals_the_plain_steps(batch, layout, scale, normal):
    mean, std = normal
    if batch.ndim == 3 and isinstance(mean, list):
        mean, std = mean[:1], std[:1]
    before = batch.copy()
    made = Preprocess(layout, scale, mean, std)(batch)
    expected = by_the_book(batch, layout, scale, mean, std)
    assert made.dtype == np.float32
    assert made.flags.c_contiguous
    assert made.shape == expected.shape
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5 * np.abs(expected).max())
    assert np.array_equal(batch, before)


def test_unit_is_exactly_division_by_255():
    every = np.arange(256, dtype=np.uint8).reshape(1, 16, 16)
    assert np.array_equal(Preprocess("NCHW", "unit")(every)[0, 0], every[0].astype(np.float32) / np.float32(255))
    assert np.array_equal(Preprocess("NCHW", 1 / 255)(every), Preprocess("NCHW", "unit")(every))


def test_named_scales_leave_fractions_alone():
    images = COLOUR / 255
    assert Preprocess("NCHW", "unit")(images).max() == pytest.approx(images.max())
    assert Preprocess("NCHW", 2.0)(images).max() == pytest.approx(2 * images.max())


def test_tables_and_texts_pass_untouched():
    table = RNG.normal(size=(4, 3)).astype(np.float32)
    assert Preprocess()(table) is table
    assert Preprocess()(["a", "b"]) == ["a", "b"]
    np.testing.assert_allclose(
        Preprocess(None, mean=[1, 2, 3], std=2)(table), (table - [1, 2, 3]) / 2, rtol=1e-5, atol=1e-6
    )


def test_other_types():
    assert np.array_equal(Preprocess("NCHW", dtype=np.uint8)(COLOUR), np.moveaxis(COLOUR, -1, 1))
    assert Preprocess("NHWC", "unit", dtype=np.float16)(GREY).dtype == np.float16
    with pytest.raises(InputError, match="the model takes uint8 inputs"):
        Preprocess("NCHW", "unit", dtype=np.uint8)


@pytest.mark.parametrize(
    ("input_shape", "batch_shape", "layout"),
    [
        ((None, 1, 28, 28), (9, 28, 28), "NCHW"),
        ((None, 28, 28, 1), (9, 28, 28), "NHWC"),
        ((None, 28, 28), (9, 28, 28), None),
        ((None, 784), (9, 28, 28), "flat"),
        ((None, None), (9, 28, 28), "flat"),
        ((None, 3, 32, 32), (9, 32, 32, 3), "NCHW"),
        ((None, 32, 32, 3), (9, 32, 32, 3), "NHWC"),
        ((None, 3, None, None), (9, 32, 48, 3), "NCHW"),
        ((None, None, None, 3), (9, 32, 48, 3), "NHWC"),
        ((None, 3072), (9, 32, 32, 3), "flat"),
        ((None, 4), (9, 4), None),
        ((None, 10, 7), (9, 10, 7), None),
        ((None,), (9,), None),
    ],
)
def test_layouts_that_can_be_told(input_shape, batch_shape, layout):
    found = guess(input_shape, np.float32, batch_shape)
    assert found.layout == layout
    assert found.scale == ("unit" if len(batch_shape) > 2 else "raw")
    assert guess(input_shape, np.uint8, batch_shape).scale == "raw"


@pytest.mark.parametrize(
    ("input_shape", "batch_shape"), [((None, None, None, None), (9, 32, 32, 3)), ((None, 3, 3, 3), (9, 3, 3, 3))]
)
def test_layouts_that_cannot_be_told(input_shape, batch_shape):
    with pytest.raises(InputError, match=r"^layout: inputs \(N, .* as NCHW and as NHWC; set layout$"):
        guess(input_shape, np.float32, batch_shape)


@pytest.mark.parametrize(
    ("input_shape", "batch_shape", "shapes"),
    [
        ((None, 3, 32, 32), (9, 32, 32), r"\(N, 32, 32\) \(grey images\); the model takes \(N, 3, 32, 32\)"),
        ((None, 1, 28, 28), (9, 28, 28, 3), r"\(N, 28, 28, 3\) \(colour images\); the model takes \(N, 1, 28, 28\)"),
        ((None, 3, 32, 32), (9, 28, 28, 3), r"\(N, 28, 28, 3\) .* \(N, 3, 32, 32\)"),
        ((None, 5), (9, 4), r"\(N, 4\); the model takes \(N, 5\)"),
    ],
)
def test_shapes_that_do_not_fit(input_shape, batch_shape, shapes):
    with pytest.raises(InputError, match=shapes):
        guess(input_shape, np.float32, batch_shape)
    if len(input_shape) == 4:
        with pytest.raises(InputError, match=shapes):
            Preprocess("NCHW", "unit", expects=input_shape)(np.zeros(batch_shape, np.uint8))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"layout": "NCWH"}, "'NCWH' is not known; did you mean 'NCHW'"),
        ({"scale": "units"}, "'units' is not accepted; a number or one of unit, raw, signed"),
        ({"scale": 0}, "scale: must be a number other than 0, got 0"),
        ({"scale": float("nan")}, "scale: must be a number, got nan"),
        ({"scale": True}, "scale: must be a number, got True"),
        ({"mean": "a"}, "mean: 'a'"),
        ({"mean": []}, r"mean: \[\]"),
        ({"std": [1, 0]}, "std"),
        ({"std": [1, float("nan")]}, "std"),
    ],
)
def test_options_that_are_refused(options, message):
    with pytest.raises(InputError, match=message):
        Preprocess(**options)


def test_the_wrong_number_of_channels():
    for layout, batch in (("NCHW", COLOUR), ("NHWC", COLOUR), ("flat", COLOUR), ("NCHW", GREY), ("flat", GREY)):
        with pytest.raises(InputError, match="have 2 values"):
            Preprocess(layout, "unit", mean=[0.1, 0.2])(batch)
    with pytest.raises(InputError, match=r"NCHW is for images .* shape \(N, 4\)"):
        Preprocess("NCHW")(np.zeros((2, 4)))
