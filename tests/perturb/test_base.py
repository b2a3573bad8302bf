"""Perturbation objects: what they apply, what they check and what they refuse."""

from __future__ import annotations

import sys

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation, Rng, base, get

ROWS = np.arange(12.0).reshape(4, 3)


def scale(batch, factor, rng):
    return batch * factor


def made(function=scale, severities=(1.0, 0.8, 0.6)):
    return Perturbation("fade", function, severities)


def test_a_severity_hands_its_own_parameter_to_the_function():
    fade = made(severities=[1.0, 0.8, 0.6])
    assert fade.severities == (1.0, 0.8, 0.6)
    assert np.array_equal(fade.apply(ROWS, 1), ROWS * 0.8)
    assert np.array_equal(fade.apply(ROWS, np.int64(2)), ROWS * 0.6)


def test_severity_0_never_calls_the_function():
    def explode(batch, parameter, rng):
        raise AssertionError("called")

    assert made(explode).apply(ROWS, 0) is ROWS


@pytest.mark.parametrize("severity", [3, -1, 1.0, True, "1", None])
def test_an_unknown_severity_is_named_with_what_is_accepted(severity):
    words = r"^perturbation 'fade': severity: must be a whole number, at least 0 and at most 2, got"
    with pytest.raises(InputError, match=words):
        made().apply(ROWS, severity)


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (("", scale, [0, 1]), "name"),
        ((None, scale, [0, 1]), "name"),
        (("fade", "scale", [0, 1]), "callable"),
        (("fade", scale, [0]), "at least 2"),
        (("fade", scale, "01"), "severities"),
        (("fade", scale, 5), "severities"),
        (("fade", scale, [0, 1], "", "boxes"), "boxes is 'boxes'; it must be callable"),
        (("fade", scale, [0, 1], "", None, None, True, (1.0, 1.0)), "two different numbers"),
        (("fade", scale, [0, 1], "", None, None, True, (0.0, 1.0, 2.0)), "two different numbers"),
        (("fade", scale, [0, 1], "", None, None, True, (0.0, np.inf)), "two different numbers"),
        (("fade", scale, [0, 1], "", None, None, True, 1.0), "two different numbers"),
    ],
)
def test_a_badly_made_perturbation_is_refused(arguments, words):
    with pytest.raises(InputError, match=words):
        Perturbation(*arguments)


def in_place(batch, parameter, rng):
    batch[:] = 0
    return batch


def in_place_operator(batch, parameter, rng):
    batch *= 0.5
    return batch


@pytest.mark.parametrize("function", [in_place, in_place_operator])
def test_writing_to_the_argument_is_refused_and_reaches_nobody(function):
    rows = ROWS.copy()
    with pytest.raises(InputError, match="must not change its argument; work on a copy"):
        made(function).apply(rows, 1)
    assert np.array_equal(rows, ROWS)
    assert rows.flags.writeable


def test_a_list_that_is_written_to_is_a_copy():
    def shout(texts, times, rng):
        texts[0] += "!" * times
        return texts

    texts = ["a", "b"]
    assert made(shout, [0, 1, 2]).apply(texts, 2) == ["a!!", "b"]
    assert texts == ["a", "b"]


def test_returning_the_argument_gives_the_caller_an_array_of_their_own():
    result = made(lambda batch, parameter, rng: batch).apply(ROWS, 1)
    assert result.flags.writeable
    assert not np.shares_memory(result, ROWS)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda batch, parameter, rng: batch[:2], r"shape \(2, 3\).*expected float64 of shape \(4, 3\)"),
        (lambda batch, parameter, rng: batch.astype("i4"), "int32"),
        (lambda batch, parameter, rng: None, "nothing"),
        (lambda batch, parameter, rng: batch.tolist(), "a list"),
        (lambda batch, parameter, rng: 1 / 0, "failed at severity 1: ZeroDivisionError"),
        (lambda batch, rng: batch, "failed at severity 1: TypeError"),
    ],
)
def test_a_function_that_misbehaves_is_reported_in_one_line(function, words):
    with pytest.raises(InputError, match=words) as caught:
        made(function).apply(ROWS, 1)
    assert "'fade'" in str(caught.value)
    assert "\n" not in str(caught.value)


