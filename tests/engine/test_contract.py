"""Every executor of ours keeps the contract that others are held to."""

import pytest

from testifai.engine import EXECUTORS
from testifai.testing import check_executor


@pytest.mark.parametrize("name", EXECUTORS)
def test_it_keeps_the_contract(name):
    if name == "device":
        pytest.importorskip("torch")
    check_executor(EXECUTORS[name])
