"""A test's photographs are shown with what was expected and found on them."""

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