def test_the_error_of_a_function_is_chained():
    with pytest.raises(InputError) as caught:
        made(lambda batch, parameter, rng: 1 / 0).apply(ROWS, 1)
    assert isinstance(caught.value.__cause__, ZeroDivisionError)


@pytest.mark.parametrize("result", [["a"], ["a", 1], np.array(["a", "b"]), "ab"])
def test_texts_must_stay_a_list_of_as_many_strings(result):
    with pytest.raises(InputError, match="'fade' at severity 1 returned"):
        made(lambda texts, parameter, rng: result).apply(["x", "y"], 1)


@pytest.mark.parametrize("batch", [[], np.empty((0, 3)), np.float64(3), np.array(3), [1, 2], ("a", "b"), None])
def test_what_is_no_batch_is_refused(batch):
    with pytest.raises(InputError, match=r"^batch: "):
        made().apply(batch, 1)


@pytest.mark.parametrize("indices", [[0, 1], [0, 1, 2, -3], [0.0, 1.0, 2.0, 3.0], 4])
def test_bad_indices_are_refused(indices):
    with pytest.raises(InputError, match=r"^indices: "):
        made().apply(ROWS, 1, indices=indices)


def test_a_seed_must_be_a_whole_number():
    with pytest.raises(InputError, match=r"^seed: must be a whole number, got 0\.5"):
        made().apply(ROWS, 1, seed=0.5)


def test_draws_follow_seed_index_and_occurrence():
    noise = made(lambda batch, parameter, rng: batch + rng.normal(3))
    plain = noise.apply(ROWS, 1)
    moved = noise.apply(ROWS, 1, indices=[3, 2, 1, 0])
    assert np.allclose((moved - ROWS)[::-1], plain - ROWS)
    assert (noise.apply(ROWS, 1, seed=1) != plain).all()
    assert (noise.apply(ROWS, 1, occurrence=1) != plain).all()


def test_floats_of_another_precision_come_back_as_given():
    noise = Perturbation("noise", lambda batch, size, rng: batch + size * rng.normal(batch.shape[1:]), [0.0, 1.0])
    assert noise.apply(np.zeros((3, 2), np.float32), 1).dtype == np.float32


# -- levels -------------------------------------------------------------------------------------------------------


def dim(levels=(1.0, 0.2)):
    return Perturbation("dim", scale, [1.0, 0.8, 0.2], levels=levels)


@pytest.mark.parametrize("level", [0.2, 0.35, np.float32(0.5), np.int64(1), 1])
def test_a_level_is_handed_to_the_function(level):
    assert np.array_equal(dim().apply_level(ROWS, level), ROWS * float(level))


def test_the_off_end_of_the_levels_never_calls_the_function():
    def explode(batch, parameter, rng):
        raise AssertionError("called")

    assert Perturbation("dim", explode, [0, 1], levels=(3, 1)).apply_level(ROWS, 3) is ROWS


@pytest.mark.parametrize("level", [1.01, 0.19, np.nan, True, "1", None, 1j, np.complex64(0.5)])
def test_a_level_outside_its_ends_is_refused(level):
    words = r"^perturbation 'dim': level: must be a number, at least 0\.2 and at most 1, got"
    with pytest.raises(InputError, match=words):
        dim().apply_level(ROWS, level)


def test_without_levels_there_is_no_level():
    with pytest.raises(InputError, match="'fade': it has no continuous level"):
        made().apply_level(ROWS, 0.5)


def test_draws_are_the_same_at_every_level_and_others_than_those_of_a_severity():
    noise = Perturbation(
        "noise", lambda batch, size, rng: batch + size * rng.normal(3), [0.0, 0.5, 1.0, 2.0], levels=(0.0, 2.0)
    )
    unit = noise.apply_level(ROWS, 1.0, seed=3) - ROWS
    assert np.allclose(noise.apply_level(ROWS, 2.0, seed=3) - ROWS, 2 * unit)
    assert np.allclose(noise.apply_level(ROWS[2:], 2.0, seed=3, indices=[2, 3]) - ROWS[2:], 2 * unit[2:])
    for other in (
        noise.apply_level(ROWS, 1.0, seed=4),
        noise.apply_level(ROWS, 1.0, seed=3, occurrence=1),
        noise.apply(ROWS, 2, seed=3),
    ):
        assert not np.isclose(other - ROWS, unit).any()


