"""The oracle `segmentation`: a label for every pixel, as expected or as on the clean image."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.oracles.base import Array, Oracle, Outcome
from testifai.support.checks import number, whole

MOST_CLASSES = 2**15 - 1  # what is remembered of clean maps is as small as that


class Segmentation(Oracle):
    """Passes where the mean intersection over union of an image's classes is at least `iou`; the mean is its value.

    The classes of an image are those that are expected or found on it. Outputs are label maps (N, H, W), or scores
    (N, classes, H, W), of which the highest counts. Expected are the data's maps or, where they have none, the clean
    ones, moved along with the image; pixels labelled `void`, and those that no pixel of the original moved to, are not
    judged.
    """

    name = "segmentation"
    moves = "masks"
    score = "iou"

    def __init__(self, iou: float = 0.5, void: int = 255) -> None:
        self.iou = number("oracle segmentation: iou", iou, above=0, most=1)
        self.void = whole("oracle segmentation: void", void, least=-1, most=MOST_CLASSES)

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        wanted = clean if expected is None else expected
        if wanted is None:
            raise InputError("oracle segmentation: needs label maps, or the outputs on clean inputs")
        found = label_maps(outputs)
        if found.shape != wanted.shape:
            raise InputError(
                f"oracle segmentation: the model returned maps of {_size(found)} pixels, expected are {_size(wanted)}; "
                "a model that works at another size has to bring its maps back to that of the images"
            )
        if outputs.ndim == 4:
            self.check(expected, outputs.shape[1])
        value = np.array([mean_iou(*maps, self.void) for maps in zip(found, wanted, strict=True)], np.float32)
        return Outcome(value >= self.iou, value)

    def reference(self, outputs: Array) -> Array:
        return label_maps(outputs).astype(np.int16)

    def check(self, labels: Array | None, classes: int | None) -> None:
        if labels is None:
            return
        if labels.ndim != 3 or labels.dtype.kind not in "iu":
            raise InputError(
                f"labels: {labels.dtype} of shape {labels.shape} is not accepted by the oracle segmentation; "
                "whole numbers of shape (images, height, width) are"
            )
        known = classes if classes is not None else MOST_CLASSES + 1
        wrong = (labels != self.void) & ((labels < 0) | (labels >= known))
        if wrong.any():
            image = int(np.argmax(wrong.any(axis=(1, 2))))
            label = int(labels[image][wrong[image]][0])
            raise InputError(
                f"labels: {label} (image {image}) is no class of the model; accepted: 0 … {known - 1} "
                f"and {self.void} for pixels that are not judged (void = {label} in [scan.oracle] makes it that)"
            )

    def describe(self) -> dict[str, Any]:
        return {"use": self.name, "iou": self.iou, "void": self.void}


def label_maps(outputs: Array) -> NDArray[np.integer]:
    """Label maps as they are, or of each pixel the class of the highest score.

    >>> label_maps(np.array([[[[0.1, 0.9]], [[0.2, 0.8]]]])).tolist()
    [[[1, 0]]]
    """
    if outputs.ndim == 4:
        return np.asarray(outputs.argmax(axis=1))
    if outputs.ndim != 3 or (outputs.dtype.kind == "f" and not np.array_equal(outputs, np.floor(outputs))):
        raise InputError(
            f"oracle segmentation: the model returned {outputs.dtype} of shape {outputs.shape}; "
            "label maps (N, H, W) or scores (N, classes, H, W) are accepted"
        )
    low, high = int(outputs.min()), int(outputs.max())
    if low < 0 or high > MOST_CLASSES:
        raise InputError(
            f"oracle segmentation: the model returned labels from {low} to {high}; 0 … {MOST_CLASSES} are accepted"
        )
    return outputs.astype(np.int64, copy=False)


def mean_iou(found: Array, expected: Array, void: int) -> float:
    """The mean over classes, found or expected, of intersection over union; 1 where no pixel is to be judged.

    >>> round(mean_iou(np.array([[0, 1], [1, 1]]), np.array([[0, 0], [1, 9]]), void=9), 3)
    0.5
    """
    judged = expected != void
    found, expected = found[judged].astype(np.int64), expected[judged].astype(np.int64)
    if not len(found):
        return 1.0
    classes = int(max(found.max(), expected.max())) + 1
    both = np.bincount(found[found == expected], minlength=classes)
    union = np.bincount(found, minlength=classes) + np.bincount(expected, minlength=classes) - both
    present = union > 0
    return float(np.mean(both[present] / union[present]))


def _size(maps: Array) -> str:
    return f"{maps.shape[2]} × {maps.shape[1]}"
