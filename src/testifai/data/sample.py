"""The embedded demonstration: 1,000 MNIST test digits and a LeNet-5 trained for this project (see NOTICE)."""

from __future__ import annotations

from importlib import resources
from pathlib import Path

from testifai.data.array_files import NpzPart
from testifai.data.dataset import Data
from testifai.errors import InputError


def demo_data() -> Data:
    """1,000 MNIST test digits, uint8 (1000, 28, 28), with labels 0 … 9."""
    return NpzPart.read(_asset("digits.npz"))


def demo_model_path() -> Path:
    """The ONNX file of the demonstration's LeNet-5: digits in 0 … 1, (N, 1, 28, 28) → logits (N, 10)."""
    return _asset("lenet5.onnx")


def _asset(name: str) -> Path:
    asset = resources.files("testifai.data") / "assets" / name
    path = Path(str(asset))
    if not path.is_file():
        raise InputError(f"demo: {name} is missing from the installation of testifai; install it again")
    return path
