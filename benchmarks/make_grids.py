"""Recorded grids, the ground truth of `estimation.py`: every input under every configuration of four axes.

    python benchmarks/make_grids.py pack FOLDER [GRID ...]                   # models and data
    python benchmarks/make_grids.py check FOLDER [GRID ...]                  # the models on torch against onnxruntime
    python benchmarks/make_grids.py measure FOLDER --out GRIDS [GRID ...]    # on the accelerator where there is one

A grid is 1,296 tests of 10,000 inputs: hours on a CPU, a minute on an accelerator. A machine with one often has torch
and nothing else. So `measure` reads and runs ONNX files with torch alone. Images are perturbed as tensors, each prefix
of a configuration once. Margins are logits, the true class's minus the best other one's.
"""

from __future__ import annotations

import argparse
import shutil
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from common import need
from numpy.typing import NDArray

from testifai import models, perturb

LEVELS = 6
INPUTS = 10_000
BATCH = 5000
# Configurations and inputs that `check` looks at.
CHECKED = 24
CHECK_INPUTS = 100


@dataclass(frozen=True)
class Grid:
    """A model, its data and four perturbations in the order of their application."""

    model: str
    data: str
    suite: str
    axes: tuple[str, ...]
    # Stored is the margin times this, as int8: the largest of the model's clean margins fits.
    margin_scale: int

    def perturbations(self) -> list[perturb.Perturbation]:
        return [perturb.get(f"{self.suite}.{axis}") for axis in self.axes]


GRIDS = {
    "mnist": Grid("mnist_lenet5", "mnist_test", "mnist_c", ("brightness", "zoom", "motion_blur", "shear"), 8),
    "mnist_b": Grid("mnist_lenet5", "mnist_test", "mnist_c", ("rotate", "shot_noise", "translate", "fog"), 8),
    "gtsrb": Grid("gtsrb_cnn_se", "gtsrb_test", "cure", ("darken", "codec_error", "gaussian_blur", "exposure"), 2),
    "cifar20": Grid(
        "cifar10_resnet20", "cifar10_test", "cifar_c", ("fog", "gaussian_noise", "motion_blur", "saturate"), 3
    ),
    "cifar56": Grid(
        "cifar10_resnet56", "cifar10_test", "cifar_c", ("fog", "gaussian_noise", "motion_blur", "saturate"), 4
    ),
    # The first paper's own axes.
    "cifar10": Grid(
        "cifar10_resnet56", "cifar10_test", "cifar_c", ("shot_noise", "brightness", "jpeg_compression", "contrast"), 4
    ),
    # These were made when the estimators were done, and only looked at then.
    "gtsrb_b": Grid("gtsrb_cnn_se", "gtsrb_test", "cure", ("haze", "lens_blur", "rain", "shadow"), 2),
    "mnist_d": Grid("mnist_lenet5", "mnist_test", "mnist_c", ("impulse_noise", "glass_blur", "zigzag", "spatter"), 8),
}


# ---- the grid


def composites(steps: list[perturb.Perturbation], images: Any, indices: Any) -> Iterator[tuple[tuple[int, ...], Any]]:
    """Every configuration with its images, in the grid's order; a prefix is worked out once, whatever follows it."""
    if not steps:
        yield (), images
        return
    # Axes are applied in their order: what the first ones make is shared by all that the last ones do.
    for severity in range(LEVELS):
        changed = steps[0].apply(images, severity, indices=indices)
        for rest, finished in composites(steps[1:], changed, indices):
            yield (severity, *rest), finished


def outcomes(logits: Any, labels: Any) -> tuple[Any, Any]:
    """Whether the true class comes first (the lower class where two are equal), and by how much it leads."""
    import torch

    true = logits.gather(1, labels[:, None])[:, 0]
    others = logits.scatter(1, labels[:, None], -torch.inf).amax(1)
    return logits.argmax(1) == labels, true - others


def floats(images: Any) -> Any:
    """What the models take: float32 in 0..1, channels first."""
    scaled = images.float() / 255
    return scaled[:, None] if scaled.ndim == 3 else scaled.permute(0, 3, 1, 2).contiguous()


def measure(
    grid: Grid, model: Path, data: Path, device: str, inputs: int = INPUTS, batch: int = BATCH
) -> dict[str, NDArray[Any]]:
    """The recorded grid, outcomes in the order of the data file."""
    import torch

    # Full float32: products of rounded numbers would change outcomes near the boundary.
    torch.backends.cuda.matmul.allow_tf32 = torch.backends.cudnn.allow_tf32 = False
    torch.backends.cudnn.benchmark = True
    with torch.inference_mode():
        return _measured(grid, model, data, torch.device(device), inputs, batch)


def _measured(grid: Grid, model: Path, data: Path, device: Any, inputs: int, batch: int) -> dict[str, NDArray[Any]]:
    import torch

    images, labels = load_data(data, inputs)
    network, steps = models.onnx_as_torch(model).to(device), grid.perturbations()
    shape = (LEVELS,) * len(steps)
    # On the device until all is done: reading each test back would wait for it 1,296 times.
    passes = torch.empty((*shape, len(images)), dtype=torch.bool, device=device)
    margins = torch.empty((*shape, len(images)), dtype=torch.int8, device=device)
    for start in range(0, len(images), batch):
        part = slice(start, start + batch)
        some, truth = (torch.from_numpy(one[part]).to(device) for one in (images, labels))
        indices = np.arange(start, start + len(some))
        for sigma, changed in composites(steps, some, indices):
            passed, margin = outcomes(network(floats(changed)), truth)
            passes[sigma][part] = passed
            margins[sigma][part] = (margin * grid.margin_scale).round().clamp(-127, 127).to(torch.int8)
    return {
        "axes": np.array(grid.axes),
        "inputs": np.array(len(images)),
        "passes": np.packbits(passes.cpu().numpy(), axis=-1),
        "margins": margins.cpu().numpy(),
        "margin_scale": np.array(grid.margin_scale),
    }


