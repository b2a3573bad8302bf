"""Inputs of a test as parts of the page: images with boxes, and texts with their edits."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest

from testifai.data.annotations import pack
from testifai.engine.subject import Subject
from testifai.oracles.detection import Detection
from testifai.perturb import get
from testifai.present import overlays
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.space import Space
from testifai.tomogram import Tomogram

SPACE = Space({"shift": (get("deeptest.translate"), [0, 5])})
BOX = np.array([[40, 40, 100, 100, 1, 0]], np.float32)


def test_photographs_of_different_sizes_with_their_boxes():
    pytest.importorskip("dash")
    from testifai.app import panels
    from testifai.data import wrap
    from testifai.models import wrap as wrap_model

    images = [np.full((200 + 20 * number, 220, 3), 90, np.uint8) for number in range(3)]

    def stays(batch):  # what it finds does not move along
        return [{"boxes": BOX[:, :4], "labels": [0], "scores": [0.9]} for _ in batch]

    subject = Subject(
        wrap(images), SPACE, visiting_order(3, 0), model=wrap_model(stays), oracle=Detection(against="labels"),
        labels=pack([BOX] * 3),
    )  # fmt: skip
    outcomes = Outcomes(3)
    outcomes.record(1, np.arange(3), np.zeros(3, bool))
    tomogram = Tomogram(SPACE, outcomes, subject.order)
    runs = SimpleNamespace(
        tomogram=lambda run: tomogram, names=["run.db"], session=lambda run: SimpleNamespace(subject=subject)
    )
    page = json.dumps(panels.test(runs, 0, 1).to_plotly_json(), default=lambda one: one.to_plotly_json())
    assert page.count("example fails photograph") == 3
    assert page.count("data:image/jpeg;base64,") == 6
    assert overlays.LEGEND in page
    assert page.count("1 missed, 1 false ") == 3


def shown(inputs, changed):
    """The page's part for three texts, of which the last passes and the first was not tried."""
    pytest.importorskip("dash")
    from testifai.app import panels
    from testifai.runs.outcomes import Outcomes

    outcomes = Outcomes(3)
    outcomes.record(1, np.array([1, 2]), np.array([False, True]))
    subject = SimpleNamespace(
        batch=lambda places: [inputs[place] for place in places],
        composite=lambda sigma, places: [changed[place] for place in places],
        infer=lambda batch, number: np.eye(2)[[0] * len(batch)],
        oracle=SimpleNamespace(decides_classes=True),
        order=np.arange(3),
        labels=np.array([0, 1, 0]),
        model=SimpleNamespace(class_values=None),
        data=SimpleNamespace(classes=("other", "<b>same</b>")),
    )
    tomogram = SimpleNamespace(outcomes=outcomes, space=SimpleNamespace(configuration=lambda number: (1,)))
    parts = panels._texts(subject, tomogram, 1, np.arange(3))
    return [json.dumps(part.to_plotly_json(), default=lambda one: one.to_plotly_json()) for part in parts]


def test_texts_with_their_edits():
    parts = shown(["a dark night", "b", "c"], ["a drak night", "b", "c"])
    assert '"dark"' in parts[0]
    assert '"type": "Del"' in parts[0]
    assert '"type": "Ins"' in parts[0]
    assert ["not tried" in part for part in parts] == [True, False, False]
    assert ["fails" in part for part in parts] == [False, True, False]
    assert "true <b>same</b> " in parts[1]  # as text: nothing in the page takes mark-up
    assert "Del" not in parts[1]


def test_both_texts_of_a_pair_are_shown():
    parts = shown([("one", "two")] * 3, [("one", "tow")] * 3)
    assert parts[0].count('"type": "Blockquote"') == 2
    assert parts[0].count('"type": "Del"') == 1
