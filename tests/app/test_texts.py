"""A test's texts are shown with their edits."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest


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
