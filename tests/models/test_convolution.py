"""The kernel for grey images gives what torch's convolution gives: here by Triton's interpreter."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

torch = pytest.importorskip("torch")

from testifai.models import onnx_operators  # noqa: E402

SAME = """
import torch
from testifai.models.convolution_kernel import convolve
generator = torch.Generator().manual_seed(0)
for outputs, sides, strides, padding, size in (
    (6, (5, 5), [1, 1], [2, 2], (28, 28)), (5, (3, 2), [2, 1], [1, 0], (9, 11)), (16, (1, 1), [3, 2], [0, 0], (7, 8)),
):
    rows = torch.randn((3, *size, 1), generator=generator)
    weight, bias = torch.randn((outputs, 1, *sides), generator=generator), torch.randn(outputs, generator=generator)
    for images in (rows.permute(0, 3, 1, 2), rows.reshape(3, 1, *size), rows.permute(0, 3, 2, 1)):
        made = convolve(images, weight, bias, strides, padding)
        torch.testing.assert_close(made, torch.nn.functional.conv2d(images, weight, bias, strides, padding))
assert convolve(torch.zeros(0, 1, 5, 5), torch.ones(2, 1, 3, 3), torch.ones(2), [1, 1], [0, 0]).shape == (0, 2, 3, 3)
print("same")
"""


def test_the_kernel_by_the_interpreter():
    pytest.importorskip("triton")
    made = subprocess.run(
        [sys.executable, "-c", SAME], env={**os.environ, "TRITON_INTERPRET": "1"}, capture_output=True, text=True,
        timeout=300, check=False,
    )  # fmt: skip
    assert made.stdout == "same\n", made.stderr[-2000:]


@pytest.mark.parametrize("bias", [True, False])
def test_torch_does_the_rest(bias):
    x, weight = torch.rand(2, 1, 6, 6), torch.rand(3, 1, 3, 3)
    told = torch.rand(3) if bias else None
    made = onnx_operators.convolution(x, weight, told, [1, 1], [1, 1], [1, 1], 1)
    assert torch.equal(made, torch.nn.functional.conv2d(x, weight, told, 1, 1))


@pytest.mark.skipif(not torch.cuda.is_available(), reason="no NVIDIA card")
def test_the_kernel_on_a_card():
    x, weight = torch.rand(20, 1, 28, 28, device="cuda"), torch.rand(6, 1, 5, 5, device="cuda")
    assert onnx_operators._small(x, weight)
    made = onnx_operators.convolution(x, weight, None, [1, 1], [2, 2], [1, 1], 1)
    torch.testing.assert_close(made, torch.nn.functional.conv2d(x.double(), weight.double(), padding=2).float())
