"""Regions handed over to a formal verifier: the graph beside perturbed inference at a hundred points of each."""

from __future__ import annotations

import numpy as np

from evaluation.page import Page
from evaluation.setting import Setting
from testifai.session.assembly import session_of
from testifai.session.session import Session
from testifai.space import Space
from testifai.verification.export import of_session

IMAGES = 20
REGION = "contrast <= 1 and brightness <= 2"
SUBJECTS = {
    "MNIST, LeNet-5": ("models/mnist_lenet5.onnx", "data/mnist_test.npz", "deeptest.contrast"),
    "CIFAR-10, ResNet-20": ("models/cifar10_resnet20.onnx", "data/cifar10_test.npz", "cifar_c.contrast"),
    "GTSRB, CNN-SE": ("models/gtsrb_cnn_se.onnx", "data/gtsrb_test.npz", "deeptest.contrast"),
}


def write(page: Page, setting: Setting) -> None:
    with page.part("A region handed over to a formal verifier"):
        page.text(
            "`testifai verify` writes an ONNX graph from (contrast, brightness) to the scores, for one image, and "
            '"the answer stays the label" over a box of the two as VNN-LIB 1.0 and 2.0. For the first images of each '
            f"test set and the region `{REGION}`: the graph beside our perturbed inference at 100 random points. "
            "Perturbed pixels are whole grey levels, which verifiers cannot follow: the graph comes without rounding, "
            "and the table says by how much its scores then differ, or with it (`--rounded`)."
        )
        rows = [
            _row(title, setting, contrast, model, data, rounded)
            for title, (model, data, contrast) in SUBJECTS.items()
            for rounded in (False, True)
        ]
        header = ["subject", "rounding", "points", "same answer", "largest difference of a score", "median lead"]
        page.table(header, [row[:-1] for row in rows], "points from seed 0")
        exact, smooth = ([row[-1] for row in rows[place::2]] for place in (1, 0))
        page.claim(
            "formal verification gives guarantees on subsets that the tomography finds",
            "a complement, not done",
            f"graphs with rounding answer alike at {np.mean(exact):.2%} of points, without at {np.mean(smooth):.2%}",
            None,
        )


def _row(title: str, setting: Setting, contrast: str, model: str, data: str, rounded: bool) -> list[object]:
    session = _session(setting, contrast, model, data)
    count = setting.times(IMAGES)
    found = [of_session(session, index=index, region=REGION, rounded=rounded).agreement for index in range(count)]
    points, same = sum(one.points for one in found), sum(one.same for one in found)
    differences, leads = [one.difference for one in found], [one.margin for one in found]
    told = "in the graph" if rounded else "left out"
    return [
        title,
        told,
        f"{points:,}",
        f"{same:,}",
        f"{max(differences):.2g}",
        f"{np.median(leads):.2g}",
        same / points,
    ]


def _session(setting: Setting, contrast: str, model: str, data: str) -> Session:
    arrays = np.load(setting.file(data))
    space = Space({"contrast": contrast, "brightness": "deeptest.brightness"})
    count = setting.times(IMAGES)
    return session_of(str(setting.file(model)), (arrays["x"][:count], arrays["y"][:count]), space)
