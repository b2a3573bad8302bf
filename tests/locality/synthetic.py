"""A classifier whose confusion is known exactly, and tables drawn from known confusions."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

import testifai as ta
from testifai.locality import Local, Sampled
from testifai.locality.local import count_answers

Floats = NDArray[np.float64]


def confusions(
    seed: int, classes: int = 3, properties: int = 2, severities: int = 2, outputs: int | None = None
) -> Floats:
    """Random P(answer | class), as (property, severity, class, output), the right answer the most probable."""
    generator = np.random.default_rng(seed)
    width = outputs or classes
    table = generator.dirichlet(np.ones(width), (properties, severities, classes))
    right = np.eye(classes, width)
    return 0.6 * right + 0.4 * table


def expected_table(truth: Floats, trials: float = 1.0, **options: Any) -> Local:
    """A table whose shares of answers are the truth itself."""
    properties, severities, classes, outputs = truth.shape
    return Local.from_counts(
        [str(one) for one in range(classes)],
        [f"p{one}" for one in range(properties)],
        [range(1, 1 + severities)] * properties,
        truth * trials,
        outputs=[str(one) for one in range(outputs)],
        **options,
    )


def drawn_table(truth: Floats, trials: int, seed: int, alike: float = 0.0, singles: bool = True) -> Local:
    """A table of random answers; with `alike`, an input tends to give all its answers by the same luck."""
    properties, severities, classes, outputs = truth.shape
    generator = np.random.default_rng(seed)
    true_classes = np.repeat(np.arange(classes), trials)
    shape = (len(true_classes), properties, severities)
    same = generator.random(shape[:1]) < alike
    luck = np.where(same[:, None, None], generator.random((shape[0], 1, 1)), generator.random(shape))
    # The right answer first: by the same luck an input is right or wrong everywhere.
    order = np.array([[one, *(other for other in range(outputs) if other != one)] for one in range(classes)])
    sums = np.cumsum(np.take_along_axis(truth, np.broadcast_to(order, truth.shape), axis=-1), axis=-1)
    bounds = np.moveaxis(sums, 2, 0)[true_classes]
    place = np.minimum((luck[..., None] >= bounds).sum(axis=-1), outputs - 1)
    predicted = order[true_classes[:, None, None], place].astype(np.int32)
    counts = count_answers(predicted, true_classes, classes, outputs)
    single = Sampled(np.arange(len(true_classes)), true_classes, predicted) if singles else None
    return expected_table(counts.astype(float), sampled=single)


class Known:
    """A model with a known confusion per property and severity.

    An input is (class, property, severity, luck): perturbation j at severity s writes j + 1, s and a uniform draw.
    Clean inputs are answered right, but for those whose class is marked with an extra 0.5.
    """

    def __init__(self, truth: Floats, *, scores: bool = False) -> None:
        self.truth, self.scores = truth, scores

    def __call__(self, batch: NDArray[Any]) -> NDArray[Any]:
        classes, wrong = np.floor(batch[:, 0]).astype(int), batch[:, 0] % 1 > 0
        which, severity = batch[:, 1].astype(int), batch[:, 2].astype(int)
        bounds = np.cumsum(self.truth[which - 1, severity - 1, classes], axis=1)
        drawn = np.minimum((batch[:, 3:4] >= bounds).sum(axis=1), self.truth.shape[-1] - 1)
        clean = np.where(wrong, (classes + 1) % self.truth.shape[2], classes)
        answers = np.where(which == 0, clean, drawn)
        return np.eye(self.truth.shape[-1])[answers] * 2.0 if self.scores else answers

    def properties(self) -> dict[str, ta.Perturbation]:
        return {f"p{which}": self._property(which) for which in range(len(self.truth))}

    def _property(self, which: int) -> ta.Perturbation:
        def change(batch: NDArray[Any], severity: int, rng: Any) -> NDArray[Any]:
            changed = batch.copy()
            changed[:, 1], changed[:, 2], changed[:, 3] = which + 1, severity, rng.uniform()
            return changed

        return ta.Perturbation(f"known{which}", change, list(range(1 + self.truth.shape[1])))

    def data(self, per_class: int, wrong: float = 0.0, seed: int = 0) -> tuple[NDArray[Any], NDArray[np.int64]]:
        labels = np.repeat(np.arange(self.truth.shape[2]), per_class)
        inputs = np.zeros((len(labels), 4))
        inputs[:, 0] = labels + 0.5 * (np.random.default_rng(seed).random(len(labels)) < wrong)
        return inputs, labels