def test_a_function_that_fails_at_a_level_is_reported():
    broken = Perturbation("dim", lambda batch, parameter, rng: batch[:1], [0, 1], levels=(0, 1))
    with pytest.raises(InputError, match=r"'dim' at level 0\.5 returned float64 of shape \(1, 3\)"):
        broken.apply_level(ROWS, 0.5)


# -- boxes --------------------------------------------------------------------------------------------------------


def jitter(batch, pixels, rng):
    return batch + pixels * rng.uniform(2)[:, :1]


def jitter_boxes(boxes, pixels, rng, size):
    moves = pixels * rng.uniform(2)
    return [rows + np.tile(move, 2) for rows, move in zip(boxes, moves, strict=True)]


JITTER = Perturbation("jitter", jitter, [0, 1, 10], boxes=jitter_boxes)
BOXES = [[[1, 2, 3, 4], [0, 0, 5, 5]], [], np.array([[2.5, 2.5, 2.5, 3]])]


def test_boxes_move_by_the_draws_that_moved_the_images():
    moved = JITTER.apply_boxes(BOXES, 2, (8, 9), seed=5, indices=[4, 7, 9])
    assert [rows.shape for rows in moved] == [(2, 4), (0, 4), (1, 4)]
    images = JITTER.apply(np.zeros((3, 1)), 2, seed=5, indices=[4, 7, 9])
    assert np.allclose(moved[0][:, 0], np.array([1, 0]) + images[0])
    assert np.allclose(moved[2][:, 0], 2.5 + images[2])
    alone = JITTER.apply_boxes(BOXES[2:], 2, (8, 9), seed=5, indices=[9])
    assert np.array_equal(alone[0], moved[2])
    again = JITTER.apply_boxes(BOXES, 2, (8, 9), seed=5, indices=[4, 7, 9], occurrence=1)
    assert not np.allclose(again[0], moved[0])


def test_boxes_stay_where_nothing_moves_them():
    for subject, severity in ((JITTER, 0), (made(), 2)):
        stay = subject.apply_boxes(BOXES, severity, (8, 9))
        assert [rows.tolist() for rows in stay] == [[[1, 2, 3, 4], [0, 0, 5, 5]], [], [[2.5, 2.5, 2.5, 3]]]
        assert all(rows.dtype == np.float64 for rows in stay)
        assert not np.shares_memory(stay[2], BOXES[2])
    assert JITTER.apply_boxes([], 2, (8, 9)) == []


@pytest.mark.parametrize(
    "rows", [[1, 2, 3, 4], [[1, 2, 3]], [[3, 2, 1, 4]], [[1, 2, 3, np.nan]], [[1, 2], [3]], [["a"] * 4], 3.0, None]
)
def test_what_are_no_boxes_is_refused(rows):
    with pytest.raises(InputError, match=r"^boxes\[1\]: give rows of"):
        JITTER.apply_boxes([[[1, 2, 3, 4]], rows], 1, (8, 9))


@pytest.mark.parametrize("size", [8, (8,), (8, 9, 3), (8, 0), (8.5, 9), "89", None])
def test_a_size_is_height_and_width(size):
    with pytest.raises(InputError, match=r"^size: .* give the images' \(height, width\)"):
        JITTER.apply_boxes(BOXES, 1, size)


@pytest.mark.parametrize(
    ("boxes", "words"),
    [
        (lambda *_: 1 / 0, "'jitter' failed at severity 1 on boxes: ZeroDivisionError"),
        (lambda boxes, *_: boxes[:1], "returned boxes of another number"),
        (lambda boxes, *_: [rows[:1] for rows in boxes], "returned boxes of another number"),
    ],
)
def test_a_boxes_function_that_misbehaves_is_reported_in_one_line(boxes, words):
    with pytest.raises(InputError, match=words):
        Perturbation("jitter", jitter, [0, 1], boxes=boxes).apply_boxes(BOXES, 1, (8, 9))


