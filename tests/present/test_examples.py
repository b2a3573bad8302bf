"""Failing inputs as they are shown: the right ones, changed as the run changed them, with the model's own answer."""

from __future__ import annotations

import base64

import cv2
import numpy as np
import pytest

from testifai.data.table_columns import Column, learn
from testifai.models.onnx import OnnxModel
from testifai.perturb import apply
from testifai.present.examples import examples, failing_places, failures, row_thumbs, telling_tests, thumb, thumbs
from testifai.session.assembly import session_of
from testifai.session.stored_runs import open_run, reopen
from testifai.space import Space


@pytest.fixture(scope="module")
def reopened(run_folder):
    return reopen(run_folder / "spec.db"), open_run(run_folder / "spec.db")


def pixels(picture):
    data = base64.b64decode(picture.partition(",")[2])
    return cv2.imdecode(np.frombuffer(data, np.uint8), cv2.IMREAD_UNCHANGED)


def test_shown_failures_fail(reopened, run_folder):
    session, tomogram = reopened
    data = np.load(run_folder / "digits.npz")
    model = OnnxModel(run_folder / "lenet5.onnx")
    shown = failures(session.subject, tomogram, each=4)
    assert len(shown) == 6
    names = [axis.perturbation.name for axis in tomogram.space.axes]
    for one in shown:
        sigma = tomogram.space.configuration(one.test)
        assert one.failed == one.trials - tomogram.passes[tomogram.space.index(sigma)]
        composite = {name: severity for name, severity in zip(names, sigma, strict=True) if severity}
        for example in one.examples:
            original = data["x"][example.number]
            changed = apply(composite, original[None], seed=0, indices=[example.number])
            assert np.array_equal(pixels(example.original.picture), original)
            assert np.array_equal(pixels(example.changed.picture), changed[0])
            assert example.predicted == str(model(changed).argmax())
            assert example.label == str(data["y"][example.number])
            assert example.predicted != example.label
            assert example.passed is False


def test_telling_tests(partial):
    tests = telling_tests(partial, 2)
    severity = {test: sum(partial.space.configuration(test)) for test, _ in tests}
    assert [severity[test] for test, why in tests if "mildest" in why] == [1, 1]
    worst = [test for test, why in tests if "worst" in why]
    measured = partial.estimator.measured_ids
    rates = partial.passes.reshape(-1)[measured] / 40
    assert sorted(partial.estimate.reshape(-1)[worst]) == pytest.approx(sorted(rates)[:2])


def test_places(partial):
    test = partial.space.id((3, 0, 0))
    assert failing_places(partial, test, 3).tolist() == [31, 32, 33]  # 40 - 3 · 3 inputs pass


def test_inputs_that_were_not_tried_can_be_shown(reopened):
    session, tomogram = reopened
    test = tomogram.space.size - 1  # of order 3, which the run did not measure
    assert [example.passed for example in examples(session.subject, tomogram, test, np.arange(2))] == [None, None]


@pytest.mark.parametrize(
    ("array", "shape"),
    [
        (np.zeros((5, 7)), (5, 7)),
        (np.zeros((5, 7, 1), np.uint8), (5, 7)),
        (np.zeros((5, 7, 3), np.float32), (5, 7, 3)),
        (np.zeros((3, 5, 7)), (5, 7, 3)),
        (np.zeros((300, 150, 3), np.uint8), (112, 56, 3)),
    ],
)
def test_pictures(array, shape):
    assert pixels(thumb(array).picture).shape == shape


def test_colours_keep_their_places():
    red = np.zeros((4, 4, 3))
    red[..., 0] = 1.0
    assert pixels(thumb(red).picture)[0, 0].tolist() == [0, 0, 255]  # OpenCV reads blue first


def test_texts_are_shown_with_their_edits():
    """What the model was given, in pieces that make it up; whatever is marked is only in one of the two."""
    texts = ["The film was a quiet triumph of feeling.", "Nobody should sit through this again, ever."] * 5
    labels = np.arange(10) % 2
    space = Space({"typo": "text.typo", "order_of_words": "text.order"})
    session = session_of(lambda batch: np.array(["film" in text for text in batch], int) ^ 1, (texts, labels), space)
    tomogram = session.run()
    test = space.id((2, 1))
    places = np.arange(10)
    shown = examples(session.subject, tomogram, test, places)
    changed = session.subject.composite((2, 1), places)
    for place, example in enumerate(shown):
        assert example.original.text == texts[example.number]
        assert example.changed.text == changed[place]
        assert example.original.picture is None
        for thumb_, other in ((example.original, example.changed), (example.changed, example.original)):
            kept = [piece.text for text in thumb_.pieces for piece in text if not piece.edited]
            assert "".join(kept) == "".join(p.text for text in other.pieces for p in text if not p.edited)
    assert any(piece.edited for example in shown for text in example.changed.pieces for piece in text)


def test_pairs_of_texts():
    original, changed = thumbs(("Is it far?", "How far is it?"), ("Is it far?", "How <far> is it?"))
    assert original.text == "Is it far?\nHow far is it?"
    assert [len(thumb_.pieces) for thumb_ in (original, changed)] == [2, 2]
    assert [piece.text for piece in changed.pieces[1] if piece.edited] == ["<", ">"]
    assert not any(piece.edited for piece in changed.pieces[0])


def test_rows_and_long_texts():
    assert thumb(np.arange(30.0)).text.endswith(", …")
    assert len(thumb("x" * 10_000).text) == 400


def test_rows_of_a_table_are_lines_with_what_differs_marked():
    rows = np.array([[30.0, 0.0], [31.0, 0.0]])
    left, right = row_thumbs(learn([Column("age"), Column("sex", "category", ("f", "m"))], rows), *rows)
    assert (left.text, right.text) == ("age 30\nsex f", "age 31\nsex f")
    assert [(piece.text, piece.edited) for piece in right.pieces[0]] == [("age ", False), ("31", True)]
