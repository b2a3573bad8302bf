"""Records the sweeps of section `sweeps`: trains its LeNets, and measures every input at every level.

About two minutes on an accelerator, most of them for training; hours on two cores. The networks are trained here from
fixed seeds and are not kept: what is kept is what they got right.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from pathlib import Path

import numpy as np
import torch
from torch import Tensor, nn
from torch.nn import functional

from evaluation.sweeps_alterations import OURS, PAPER, Alterations
from evaluation.sweeps_records import Recorded, write, write_curves
from testifai import models, perturb

PAPER_INPUTS, OUR_INPUTS, LIMITED_INPUTS = 1000, 500, 2000
PAPER_LEVELS, OUR_LEVELS, CIFAR_LEVELS = 2049, 257, 513
BATCH, EPOCHS = 256, 4


@dataclass(frozen=True)
class Augmentation:
    """What images are changed by while a network is trained: each by amounts drawn anew, up to these."""

    angles: tuple[float, ...] = (0.0,)
    around: float = 0.0
    zoom: float = 0.0
    shift: float = 0.0
    noise: float = 0.0
    gain: float = 0.0

    def __call__(self, images: Tensor, random: torch.Generator) -> Tensor:
        count, device = len(images), images.device

        def drawn(most: float) -> Tensor:
            return (2 * torch.rand(count, generator=random, device=device) - 1) * most

        chosen = torch.randint(len(self.angles), (count,), generator=random, device=device)
        turned = torch.deg2rad(torch.tensor(self.angles, device=device)[chosen] + drawn(self.around))
        smaller = 1 / (1 + drawn(self.zoom).abs())
        sine, cosine = turned.sin() * smaller, turned.cos() * smaller
        # A shift by a share of the side is twice that in the units of the grid.
        rows = [
            torch.stack([cosine, -sine, drawn(2 * self.shift)], 1),
            torch.stack([sine, cosine, drawn(2 * self.shift)], 1),
        ]
        grid = functional.affine_grid(torch.stack(rows, 1), list(images.shape), align_corners=False)
        changed = (
            functional.grid_sample(images, grid, align_corners=False) * (1 + drawn(self.gain))[:, None, None, None]
        )
        noise = (
            torch.randn(images.shape, generator=random, device=device) * drawn(self.noise).abs()[:, None, None, None]
        )
        return (changed + noise).clamp(0, 1)


ALL_ROUND = Augmentation(around=25, zoom=0.5, shift=0.12, noise=0.3, gain=0.4)
# Trained on some rotations only: accuracy is high at those and dips between or beyond them.
LIMITED = {
    **{f"up to {most}°": Augmentation(around=most) for most in (5, 10, 20, 30)},
    **{
        f"multiples of {step}°": Augmentation(angles=tuple(float(angle) for angle in range(-180, 180, step)))
        for step in (30, 40, 45, 60, 72, 90)
    },
}
LIMITED_ALTERATIONS: Alterations = {
    "rotation to 60°": (perturb.get("classic.rotation"), (-60.0, 60.0)),
    "rotation to 180°": (perturb.get("classic.rotation"), (-180.0, 180.0)),
    "zoom": OURS["zoom"],
}


class LeNet(nn.Sequential):
    """LeNet-5 with rectifiers."""

    def __init__(self) -> None:
        super().__init__(
            nn.Conv2d(1, 6, 5, padding=2), nn.ReLU(), nn.MaxPool2d(2),
            nn.Conv2d(6, 16, 5), nn.ReLU(), nn.MaxPool2d(2), nn.Flatten(),
            nn.Linear(400, 120), nn.ReLU(), nn.Linear(120, 84), nn.ReLU(), nn.Linear(84, 10),
        )  # fmt: skip


def train(images: Tensor, labels: Tensor, change: Augmentation | None, seed: int, epochs: int = EPOCHS) -> nn.Module:
    """A LeNet trained on changed images, or on them as they are."""
    torch.manual_seed(seed)
    random = torch.Generator(images.device).manual_seed(seed)
    network = LeNet().to(images.device)
    optimiser = torch.optim.Adam(network.parameters(), 1e-3)
    steps = epochs * -(-len(images) // BATCH)
    slower = torch.optim.lr_scheduler.OneCycleLR(optimiser, 4e-3, total_steps=steps)
    for _ in range(epochs):
        for some in torch.randperm(len(images), generator=random, device=images.device).split(BATCH):
            batch = images[some] if change is None else change(images[some], random)
            loss = functional.cross_entropy(network(batch), labels[some])
            optimiser.zero_grad(set_to_none=True)
            loss.backward()
            optimiser.step()
            slower.step()
    return network.eval()


Networks = dict[str, Callable[[Tensor], Tensor]]


@torch.inference_mode()
def measured(
    networks: Networks, images: Tensor, labels: Tensor, alterations: Alterations, levels: int
) -> Iterator[tuple[str, tuple[float, float], dict[str, Tensor]]]:
    """Alteration by alteration: its span, and for each network whether each input passed at each level."""
    indices = np.arange(len(images))
    for name, (one, (low, high)) in alterations.items():
        # A level of the sweep must not be taken for "off" because it is the first.
        wide = replace(one, levels=(low - 1, high))
        shape = (len(images), levels)
        passed = {network: torch.empty(shape, dtype=torch.bool, device=images.device) for network in networks}
        for place, level in enumerate(np.linspace(low, high, levels).tolist()):
            changed = as_floats(images if level == 0 else wide.apply_level(images, level, indices=indices))
            for network, answer in networks.items():
                passed[network][:, place] = answer(changed).argmax(1) == labels
        yield name, (low, high), passed


def as_floats(images: Tensor) -> Tensor:
    """What the networks take: float32 in 0..1, channels first."""
    scaled = images.float() / 255
    return scaled[:, None] if scaled.ndim == 3 else scaled.permute(0, 3, 1, 2).contiguous()


def keep(out: Path, setting: str, found: Iterator[tuple[str, tuple[float, float], dict[str, Tensor]]]) -> None:
    """A file for each network."""
    records: dict[str, dict[str, Recorded]] = {}
    for name, span, passed in found:
        for network, bits in passed.items():
            records.setdefault(network, {})[name] = Recorded(span, bits.cpu().numpy())
    for network, alterations in records.items():
        write(out / f"sweep_{network}_{setting}.npz", alterations)


def record(out: Path, data: Path, device: str) -> None:
    """Write sweep_*.npz: bits of two LeNets and the models of TESTIFAI_DATA, curves of LeNets with limited training."""
    # Full float32: products of rounded numbers would change outcomes near the boundary.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    begin = time.perf_counter()

    def say(text: str) -> None:
        print(f"sweeps: {text}: {time.perf_counter() - begin:.0f} s", flush=True)

    def loaded(name: str, inputs: int | None = None) -> tuple[Tensor, Tensor]:
        with np.load(data / "data" / f"{name}.npz") as arrays:
            return tuple(torch.from_numpy(arrays[part][:inputs]).to(device) for part in ("x", "y"))  # type: ignore[return-value]

    images, labels = loaded("mnist_train")
    inputs, labels = as_floats(images), labels.long()
    networks: Networks = {
        "plain": train(inputs, labels, None, seed=0),
        "augmented": train(inputs, labels, ALL_ROUND, seed=1, epochs=2 * EPOCHS),
    }
    say("two LeNets trained")
    tested, truth = loaded("mnist_test")
    some = slice(PAPER_INPUTS)
    keep(out, "paper", measured(networks, tested[some], truth[some], PAPER, PAPER_LEVELS))
    say("the paper's setting")
    limited: Networks = {
        name: train(inputs, labels, one, seed=2 + place) for place, (name, one) in enumerate(LIMITED.items())
    }
    say(f"{len(limited)} LeNets with limited training trained")
    part = slice(LIMITED_INPUTS)
    curves = {
        f"{network}, {name}": bits.sum(0).cpu().numpy()
        for name, _, passed in measured(limited, tested[part], truth[part], LIMITED_ALTERATIONS, PAPER_LEVELS)
        for network, bits in passed.items()
    }
    write_curves(out / "sweep_limited.npz", curves, LIMITED_INPUTS)
    say("their curves")
    given: Networks = {"lenet5": _network(data, "mnist_lenet5", device)}
    keep(out, "ours", measured(given, tested[:OUR_INPUTS], truth[:OUR_INPUTS], OURS, OUR_LEVELS))
    say("our setting")
    colour = loaded("cifar10_test", PAPER_INPUTS)
    residual: Networks = {"resnet20": _network(data, "cifar10_resnet20", device)}
    keep(out, "paper", measured(residual, *colour, PAPER, CIFAR_LEVELS))
    say("CIFAR-10 in the paper's setting")


def _network(data: Path, name: str, device: str) -> Callable[[Tensor], Tensor]:
    network: Callable[[Tensor], Tensor] = models.onnx_as_torch(data / "models" / f"{name}.onnx").to(device)
    return network
