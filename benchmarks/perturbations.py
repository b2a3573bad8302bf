"""How quick the perturbations are: against imagecorruptions, against a model's inference, and on an accelerator.

python benchmarks/perturbations.py                # against the reference and against inference
python benchmarks/perturbations.py --gpu          # on an accelerator, which needs torch and NumPy alone
python benchmarks/perturbations.py --gpu --json FILE

One thread; every ratio is of times taken in turns within one run. The comparison needs the other library:
pip install numba scikit-image pillow && pip install --no-deps imagecorruptions-imaug
"""

from __future__ import annotations

import argparse
import hashlib
import json
import statistics
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
from common import FOLDER
from numpy.typing import NDArray

from testifai import perturb

TURNS = 3
SEVERITIES = range(1, 6)
SUITES = ("cifar_c", "imagenet_c", "mnist_c", "cure", "deeptest", "classic")
# The first paper's CIFAR-10 task.
COMPOSITE = {"cifar_c.shot_noise": 3, "cifar_c.brightness": 3, "cifar_c.jpeg_compression": 3, "cifar_c.contrast": 3}


def photographs(count: int, side: int) -> NDArray[np.uint8]:
    """CIFAR-10 test images where they are at hand, else smooth random ones, at the size asked for."""
    import cv2

    path = FOLDER / "data" / "cifar10_test.npz"
    if path.exists():
        images = np.load(path)["x"][:count]
    else:
        coarse = np.random.default_rng(0).integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
        images = np.stack([cv2.resize(one, (32, 32), interpolation=cv2.INTER_CUBIC) for one in coarse])
    if side != 32:
        images = np.stack([cv2.resize(one, (side, side), interpolation=cv2.INTER_CUBIC) for one in images])
    return images


def seconds(action: Callable[[], object]) -> float:
    begin = time.perf_counter()
    action()
    return time.perf_counter() - begin


