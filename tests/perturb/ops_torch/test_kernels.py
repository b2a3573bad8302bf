"""Kernels give the very numbers of the plain operations: here by Triton's interpreter, on a card where there is one."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("triton")

from testifai.perturb.ops_torch.rng import TensorRng  # noqa: E402
from testifai.perturb.ops_torch.values import kernels_for  # noqa: E402

WORDS = """
import torch
from testifai.perturb.ops_torch import kernels, rng
indices = torch.tensor([0, 5, 2**40 + 3, 2**33 - 1, 77, 1])
for key in ((0, 0), (0xFFFFFFFF, 3), (0x9ABCDEF0, 0x12345678)):
    for count in (1, 7, 8, 9, 4097):
        for call, rounds in ((1, 7), (16, 10)):
            told = (indices, key, call, count, rounds)
            assert torch.equal(kernels.draw(*told, halves=True), rng.words(*told, halves=True))
            assert torch.equal(kernels.draw(*told, halves=False), rng.words(*told))
print("same")
"""
IMAGES = """
import importlib, torch
from unittest.mock import patch
from testifai.perturb.ops_torch import filters, kernels
shuffle = importlib.import_module("testifai.perturb.ops_torch.geometry")
generator = torch.Generator().manual_seed(0)

def same(module, run):
    plain = run()
    with patch.object(module, "kernels_for", lambda tensor: kernels):
        assert torch.equal(run(), plain)

for channels in (1, 3):
    images = torch.randint(0, 256, (3, 13, 17, channels), generator=generator, dtype=torch.uint8)
    words = torch.randint(0, 2**16, (3, 13, 17), generator=generator, dtype=torch.int32)
    for radius in (1, 2, 4):
        for swap in (True, False):
            same(shuffle, lambda: shuffle.shuffle(images, radius, words, swap))
    same(filters, lambda: filters.bilateral_blur(images, 7, 75.0, 75.0))
print("same")
"""


@pytest.mark.parametrize("code", [WORDS, IMAGES], ids=["words", "images"])
def test_by_the_interpreter(code):
    made = subprocess.run(
        [sys.executable, "-c", code], env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert made.stdout == "same\n", made.stderr[-2000:]


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card")
def test_draws_on_a_card():
    assert kernels_for(torch.zeros(1, device="cuda")) is not None
    indices = np.array([3, 0, 2**40 + 1, 9])
    for draw in (lambda rng: rng.field((5, 7)), lambda rng: rng.uniform(100), lambda rng: rng.integers(0, 9, 3)):
        here, there = (draw(TensorRng(1, "fade", 2, indices, device=device)) for device in ("cpu", "cuda"))
        assert torch.equal(here, there.cpu())
