"""Every built-in perturbation does the same to tensors as to arrays."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.perturb import Rng, get, names
from testifai.perturb.registry import SUITES

torch = pytest.importorskip("torch")

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
BUILT_IN = [name for suite in SUITES if suite not in ("text", "tabular") for name in names(suite)]

built_in = pytest.mark.parametrize("name", BUILT_IN)
on_devices = pytest.mark.parametrize("device", DEVICES)


def photographs(count, height, width, channels, seed=0):
    """Colour gradients, a disc and a bar on them, and mild noise."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[: 1 : height * 1j, : 1 : width * 1j][..., None]
    images = np.empty((count, height, width, channels))
    for image in images:
        corner, right, down = rng.uniform(0.1, 0.9, (3, channels)) * [[1], [0.6], [0.6]]
        image[:] = corner + (right - 0.3) * x + (down - 0.3) * y
        centre_x, centre_y, radius = rng.uniform([0.2, 0.2, 0.15], [0.8, 0.8, 0.35])
        disc = np.hypot(x - centre_x, y - centre_y)[..., 0] < radius
        bar = abs(x + rng.uniform(-1, 1) * (y - 0.5) - rng.uniform(0.2, 0.8))[..., 0] < 0.06
        image[disc] = rng.uniform(size=channels)
        image[bar] = rng.uniform(size=channels)
    images += rng.normal(scale=0.02, size=images.shape)
    return np.rint(255 * images.clip(0, 1)).astype(np.uint8)


IMAGES = {
    "colour": photographs(6, 32, 32, 3),
    "grey": photographs(5, 40, 28, 1)[..., 0],
    "large": photographs(2, 80, 96, 3),
}


class HandedRng:
    """The draws of arrays, handed over as tensors: what is left to differ is the arithmetic."""

    def __init__(self, rng, device):
        self.rng, self.device = rng, device

    def field(self, size):
        return torch.from_numpy(self.rng.field(size).astype(np.int32)).to(self.device)

    def __getattr__(self, draw):
        return lambda *args, **kwargs: torch.from_numpy(getattr(self.rng, draw)(*args, **kwargs)).to(self.device)


@on_devices
@pytest.mark.parametrize("kind", IMAGES)
@built_in
def test_tensors_come_out_as_arrays_do(name, kind, device):
    subject, images = get(name), IMAGES[kind]
    most = 2 if name.endswith(".jpeg_compression") else 1
    for severity in (1, 3, 5):
        parameter = subject.severities[severity]
        expected, handed = (Rng(3, name, severity, np.arange(len(images))) for _ in range(2))
        array = subject.function(images, parameter, expected)
        tensor = subject.function(torch.from_numpy(images).to(device), parameter, HandedRng(handed, device))
        difference = np.abs(array.astype(int) - tensor.cpu().numpy()).mean()
        assert difference <= most, f"severity {severity}: {difference:.3f} levels"


@on_devices
@pytest.mark.parametrize(("kind", "severity"), [("colour", 2), ("grey", 5)])
@built_in
def test_tensors_keep_the_contract(name, kind, severity, device):
    subject = get(name)
    images = torch.from_numpy(np.concatenate([IMAGES[kind], IMAGES[kind][::-1]])).to(device)
    indices = np.arange(len(images)) * 5 + 2
    before = images.clone()
    whole = subject.apply(images, severity, seed=7, indices=indices)
    assert (whole.shape, whole.dtype, whole.device) == (images.shape, torch.uint8, images.device)
    assert torch.equal(images, before)
    assert torch.equal(subject.apply(images, severity, seed=7, indices=indices), whole)
    for size in (1, 3):
        parts = zip(images.split(size), np.split(indices, range(size, len(indices), size)), strict=True)
        again = [subject.apply(part, severity, seed=7, indices=numbers) for part, numbers in parts]
        assert torch.equal(torch.cat(again), whole)
