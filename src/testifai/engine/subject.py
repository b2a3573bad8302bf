"""The subject of a test: model, data, space and oracle, from (configuration, input) to an outcome."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.data import Data, rows
from testifai.data.annotations import CLASS, CONFIDENCE, NONE, UNSEEN, Boxes
from testifai.engine.inference import call
from testifai.errors import InputError
from testifai.models.base import Model
from testifai.oracles import Oracle, Outcome
from testifai.perturb import Perturbation
from testifai.perturb.annotations import Outline, looked_up, through
from testifai.perturb.annotations import Places as PixelPlaces
from testifai.runs.outcomes import Ids, Places
from testifai.space import Space
from testifai.support.batches import Batch, own_copy
from testifai.support.types import Array, Bools, Record

LEAST_LEFT = 0.5  # least share of a box that is still on the image for it to be expected


@dataclass(frozen=True)
class Movement:
    """One step of a composite that moves pixels, at a severity or, in a sweep, at a continuous level."""

    perturbation: Perturbation
    severity: int
    seed: int
    occurrence: int = 0
    level: float | None = None

    def outlines(
        self, given: list[list[Outline]], size: tuple[int, int], numbers: NDArray[np.intp]
    ) -> list[list[Outline]]:
        return self.perturbation.apply_outlines(given, self.severity, size, **self._draws(numbers))

    def places(self, size: tuple[int, int], numbers: NDArray[np.intp]) -> Iterator[PixelPlaces]:
        return self.perturbation.places(self.severity, size, **self._draws(numbers))

    def _draws(self, numbers: NDArray[np.intp]) -> Record:
        return {"seed": self.seed, "indices": numbers, "occurrence": self.occurrence, "level": self.level}


# f(rows, steps, sizes, numbers) -> moved rows; sizes and numbers are those of the images.
Mover = Callable[[Any, Sequence[Movement], NDArray[np.intp], NDArray[np.intp]], Any]


def move_boxes(boxes: Boxes, steps: Sequence[Movement], sizes: NDArray[np.intp], numbers: NDArray[np.intp]) -> Boxes:
    """Return boxes moved by steps; those less than half on the image become optional, those outside are removed."""
    moved = boxes.copy()
    for size in np.unique(sizes, axis=0):
        rows = np.flatnonzero((sizes == size).all(axis=1))
        places = [np.flatnonzero(boxes[row, :, CLASS] != NONE) for row in rows]
        outlines = [
            [Outline.of(box) for box in boxes[row, found, :CONFIDENCE]] for row, found in zip(rows, places, strict=True)
        ]
        for step in steps:
            outlines = step.outlines(outlines, (int(size[0]), int(size[1])), numbers[rows])
        for row, found, image in zip(rows, places, outlines, strict=True):
            for place, outline in zip(found, image, strict=True):
                moved[row, place, :CONFIDENCE] = outline.box
                if outline.left < LEAST_LEFT:
                    moved[row, place, CONFIDENCE] = 0
                if not outline.left:
                    moved[row, place, CLASS] = NONE
    return moved


def move_masks(maps: Array, steps: Sequence[Movement], sizes: NDArray[np.intp], numbers: NDArray[np.intp]) -> Array:
    size = (maps.shape[1], maps.shape[2])
    ways = [step.places(size, numbers) for step in steps]
    shown = (reduce(through, places) for places in zip(*ways, strict=True))
    return np.stack([looked_up(labels, places, UNSEEN) for labels, places in zip(maps, shown, strict=True)])


MOVERS: dict[str, Mover] = {"boxes": move_boxes, "masks": move_masks}


@dataclass
class ShownInputs:
    """The inputs of a model: the data's in visiting order, as a configuration of the space changes them."""

    data: Data
    space: Space
    order: NDArray[np.intp]
    seed: int = 0

    def batch(self, places: Places) -> Batch:
        return rows(self.data.inputs, self.order[places])

    def perturb(self, batch: Batch, places: Places, axis: int, severity: int) -> Batch:
        changed: Batch = self.step(batch, self.order[places], axis, severity)
        return changed

    def step(self, batch: Any, numbers: Any, axis: int, severity: int) -> Any:
        """Apply one step to inputs, an array or tensor, with these numbers in the data set."""
        chosen = self.space.axes[axis].perturbation
        table = self.data.table if chosen.table else None
        draws: Record = {"seed": self.seed, "indices": numbers, "occurrence": self._twins(axis)}
        return chosen.apply(batch, severity, side=self.data.side, table=table, **draws)

    def movements(self, sigma: tuple[int, ...]) -> list[Movement]:
        return [
            Movement(self.space.axes[axis].perturbation, severity, self.seed, self._twins(axis))
            for axis, severity in self.space.steps(sigma)
            if self.space.axes[axis].perturbation.moves
        ]

    def _twins(self, axis: int) -> int:
        """Return the number of earlier axes with the same perturbation: each draws its own numbers."""
        name = self.space.axes[axis].perturbation.name
        return sum(other.perturbation.name == name for other in self.space.axes[:axis])

    def composite(self, sigma: tuple[int, ...], places: Places) -> Batch:
        batch = self.batch(places)
        for axis, severity in self.space.steps(sigma):
            batch = self.perturb(batch, places, axis, severity)
        return batch


