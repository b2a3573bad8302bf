"""Kernels give the very numbers of the plain operations: here by Triton's interpreter, on a card where there is one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from testifai.perturb.ops_torch import philox  # noqa: E402
from testifai.perturb.ops_torch.rng import TensorRng  # noqa: E402

WORDS = """
import torch
from testifai.perturb.ops_torch import kernels, philox
indices = torch.tensor([0, 5, 2**40 + 3, 2**33 - 1, 77, 1])
for key in ((0, 0), (0xFFFFFFFF, 3), (0x9ABCDEF0, 0x12345678)):
    for count in (1, 7, 8, 9, 4097):
        for call, rounds in ((1, 7), (16, 10)):
            told = (indices, key, call, count, rounds)
            assert torch.equal(kernels.draw(*told, halves=True), philox.halves(*told))
            assert torch.equal(kernels.draw(*told, halves=False), philox.words(*told))
print("same")
"""


def test_words_by_the_interpreter():
    made = subprocess.run(
        [sys.executable, "-c", WORDS], env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert made.stdout == "same\n", made.stderr[-2000:]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card")
def test_draws_on_a_card():
    assert philox._kernel() is not None
    indices = np.array([3, 0, 2**40 + 1, 9])
    for draw in (lambda rng: rng.field((5, 7)), lambda rng: rng.uniform(100), lambda rng: rng.integers(0, 9, 3)):
        here, there = (draw(TensorRng(1, "fade", 2, indices, device=device)) for device in ("cpu", "cuda"))
        assert torch.equal(here, there.cpu())
