"""Every surrogate of ours keeps the contract that others are held to."""

import pytest

from testifai.surrogates import SURROGATES, resolve
from testifai.testing import check_surrogate

OPTIONS = {"forest": {"trees": 20}, "independence": {"draws": 200}}


@pytest.mark.parametrize("name", SURROGATES)
def test_it_keeps_the_contract(name):
    check_surrogate(lambda: resolve({"use": name, **OPTIONS.get(name, {})}))


def test_a_process_for_new_inputs_keeps_it_too():
    check_surrogate(lambda: resolve("process", finite=False))