def against_the_reference(side: int, count: int, mean: float, least: float) -> None:
    """Images per second of imagenet_c over those of imagecorruptions, all five severities."""
    try:
        from imagecorruptions import corrupt
    except ImportError:
        print("skipped: imagecorruptions is not installed (see the head of this file)")
        return
    images = photographs(count, side)
    few = images[: max(2, 2048 // side // side * 8)]
    print(f"\n{side} x {side} x 3, {count} images a batch, µs per image   ours   reference   ratio (median of {TURNS})")
    ratios = []
    for name in perturb.names("imagenet_c"):
        subject, short = perturb.get(name), name.partition(".")[2]

        def ours(subject: perturb.Perturbation = subject) -> None:
            for severity in SEVERITIES:
                subject.apply(images, severity)

        def reference(short: str = short) -> None:
            for severity in SEVERITIES:
                for image in few:
                    corrupt(image, corruption_name=short, severity=severity)

        subject.apply(images[:2], 1)  # tables are made once
        ours()
        corrupt(few[0], corruption_name=short, severity=1)
        turns = [(seconds(ours) / len(images) / 5, seconds(reference) / len(few) / 5) for _ in range(TURNS)]
        ratio = statistics.median(theirs / own for own, theirs in turns)
        own, theirs = (1e6 * statistics.median(column) for column in zip(*turns, strict=True))
        ratios.append(ratio)
        print(
            f"  {short:20s} {own:32.1f} {theirs:11.1f} {ratio:9.1f}{'' if ratio >= least else '   BELOW'}", flush=True
        )
    geometric = statistics.geometric_mean(ratios)
    verdict = "reached" if geometric >= mean and min(ratios) >= least else "MISSED"
    print(f"  geometric mean {geometric:.1f} x, least {min(ratios):.1f} x (required: {mean} x, {least} x: {verdict})")


def against_inference() -> None:
    """Four perturbations of 28 x 28 digits against one inference of LeNet-5, both in one thread."""
    import onnxruntime

    from testifai.data.sample import demo_data, demo_model_path

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    session = onnxruntime.InferenceSession(demo_model_path(), options, providers=["CPUExecutionProvider"])
    digits = np.asarray(demo_data().inputs[np.arange(1000)])
    floats = (digits[:, None] / np.float32(255)).astype(np.float32)
    names = [f"mnist_c.{short}" for short in ("motion_blur", "zoom", "shear", "brightness")]

    def composite() -> None:
        perturb.apply(dict.fromkeys(names, 3), digits)

    def infer() -> None:
        session.run(None, {session.get_inputs()[0].name: floats})

    composite()
    infer()
    turns = [(seconds(composite), seconds(infer)) for _ in range(9)]
    ours, theirs = (1e6 * statistics.median(column) / len(digits) for column in zip(*turns, strict=True))
    ratio = statistics.median(own / theirs for own, theirs in turns)
    print(f"\n28 x 28: {', '.join(names)} at severity 3: {ours:.1f} µs; LeNet-5 inference {theirs:.1f} µs per image")
    print(f"  ratio {ratio:.2f} (required: below 1: {'reached' if ratio < 1 else 'MISSED'})")


def on_the_accelerator(file: str | None) -> None:
    """All on the card: what a composite of four takes, then every perturbation of images by itself."""
    import torch

    if not torch.cuda.is_available():
        print("\nskipped: no CUDA device")
        return
    composite()
    images = tiles(10_000, 32)
    rows = every_perturbation({"10,000 of 32 x 32": images, "256 of 224 x 224": tiles(256, 224)}, torch.device("cuda"))
    if file is not None:
        Path(file).write_text(json.dumps(rows, indent=1))


def tiles(count: int, side: int) -> NDArray[np.uint8]:
    """CIFAR-10 test images where they are at hand, else random ones, pixels repeated up to the size asked for."""
    path = FOLDER / "data" / "cifar10_test.npz"
    if path.exists():
        images = np.load(path)["x"][:count]
    else:
        coarse = np.random.default_rng(0).integers(0, 256, (count, 8, 8, 3), dtype=np.uint8)
        images = coarse.repeat(4, axis=1).repeat(4, axis=2)
    return images.repeat(side // 32, axis=1).repeat(side // 32, axis=2)


def every_perturbation(batches: dict[str, NDArray[np.uint8]], device: Any) -> list[dict[str, Any]]:
    """Milliseconds of each perturbation on each batch at the middle severity, and what tells its results."""
    import torch

    print(f"\nms at the middle severity, {', '.join(batches)}")
    rows = []
    for name in (name for suite in SUITES for name in perturb.names(suite)):
        subject, row = perturb.get(name), {"name": name}
        severity = (len(subject.severities)) // 2
        for title, images in batches.items():
            batch = torch.from_numpy(images).to(device)
            made = subject.apply(batch, severity)
            row[f"{title} digest"] = hashlib.sha256(made.cpu().numpy().tobytes()).hexdigest()[:16]
            action = partial(subject.apply, batch, severity)
            row[title] = 1000 * min(waited(action) for _ in range(TURNS))
        print("  " + f"{name:32s}" + "".join(f"{row[title]:10.2f}" for title in batches), flush=True)
        rows.append(row)
    return rows


def waited(action: Callable[[], object]) -> float:
    """Seconds of an action until the device has done it."""
    import torch

    def whole() -> None:
        action()
        if torch.cuda.is_available():
            torch.cuda.synchronize()

    return seconds(whole)


def composite() -> None:
    """Images per second of a composite of four at 32 x 32 x 3, tensors staying on the card."""
    import torch

    print(f"\n{torch.cuda.get_device_name()}, torch {torch.__version__}: {' + '.join(COMPOSITE)} at severity 3")
    images = tiles(4096, 32)
    for count in (4096, 16384, 65536, 131072):
        batch = torch.from_numpy(np.resize(images, (count, *images.shape[1:]))).cuda()
        steps = {"composite": lambda batch=batch: perturb.apply(COMPOSITE, batch)}
        for name in COMPOSITE:
            steps[name] = lambda batch=batch, name=name: perturb.apply({name: 3}, batch)
        rates = {}
        for name, step in steps.items():
            step()
            torch.cuda.synchronize()
            rounds = 10
            begin = time.perf_counter()
            for _ in range(rounds):
                step()
            torch.cuda.synchronize()
            rates[name] = count * rounds / (time.perf_counter() - begin) / 1e6
        print(f"  batch {count:6d}: " + ", ".join(f"{name} {rate:.2f}" for name, rate in rates.items()) + " M images/s")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--gpu", action="store_true", help="on the accelerator alone")
    parser.add_argument("--json", help="where to write the accelerator's figures")
    options = parser.parse_args()
    warnings.simplefilter("ignore")
    if options.gpu:
        on_the_accelerator(options.json)
        return
    import cv2
    from threadpoolctl import threadpool_limits

    cv2.setNumThreads(1)
    with threadpool_limits(1):
        against_inference()
        against_the_reference(32, 256, 15, 3)
        against_the_reference(224, 16, 5, 1)


if __name__ == "__main__":
    main()
