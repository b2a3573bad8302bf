"""Every executor of ours keeps the contract that others are held to."""

import pytest

from testifai.engine import EXECUTORS
from testifai.testing import check_executor


# The one on Ray needs a cluster: tests/engine/ray.
@pytest.mark.parametrize("name", [name for name in EXECUTORS if name != "ray"])
def test_it_keeps_the_contract(name):
    if name == "device":
        pytest.importorskip("torch")
    check_executor(EXECUTORS[name])
