"""Data of every kind keep the contract."""

import numpy as np
import pytest

from testifai.data import from_arrays
from testifai.testing import check_data

RANDOM = np.random.default_rng(0)
CASES = {
    "images": lambda: (RANDOM.integers(0, 255, (12, 8, 8), np.uint8), np.arange(12) % 3),
    "several labels each": lambda: (np.eye(12), np.eye(12, 4, dtype=np.int64)),
    "named classes": lambda: (np.eye(6), ["cat", "dog"] * 3),
    "texts": lambda: (["good", "bad", "so so"], [1, 0, 0]),
    "pairs": lambda: from_arrays([("a", "b"), ("c", "d"), ("e", "f")], [0, 1, 1], side="first"),
    "no labels": lambda: np.arange(20.0).reshape(10, 2),
}


@pytest.mark.parametrize("case", CASES)
def test_it_keeps_the_contract(case):
    made = CASES[case]()
    check_data(lambda: made)


def test_files_keep_it_too(tmp_path):
    np.savez(tmp_path / "data.npz", x=RANDOM.normal(size=(9, 4)), y=np.arange(9) % 2)
    check_data(str(tmp_path / "data.npz"))
    rows = "\n".join(f"text number {row},{row % 2}" for row in range(9))
    (tmp_path / "data.csv").write_text(f"text,label\n{rows}\n")
    check_data(str(tmp_path / "data.csv"))