def load_data(path: Path, inputs: int) -> tuple[NDArray[np.uint8], NDArray[np.int64]]:
    data = np.load(path)
    return data["x"][:inputs], data["y"][:inputs].astype(np.int64)


def rates(grid: dict[str, NDArray[Any]]) -> NDArray[np.float64]:
    """The pass rate of every configuration."""
    bits = np.unpackbits(grid["passes"], axis=-1, count=int(grid["inputs"]))
    mean: NDArray[np.float64] = bits.mean(axis=-1)
    return mean


def describe(grid: dict[str, NDArray[Any]]) -> str:
    """Clean accuracy, and the mean rate of each order."""
    rate = rates(grid)
    order = (np.indices(rate.shape) > 0).sum(axis=0)
    means = " ".join(f"{rate[order == one].mean():.4f}" for one in range(rate.ndim + 1))
    cut = (np.abs(grid["margins"]) == 127).mean()
    return f"clean {rate.flat[0]:.4f}; mean rate by order {means}; margins cut off {cut:.2%}"


# ---- the three commands


def pack(names: list[str], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    for grid in (GRIDS[name] for name in names):
        model, data = need(f"models/{grid.model}.onnx", f"data/{grid.data}.npz")
        shutil.copyfile(model, folder / model.name)
        arrays = np.load(data)
        np.savez_compressed(folder / f"{grid.data}.npz", x=arrays["x"][:INPUTS], y=arrays["y"][:INPUTS])


def check(names: list[str], folder: Path) -> None:
    """The models on tensors against onnxruntime, on the same images and on images perturbed as arrays."""
    import onnxruntime
    import torch

    random = np.random.default_rng(0)
    for name in names:
        grid = GRIDS[name]
        (model,) = need(f"models/{grid.model}.onnx")
        session = onnxruntime.InferenceSession(str(model), providers=["CPUExecutionProvider"])
        network, steps = models.onnx_as_torch(folder / f"{grid.model}.onnx"), grid.perturbations()
        images, labels = load_data(folder / f"{grid.data}.npz", CHECK_INPUTS)
        truth = torch.from_numpy(labels)
        difference, flips, rate, as_arrays = 0.0, 0, 0.0, 0.0
        chosen = [(0,) * len(steps), *map(tuple, random.integers(0, LEVELS, (CHECKED - 1, len(steps))).tolist())]
        for sigma in chosen:
            composite: dict[str | perturb.Perturbation, int] = dict(zip(steps, sigma, strict=True))
            ready = floats(perturb.apply(composite, torch.from_numpy(images)))
            logits = network(ready)
            expected = torch.from_numpy(session.run(["logits"], {"images": ready.numpy()})[0])
            other = floats(torch.from_numpy(perturb.apply(composite, images))).numpy()
            arrays = torch.from_numpy(session.run(["logits"], {"images": other})[0])
            difference = max(difference, float((logits - expected).abs().max()))
            flips += int((outcomes(logits, truth)[0] != outcomes(expected, truth)[0]).sum())
            rate += float(outcomes(logits, truth)[0].double().mean()) / len(chosen)
            as_arrays += float(outcomes(arrays, truth)[0].double().mean()) / len(chosen)
        print(
            f"{name}: {len(chosen)} tests of {len(images)} inputs: logits differ by at most {difference:.1e}, {flips} "
            f"outcomes differ; mean rate {rate:.4f}, with images perturbed as arrays {as_arrays:.4f}",
            flush=True,
        )


def measure_all(names: list[str], folder: Path, out: Path, device: str, inputs: int, batch: int) -> None:
    out.mkdir(parents=True, exist_ok=True)
    for name in names:
        begin, asked = time.perf_counter(), GRIDS[name]
        grid = measure(asked, folder / f"{asked.model}.onnx", folder / f"{asked.data}.npz", device, inputs, batch)
        measured = time.perf_counter() - begin
        path = out / f"{name}.npz"
        np.savez_compressed(path, **grid)
        size = path.stat().st_size / 1e6
        print(f"{name}: {measured:.1f} s on {device}; {size:.1f} MB; {describe(grid)}", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("command", choices=["pack", "check", "measure"])
    parser.add_argument("folder", type=Path, help="where packed models and data are")
    parser.add_argument("grids", nargs="*", metavar="GRID", help=f"of {', '.join(GRIDS)} (default: all)")
    parser.add_argument("--out", type=Path, default=Path("grids"), help="where measured grids go")
    parser.add_argument("--inputs", type=int, default=INPUTS)
    parser.add_argument("--batch", type=int, default=BATCH)
    parser.add_argument("--device", help="of torch (default: cuda where there is one)")
    options = parser.parse_args()
    names = options.grids or list(GRIDS)
    unknown = [name for name in names if name not in GRIDS]
    if unknown:
        parser.error(f"grids: {unknown} are not known; accepted: {', '.join(GRIDS)}")
    if options.command == "pack":
        pack(names, options.folder)
    elif options.command == "check":
        check(names, options.folder)
    else:
        import torch

        device = options.device or ("cuda" if torch.cuda.is_available() else "cpu")
        measure_all(names, options.folder, options.out, device, options.inputs, options.batch)


if __name__ == "__main__":
    main()
