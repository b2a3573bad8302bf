"""Every technique of ours keeps the contract that others are held to."""

import pytest

from testifai.operational import TECHNIQUES, resolve
from testifai.testing import check_technique


@pytest.mark.parametrize("name", TECHNIQUES)
def test_it_keeps_the_contract(name):
    check_technique(lambda: resolve(name))
