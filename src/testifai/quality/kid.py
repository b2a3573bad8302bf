"""Kernel distance of the features of perturbed inputs from those of clean ones (KID)."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.quality.base import Measure, Score, draw
from testifai.quality.extractors import Rows, features_of_extractor, features_of_model, load_extractor
from testifai.quality.mmd import Discrepancy, draw_subsets
from testifai.quality.per_input import check_count
from testifai.support.batches import Batch, take
from testifai.support.checks import choice, flag, whole

SAMPLE = 500
SUBSETS = 100
# A distance of fewer inputs than this has an error that nobody should rely on.
_FEWEST_IN_HALF = 10


class Kid(Measure):
    """Kernel Inception Distance: 0 where perturbed inputs look like clean ones to a network, growing from there.

    An input and its perturbed version are not independent, which the distance takes for granted: the sample is cut
    into two halves, one of which stays clean while the other is perturbed. Features are those of the model under test
    (its features output, or a `layer`) or of an `extractor`: an ONNX file, a module of torch, a function of a batch,
    or "inception" with `weights` on disk.

    Features are divided by the root mean square of the clean ones, so that distances do not grow with the scale of a
    network; `scale` = "raw" leaves them as they are, which is the default for "inception", for which there are
    published distances. The two halves differ a little before anything is perturbed; that distance, 0 on average, is
    subtracted from every test's unless `control` is False. Every pair of rows counts unless `subset_size`, and
    `subsets` (default 100), ask for the published mean over random subsets.
    """

    name = "kid"
    higher_is_better = False
    share = 0.5

    def __init__(
        self,
        *,
        sample: int = SAMPLE,
        subsets: int | None = None,
        subset_size: int | None = None,
        extractor: Any = None,
        layer: str | None = None,
        scale: Literal["unit", "raw"] | None = None,
        control: bool = True,
        weights: str | Path | None = None,
        folder: str | Path = ".",
    ) -> None:
        self.sample = whole("quality: sample", sample, least=2 * _FEWEST_IN_HALF)
        if subsets is not None and subset_size is None:
            raise InputError(f"quality: subsets = {subsets!r} without subset_size; say how large they are")
        self.subset_size = None if subset_size is None else whole("quality: subset_size", subset_size, least=2)
        self.subsets = whole("quality: subsets", SUBSETS if subsets is None else subsets, least=1)
        _check_subset(self.subset_size, self.sample, self.sample)
        self.layer = layer
        if scale is not None:
            choice("quality: scale", scale, ("unit", "raw"))
        self.control = flag("quality: control", control)
        self.clean_share = 1.0 if self.control else 0.5
        self.scale = scale or ("raw" if isinstance(extractor, str) and extractor == "inception" else "unit")
        self.uses_model = extractor is None
        if extractor is None and weights is not None:
            raise InputError("quality: weights belong to extractor = 'inception'; name it too")
        self.extractor = None if extractor is None else load_extractor(extractor, weights=weights, folder=folder)

    def describe(self) -> dict[str, Any]:
        return {
            "use": self.name,
            "sample": self.sample,
            "subsets": None if self.subset_size is None else self.subsets,
            "subset_size": self.subset_size,
            "layer": self.layer,
            "scale": self.scale,
            "control": self.control,
            "extractor": None if self.extractor is None else self.extractor.fingerprint,
        }

    def reference(self, clean: Batch, model: Model | None, *, seed: int) -> KidReference:
        half = min(self.sample, len(clean)) // 2
        if half < _FEWEST_IN_HALF:
            raise InputError(f"quality: kid needs at least {2 * _FEWEST_IN_HALF} inputs; there are {len(clean)}")
        _check_subset(self.subset_size, self.sample, len(clean))
        if self.extractor is None:
            features = features_of_model(model, self.layer)
        else:
            features = features_of_extractor(self.extractor, self.layer)
        subsets = None
        if self.subset_size is not None:
            subsets = draw_subsets(self.subsets, self.subset_size, half, half, seed)
        order = draw(2 * half, len(clean), seed)
        perturbed, kept = np.sort(order[:half]), np.sort(order[half:])
        control = features(take(clean, perturbed)) if self.control else None
        known = Discrepancy(features(take(clean, kept)), control=control, subsets=subsets, unit=self.scale == "unit")
        seen = (1 + self.control) * half if self.uses_model else 0
        return KidReference(perturbed, features, known, self.uses_model, seen)


@dataclass
class KidReference:
    """The features of the half that stays clean; `rows` are the other half."""

    rows: NDArray[np.intp]
    features: Callable[[Batch], Rows] = field(repr=False)
    clean: Discrepancy = field(repr=False)
    uses_model: bool
    inferences: int

    def score(self, perturbed: Batch) -> Score:
        check_count(Kid.name, perturbed, len(self.rows))
        seen = self.features(perturbed)
        if self.uses_model:
            self.inferences += len(perturbed)
        return self.clean.score(seen)


def _check_subset(size: int | None, sample: int, inputs: int) -> None:
    half = min(sample, inputs) // 2
    if size is not None and size > half:
        short = f"sample = {sample}" if sample <= inputs else f"{inputs} inputs"
        raise InputError(
            f"quality: subset_size = {size} is more than half the sample ({half} of {short}); "
            "clean and perturbed inputs must be different ones"
        )
