"""Every strategy of ours keeps the contract that others are held to."""

import pytest

from testifai.strategies import STRATEGIES
from testifai.testing import check_strategy

OPTIONS = {"ordered": [{"max_order": 1}, {"extra": 4}], "random": [{"tests_run": 5}]}
CASES = [{"use": name, **options} for name in STRATEGIES for options in [{}, *OPTIONS.get(name, [])]]


@pytest.mark.parametrize("described", CASES, ids=str)
def test_it_keeps_the_contract(described):
    check_strategy(lambda: described)


def test_one_for_queries_keeps_it_too():
    check_strategy(lambda: {"use": "adaptive", "for_queries": ["a > 0 and b > 0"]})
