"""The contract of models finds each way to break it."""

import itertools

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.models import PythonModel
from testifai.testing import check_model

ROWS = np.random.default_rng(0).normal(size=(8, 3))
counter = itertools.count()


def spoils(rows):
    rows[:] = 0
    return rows


class Loaded(PythonModel):
    """A model with another fingerprint each time it is loaded."""

    def __init__(self):
        super().__init__(np.asarray, name="loaded")
        self.number = next(counter)

    @property
    def fingerprint(self):
        return str(self.number)


BREACHES = {
    "changes its arguments": lambda: spoils,
    "2 outputs for 8 inputs": lambda: lambda rows: rows[:2],
    "NaN": lambda: lambda rows: rows * np.nan,
    "does not repeat itself": lambda: lambda rows: rows + next(counter),
    "depends on the batch": lambda: lambda rows: rows - rows.mean(),
    "announces labels": lambda: PythonModel(lambda rows: rows, outputs="labels"),
    "announces scores": lambda: PythonModel(lambda rows: rows[:, 0], outputs="scores"),
    "announces 5 classes and returns 3": lambda: PythonModel(lambda rows: rows, classes=5),
    "from one load to the next": lambda: Loaded,
}


@pytest.mark.parametrize("words", BREACHES)
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_model(BREACHES[words](), ROWS.copy())
    assert "\n" not in str(caught.value)


def test_too_few_inputs_are_refused():
    with pytest.raises(InputError, match="at least 4"):
        check_model(lambda rows: rows, ROWS[:2])