# -- tensors ------------------------------------------------------------------------------------------------------


class Device:
    type = "cpu"


class Tensor:
    """As much of a torch tensor as the registry looks at."""

    def __init__(self, values):
        self.values = np.asarray(values)

    shape = property(lambda self: self.values.shape)
    dtype = property(lambda self: self.values.dtype)
    device = Device()

    def __len__(self):
        return len(self.values)

    def clone(self):
        return Tensor(self.values.copy())

    def is_floating_point(self):
        return self.dtype.kind == "f"

    def to(self, dtype):
        return Tensor(self.values.astype(dtype))


@pytest.fixture
def torch(monkeypatch):
    """Stand-ins for torch and for the draws of tensors."""

    class TensorRng(Rng):
        def __init__(self, *key, device):
            super().__init__(*key)
            self.device = device

    def module(**members):
        return type("module", (), members)

    monkeypatch.setitem(sys.modules, "torch", module(Tensor=Tensor))
    monkeypatch.setitem(sys.modules, "testifai.perturb.ops_torch.rng", module(TensorRng=TensorRng))


def test_a_tensor_goes_in_and_a_tensor_comes_out(torch):
    def noise(batch, size, rng):
        assert rng.device is batch.device
        return Tensor(batch.values + size * rng.normal(3))

    rows = Tensor(ROWS.astype(np.float32))
    changed = made(noise, [0.0, 1.0]).apply(rows, 1)
    assert changed.dtype == np.float32
    expected = made(lambda batch, size, rng: batch + size * rng.normal(3), [0.0, 1.0]).apply(ROWS, 1)
    assert np.allclose(changed.values, expected, atol=1e-5)


def test_writing_to_a_tensor_reaches_nobody(torch):
    def in_place(batch, factor, rng):
        batch.values *= factor
        return batch

    rows = Tensor(ROWS.copy())
    changed = made(in_place).apply(rows, 2)
    assert np.array_equal(rows.values, ROWS)
    assert np.array_equal(changed.values, ROWS * 0.6)


@pytest.mark.parametrize(
    ("function", "words"),
    [
        (lambda batch, *_: batch.values, "returned a ndarray; expected a tensor"),
        (lambda batch, *_: None, "returned nothing; expected a tensor"),
        (lambda batch, *_: Tensor(batch.values[:2]), r"shape \(2, 3\).*expected float64 of shape \(4, 3\)"),
        (lambda batch, *_: Tensor(batch.values.astype(int)), "returned int64"),
    ],
)
def test_a_wrong_answer_to_a_tensor_is_refused(torch, function, words):
    with pytest.raises(InputError, match=words):
        made(function).apply(Tensor(ROWS), 1)


def test_a_tensor_in_answer_to_an_array_is_refused(torch):
    with pytest.raises(InputError, match="returned a Tensor; expected an array"):
        made(lambda batch, *_: Tensor(batch)).apply(ROWS, 1)


@pytest.mark.parametrize("values", [np.zeros((0, 3)), np.zeros((3, 0)), np.array(1.0)])
def test_tensors_without_inputs_are_refused(torch, values):
    with pytest.raises(InputError, match=r"^batch: "):
        made().apply(Tensor(values), 1)


def test_nothing_is_a_tensor_while_torch_is_not_imported(monkeypatch):
    monkeypatch.delitem(sys.modules, "torch", raising=False)
    assert not base.is_tensor(Tensor(ROWS))


def test_images_of_different_sizes_are_changed_as_each_would_be_alone():
    random = np.random.default_rng(1)
    images = [random.integers(0, 256, (*size, 3), np.uint8) for size in ((20, 30), (25, 20), (20, 30))]
    before = [image.copy() for image in images]
    noise = get("imagenet_c.gaussian_noise")
    together = noise.apply(images, 3, seed=2, indices=[5, 9, 4])
    for image, changed, number in zip(images, together, (5, 9, 4), strict=True):
        assert np.array_equal(changed, noise.apply(image[None], 3, seed=2, indices=[number])[0])
    assert all(map(np.array_equal, images, before))
    with pytest.raises(InputError, match="its row 1 is a str; give a list of arrays"):
        noise.apply([images[0], "text"], 3)
