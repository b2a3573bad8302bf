"""How much robustness would rise if a trend were fixed, and how many failures it has a part in.

Fixed means that all answers of the trend are right and every other answer stays: an upper bound of what retraining for
it can give. The system's robustness is a sum of products of shares of answers (see `compose`), so the gain is exact
given the shares, and its interval comes from how the gain changes with each of them.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.locality.compose import Setting
from testifai.locality.local import Local, Rates
from testifai.locality.spread import Floats, class_arms, coull_arms, together
from testifai.locality.trends import Mask


def cell_weights(local: Local) -> Floats:
    """(class, property, severity): what each rate counts for in `local.overall()`; adds up to 1."""
    measured = local.measured
    properties = np.any(measured, axis=2, keepdims=True)
    classes = np.where(np.any(properties, axis=1, keepdims=True), local.weights[:, None, None], 0.0)
    with np.errstate(invalid="ignore"):
        shares = classes / classes.sum() * (properties / properties.sum(axis=1, keepdims=True))
        cells = shares * (measured / measured.sum(axis=2, keepdims=True))
    return np.asarray(np.nan_to_num(cells))


def local_gain(local: Local, mask: Mask, confidence: float = 0.95) -> Rates:
    """How much `local.overall()` rises if these answers become right.

    >>> table = Local.from_counts(["0", "1"], ["noise"], [[1]], [[[[90, 10], [20, 80]]]])
    >>> mask = np.zeros((2, 1, 1, 2), bool)
    >>> mask[1, 0, 0, 0] = True  # 1 read as 0: 20 of 100, in one of two classes
    >>> round(local_gain(table, mask).rate, 3)
    0.1
    """
    gradient = cell_weights(local)[..., None] * mask
    gain = float((gradient * np.nan_to_num(local.answers)).sum())
    arms = [
        class_arms(local, place, gradient[place][None], confidence)
        for place in map(int, np.flatnonzero(gradient.any(axis=(1, 2, 3))))
    ]
    return _bounded(gain, arms)


@dataclass(frozen=True, eq=False)
class Composition:
    """A composed system as a function of the shares of answers of its parts."""

    setting: Setting
    rows: Floats  # (class, flat cell, output): the shares as measured
    parts: NDArray[np.intp]  # (cell of the system, part): the flat cell of the table
    weights: Floats  # (cell of the system): what each counts for in the overall robustness, of one tuple

    @classmethod
    def of(cls, setting: Setting) -> Composition:
        """Refused where a part was not tried under a condition that the system meets."""
        local = setting.local
        which, _, parts = (np.array(column) for column in zip(*setting.cells(), strict=True))
        tested, cells = np.unique(setting.tuples), np.unique(parts)
        for row, column in np.argwhere(~local.measured.reshape(len(local.classes), -1)[np.ix_(tested, cells)])[:1]:
            untried, level = divmod(int(cells[column]), local.rate.shape[2])
            raise InputError(
                f"local: class {local.classes[tested[row]]!r} was never tried under {local.properties[untried]} at "
                f"severity {local.severities[untried][level]}; a composed system needs every class there "
                "(arity = 1 does not)"
            )
        lengths = np.array([len(one) for one in setting.severities])
        rows = np.nan_to_num(local.answers).reshape(len(local.classes), -1, len(local.outputs))
        return cls(setting, rows, parts, 1 / (lengths[which] * len(lengths) * len(setting.tuples)))

    def overall(self, rows: Floats, tuples: Sequence[tuple[int, ...]] | None = None) -> tuple[float, float]:
        """How often the system is right, and how often it answers at all: less than 1 where answers are left out."""
        right = total = 0.0
        for classes in self.setting.tuples if tuples is None else tuples:
            answers = self.setting.system.answers_right(classes)
            chances = [rows[one][self.parts[:, [part]], answers[:, part]] for part, one in enumerate(classes)]
            sums = [rows[one].sum(axis=-1)[self.parts[:, part]] for part, one in enumerate(classes)]
            right += float(self.weights @ np.prod(chances, axis=0).sum(axis=1))
            total += float(self.weights @ np.prod(sums, axis=0))
        return right, total

    def slopes(self, rows: Floats, tuples: Sequence[tuple[int, ...]] | None = None) -> Floats:
        """(part, class, flat cell, output): how the overall robustness changes with a share of an answer of a part.

        That is also the probability that the part meets the cell and the system is right if it gives this answer.
        """
        found = np.zeros((self.setting.system.arity, *rows.shape))
        for classes in self.setting.tuples if tuples is None else tuples:
            answers = self.setting.system.answers_right(classes)
            chances = [rows[one][self.parts[:, [part]], answers[:, part]] for part, one in enumerate(classes)]
            for part, one in enumerate(classes):
                others = np.prod([chance for other, chance in enumerate(chances) if other != part], axis=0)
                added = np.broadcast_to(self.weights[:, None] * others, (len(self.parts), len(answers)))
                np.add.at(found[part, one], (self.parts[:, [part]], answers[:, part][None]), added)
        return found

    def met(self) -> Floats:
        """(part, class, flat cell): the probability that a part meets the cell."""
        found = np.zeros((self.setting.system.arity, *self.rows.shape[:2]))
        for classes in self.setting.tuples:
            for part, one in enumerate(classes):
                np.add.at(found[part, one], self.parts[:, part], self.weights)
        return found

    def involved(self) -> Floats:
        """(part, class, flat cell, output): the probability that a part gives this answer and the system is wrong."""
        return np.asarray(self.rows * (self.met()[..., None] - self.slopes(self.rows)))

    def share(self, mask: Mask) -> float:
        """The share of the system's failures in which at least one part gives one of these answers."""
        wrong = 1 - self._right
        if wrong <= 0:
            return 0.0
        flat, tuples = self._flat(mask)
        right, total = self.overall(self.rows, tuples)
        right_without, total_without = self.overall(np.where(flat, 0.0, self.rows), tuples)
        return max(0.0, ((total - right) - (total_without - right_without)) / wrong)

    @cached_property
    def _right(self) -> float:
        return self.overall(self.rows)[0]

    def _flat(self, mask: Mask) -> tuple[Mask, list[tuple[int, ...]]]:
        """Answers as in `rows`, and the tuples in which a part may give them."""
        flat = mask.reshape(self.rows.shape)
        places = set(np.flatnonzero(flat.any(axis=(1, 2))).tolist())
        return flat, [classes for classes in self.setting.tuples if not places.isdisjoint(classes)]

    def gain(self, mask: Mask, confidence: float = 0.95) -> Rates:
        """How much the overall robustness rises if these answers become right."""
        local = self.setting.local
        flat, tuples = self._flat(mask)
        moved = np.where(flat, self.rows, 0.0)
        fixed = self.rows - moved
        own = np.arange(len(local.classes))
        fixed[own, :, own] += moved.sum(axis=-1)
        gain = self.overall(fixed, tuples)[0] - self.overall(self.rows, tuples)[0]
        after = self.slopes(fixed, tuples).sum(axis=0)
        becomes = after[own, :, own][..., None]  # what a moved answer does once it is right
        slope = np.where(flat, becomes, after) - self.slopes(self.rows, tuples).sum(axis=0)
        gradient = slope.reshape(mask.shape)
        changed = map(int, np.flatnonzero(gradient.any(axis=(1, 2, 3))))
        arms = [class_arms(local, place, gradient[place][None], confidence, coull_arms) for place in changed]
        return _bounded(gain, arms, least=-1.0)


def _bounded(gain: float, arms: list[tuple[Floats, Floats]], least: float = 0.0) -> Rates:
    if not arms:
        return Rates(gain, gain, gain)
    down, up = together(arms)
    return Rates(gain, max(least, gain - float(down[0])), min(1.0, gain + float(up[0])))
