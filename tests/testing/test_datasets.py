"""The contract of data sets finds each way to break it."""

import itertools

import numpy as np
import pytest

from testifai.data import Data
from testifai.testing import check_data

ROWS = np.arange(20.0).reshape(10, 2)


class Unsteady(Data):
    fingerprint = property(lambda self: f"{next(itertools.count())}{id(self)}")


class Constant(Data):
    fingerprint = "constant"


class Places(np.ndarray):
    """Numbers the inputs by where they stand among those picked."""

    def __getitem__(self, rows):
        found = np.asarray(self)[rows]
        return found + np.arange(len(found))[:, None] if isinstance(rows, np.ndarray) else found


BREACHES = {
    "3 labels for 10 inputs": lambda: Data(ROWS, np.arange(3)),
    r"labels without a name: \[2\]": lambda: Data(ROWS, np.arange(10) % 3, ("a", "b")),
    "0 inputs": lambda: Data(ROWS[:0]),
    "depends on those picked with it": lambda: Data(ROWS.view(Places)),
    "from one load to the next": lambda: Unsteady(ROWS),
    "other labels have the same fingerprint": lambda: Constant(ROWS, np.arange(10) % 3),
    "fewer inputs have the same fingerprint": lambda: Constant(ROWS),
    "its fingerprint is 5": lambda: type("Number", (Data,), {"fingerprint": 5})(ROWS),
}


@pytest.mark.parametrize("words", BREACHES)
def test_each_breach_is_named(words):
    with pytest.raises(AssertionError, match=words) as caught:
        check_data(BREACHES[words])
    assert "\n" not in str(caught.value)
