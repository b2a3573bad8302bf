"""The oracle `segmentation`: a label for every pixel, as expected or as on the clean image."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from testifai.data.annotations import MOST_CLASSES, UNSEEN, are_label_maps
from testifai.errors import InputError
from testifai.oracles.base import Against, LabelsOrClean, Outcome
from testifai.support.types import Array
from testifai.support.validation import number, whole


class Segmentation(LabelsOrClean):
    """Passes if the mean intersection over union of an image's classes, which is its value, is at least `iou`.

    Classes are those expected or found on the image. Outputs are label maps (N, H, W), or scores (N, classes, H, W).
    Expected are the data's maps or, without labels or `against` "clean", those of the clean image, moved with the
    image. Pixels labelled `void`, and those that nothing moved to, are not judged.
    """

    name = "segmentation"
    moves = "masks"
    score = "iou"
    _described = ("iou", "void", "against")

    def __init__(self, iou: float = 0.5, void: int = 255, against: Against | None = None) -> None:
        self.iou = number("oracle segmentation: iou", iou, above=0, most=1)
        self.void = whole("oracle segmentation: void", void, least=UNSEEN, most=MOST_CLASSES)
        self._expect(against)

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        wanted = expected if self.against == "labels" else clean
        if wanted is None:
            raise InputError("oracle segmentation: needs label maps, or the outputs on clean inputs")
        found = label_maps(outputs)
        if found.shape != wanted.shape:
            seen, named = (f"{maps.shape[2]} × {maps.shape[1]}" for maps in (found, wanted))
            raise InputError(
                f"oracle segmentation: the model returned maps of {seen} pixels, expected are {named}; "
                "a model that works at another size has to bring its maps back to that of the images"
            )
        if outputs.ndim == 4:
            self._check_classes(wanted, outputs.shape[1])
        value = np.array([mean_iou(*maps, self.void) for maps in zip(found, wanted, strict=True)], np.float32)
        return Outcome(value >= self.iou, value)

    def reference(self, outputs: Array) -> Array:
        return label_maps(outputs).astype(np.int16)

    def check(self, labels: Array | None, classes: int | None) -> None:
        super().check(labels, classes)
        if labels is None or not self.needs_labels:
            return
        if not are_label_maps(labels):
            raise InputError(
                f"oracle segmentation: the labels are {labels.dtype} of shape {labels.shape}; label maps are needed: "
                "whole numbers of shape (images, height, width), or data with masks = 'FOLDER'"
            )
        self._check_classes(labels, MOST_CLASSES + 1 if classes is None else classes)

    def _check_classes(self, labels: Array, classes: int) -> None:
        wrong = (labels >= classes) & (labels != self.void)
        if wrong.any():
            label = int(labels[wrong][0])
            raise InputError(
                f"labels: {label} is no class of the model; accepted: 0 … {classes - 1}, and {self.void} for pixels "
                f"that are not judged (void = {label} under [scan.oracle] makes it that)"
            )


def label_maps(outputs: Array) -> NDArray[np.integer]:
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
    """Return the mean intersection over union of the classes found or expected; 1 if no pixel is judged."""
    judged = (expected != void) & (expected != UNSEEN)
    found, expected = found[judged].astype(np.int64), expected[judged].astype(np.int64)
    if not len(found):
        return 1.0
    classes = int(max(found.max(), expected.max())) + 1
    both = np.bincount(found[found == expected], minlength=classes)
    union = np.bincount(found, minlength=classes) + np.bincount(expected, minlength=classes) - both
    present = union > 0
    return float(np.mean(both[present] / union[present]))