@dataclass(kw_only=True)
class Subject(ShownInputs):
    model: Model
    oracle: Oracle
    labels: Array | None = None  # class indices of the model
    classes: int | None = None
    keep: tuple[str, ...] = ()
    columns: int | None = None  # of the outputs, once known

    def __post_init__(self) -> None:
        if self.oracle.moves not in (None, *MOVERS):
            raise InputError(
                f"oracle {self.oracle.name}: moves {self.oracle.moves!r} is not known; accepted: {', '.join(MOVERS)}"
            )

    def infer(self, batch: Batch, configuration: int) -> Array:
        return self.ask(batch, lambda: self.where(configuration))

    def where(self, configuration: int) -> str:
        return f"configuration {self.space.configuration(configuration)}"

    def moved(self, expected: Array | None, configurations: Ids, places: Places) -> Array | None:
        """Return what is expected at these places, moved as the configuration of each moves it."""
        if expected is None or self.oracle.moves is None:
            return expected
        made = expected.copy()
        for configuration in np.unique(configurations).tolist():
            which = np.flatnonzero(configurations == configuration)
            steps = self.movements(self.space.configuration(configuration))
            made[which] = self.shifted(expected[which], steps, places[which])
        return made

    def shifted(self, expected: Array, steps: Sequence[Movement], places: Places) -> Array:
        """Return what is expected at these places after some steps; classes do not move."""
        if self.oracle.moves is None or not steps or expected.ndim < 3:
            return expected
        numbers = self.order[places]
        moved: Array = MOVERS[self.oracle.moves](expected, steps, self.data.sizes(numbers), numbers)
        return moved

    def judge(self, outputs: Array, expected: Array | None, clean: Array | None) -> Outcome:
        """Judge outputs; a user-defined oracle gets copies, and its exceptions become one line."""
        if self.oracle.source is None:
            return self.oracle.judge(outputs, expected, clean)
        with self._blamed():
            return self.oracle.judge(own_copy(outputs), own_copy(expected), own_copy(clean))

    def judged_clean(self, outputs: Array, clean: Array, places: Places) -> Bools:
        """Return which outputs on clean inputs pass; `clean` are those that are compared with, if not with labels."""
        expected = None if self.labels is None else self.labels[self.order[places]]
        passed: Bools = np.asarray(self.judge(outputs, expected, self.reference(clean)).passed)
        return passed

    def reference(self, outputs: Array) -> Array:
        if self.oracle.source is None:
            return self.oracle.reference(outputs)
        with self._blamed():
            return self.oracle.reference(own_copy(outputs))

    @contextmanager
    def _blamed(self) -> Iterator[None]:
        try:
            yield
        except (InputError, KeyboardInterrupt):
            raise
        except BaseException as error:
            raise InputError(f"oracle {self.oracle.name}: failed with {type(error).__name__}: {error}") from error

    def ask(self, batch: Batch, where: str | Callable[[], str]) -> Array:
        """Return the model's checked outputs on a batch, and store their number of columns."""
        checked = call(self.model, batch, where, columns=self.columns, classes=self.classes)
        self.saw(checked.shape)
        return checked

    def saw(self, shape: Sequence[int]) -> None:
        """Store the number of columns; with the first outputs the number of classes is known, and checked."""
        if self.columns is None and len(shape) == 2 and shape[1] > 1:
            self.oracle.check(self.labels, shape[1])
        self.columns = shape[1] if len(shape) == 2 else 0
