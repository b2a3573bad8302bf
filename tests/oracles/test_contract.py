"""Every oracle of ours keeps the contract that others are held to."""

import numpy as np
import pytest

from testifai.oracles import ORACLES
from testifai.testing import check_oracle


def higher(outputs, expected, clean):
    return outputs[:, 0] > clean[:, 1]


CASES = [
    "label",
    {"use": "label", "threshold": 0.1},
    "detection",
    {"use": "detection", "iou": 0.3, "against": "clean"},
    "segmentation",
    {"use": "segmentation", "iou": 0.3, "void": 1, "against": "clean"},
    "consistency",
    {"use": "consistency", "threshold": 0.0},
    {"use": "tolerance", "eps": 1.0},
    {"use": "tolerance", "eps": 0.5, "against": "truth", "relative": True},
    {"use": "function", "function": higher},
    higher,
]


def test_every_oracle_is_here():
    assert {case if isinstance(case, str) else case["use"] for case in CASES if not callable(case)} == set(ORACLES)


@pytest.mark.parametrize("oracle", CASES, ids=lambda given: str(given).partition(" at 0x")[0])
def test_it_keeps_the_contract(oracle):
    check_oracle(oracle)


@pytest.mark.parametrize("options", [{}, {"f1": 0.6}])
def test_several_labels_per_input(options):
    labels = np.random.default_rng(1).integers(0, 2, (23, 4))
    check_oracle({"use": "label", **options}, labels=labels)
