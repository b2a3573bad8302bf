"""Perturbation objects, the names they are found under, and what is refused."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import Perturbation, describe, get, names, perturbation, rebuild, registry, resolve

ROWS = np.arange(12.0).reshape(4, 3)


@pytest.fixture(autouse=True)
def own_registry(monkeypatch):
    names()
    monkeypatch.setattr(registry, "_registered", dict(registry._registered))


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
    with pytest.raises(InputError, match=r"^perturbation 'fade': severity .* does not exist.* 0 to 2$"):
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
    with pytest.raises(InputError, match=r"^seed: 0.5"):
        made().apply(ROWS, 1, seed=0.5)


def test_draws_follow_seed_index_and_occurrence():
    noise = made(lambda batch, parameter, rng: batch + rng.normal(3))
    plain = noise.apply(ROWS, 1)
    moved = noise.apply(ROWS, 1, indices=[3, 2, 1, 0])
    assert np.allclose((moved - ROWS)[::-1], plain - ROWS)
    assert (noise.apply(ROWS, 1, seed=1) != plain).all()
    assert (noise.apply(ROWS, 1, occurrence=1) != plain).all()


def test_the_decorator_registers_and_returns_the_perturbation():
    @perturbation("fade", severities=[1.0, 0.5])
    def fade(batch, factor, rng):
        """Darker rows.

        More."""
        return batch * factor

    assert isinstance(fade, Perturbation)
    assert fade.summary == "Darker rows."
    assert get("fade") is fade
    assert resolve("fade") is fade
    assert resolve(fade) is fade
    assert "fade" in names()


def test_running_a_definition_again_replaces_it():
    def define(factor):
        @perturbation("fade", severities=[1.0, factor])
        def fade(batch, factor, rng):
            return batch * factor

        return fade

    define(0.5)
    second = define(0.4)
    assert get("fade") is second


def test_a_taken_name_is_refused_to_another_function():
    perturbation("fade", severities=[1.0, 0.5])(scale)
    with pytest.raises(InputError, match="'fade' is taken"):
        perturbation("fade", severities=[1.0, 0.5])(in_place)
    perturbation("blank", severities=[0, 1])(lambda batch, parameter, rng: batch)
    with pytest.raises(InputError, match="'blank' is taken"):
        perturbation("blank", severities=[0, 1])(lambda batch, parameter, rng: batch * 0)


def test_a_built_in_suite_keeps_its_prefix():
    with pytest.raises(InputError, match=r"'mnist_c\.' belongs to a built-in suite"):
        perturbation("mnist_c.fade", severities=[0, 1])(scale)


@pytest.mark.parametrize("name", ["mnist_c.zom", "mnistc.zoom"])
def test_an_unknown_name_is_answered_with_a_near_one(name):
    with pytest.raises(InputError, match=r"did you mean 'mnist_c\.zoom'"):
        get(name)


@pytest.mark.parametrize("name", [None, 3, ["mnist_c.zoom"]])
def test_what_is_no_name_is_refused(name):
    with pytest.raises(InputError, match="is not known"):
        resolve(name)


def test_names_of_a_suite():
    perturbation("mine.fade", severities=[1.0, 0.5])(scale)
    assert names("mine") == ["mine.fade"]
    assert names("mnist_c") == [
        f"mnist_c.{name}"
        for name in ("brightness", "motion_blur", "rotate", "shear", "shot_noise", "translate", "zoom")
    ]
    with pytest.raises(InputError, match="did you mean 'mnist_c'"):
        names("mnistc")


def test_a_description_is_json_and_leads_back():
    table = [None, np.float32(0.5), (1, np.arange(2)), {"a": np.int8(1)}]
    fade = perturbation("fade", severities=table)(scale)
    description = describe(fade)
    assert description == {"name": "fade", "severities": [None, 0.5, [1, [0, 1]], {"a": 1}]}
    assert rebuild(json.loads(json.dumps(description))) is fade


def test_a_changed_table_is_noticed():
    perturbation("fade", severities=[1.0, 0.5])(scale)
    with pytest.raises(InputError, match="'fade': severities were"):
        rebuild({"name": "fade", "severities": [1.0, 0.4]})


def test_importing_the_package_does_not_import_opencv():
    code = (
        "import sys, testifai.perturb as p; print('cv2' in sys.modules); p.get('mnist_c.zoom'); "
        "print('cv2' in sys.modules)"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["False", "True"]


def test_floats_of_another_precision_come_back_as_given():
    noise = Perturbation("noise", lambda batch, size, rng: batch + size * rng.normal(batch.shape[1:]), [0.0, 1.0])
    assert noise.apply(np.zeros((3, 2), np.float32), 1).dtype == np.float32
