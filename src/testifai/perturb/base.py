"""What a perturbation is."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.data.annotations import UNSEEN
from testifai.data.table_columns import Table
from testifai.errors import InputError
from testifai.perturb.annotations import Corners, Outline, Places, check_masks, looked_up, seen
from testifai.perturb.rng import Rng
from testifai.perturb.smooth import Smooth
from testifai.perturb.table_rows import Rows
from testifai.perturb.validation import (
    box_rows,
    check_batch,
    check_indices,
    check_seed,
    check_side,
    check_size,
    checked_form,
    is_tensor,
    kind,
    protected,
)
from testifai.support.batches import Batch, Side, are_images, are_pairs, by_shape
from testifai.support.types import Array, Floats
from testifai.support.user_code import ANY_FAULT
from testifai.support.validation import number, whole

Function = Callable[[Any, Any, Rng], Any]
# What an input's draws follow besides the perturbation's name: seed, severity, inputs' numbers, occurrence.
Key = tuple[int, int, NDArray[np.integer[Any]], int]
LEVEL = -1  # no severity has this number: levels have draws of their own
# Where boxes go: f(boxes, parameter, rng, (height, width)) -> boxes, given the draws that moved the images.
Boxes = Callable[[list[Floats], Any, Rng, tuple[int, int]], list[Floats]]
# Where the corners of outlines go, of some for each image, on the image or not: f(outlines, parameter, rng, size).
Move = Callable[[list[list[Corners]], Any, Rng, tuple[int, int]], list[list[Corners]]]
# What the pixels show, of one image after the other: f(parameter, rng, size), given the draws that moved the images.
Shows = Callable[[Any, Rng, tuple[int, int]], Iterator[Places]]
SHOWN = 5  # parameters, in few words


@dataclass(frozen=True, eq=False)
class Perturbation:
    """A label-preserving change of inputs with a table of severities.

    `function(batch, parameter, rng)` returns the changed batch; `severities[s]` is the parameter of severity
    s. Severity 0 is "off": its parameter is never handed to the function.

    Args:
        name: for people, and to be found by where it is registered
        function: f(batch, parameter, rng) that returns the changed batch
        severities: the parameter of each severity, the first of them "off"
        summary: one line for people
        boxes: f(boxes, parameter, rng, size) that moves bounding boxes with the image; None: they stay
        growing: whether a higher severity leads further away from the original
        levels: (off, strongest) of a continuous parameter; None: there are only severities
        tensors: whether the function takes torch tensors too
        move: f(outlines, parameter, rng, size) that moves the corners of outlines; None: as `boxes` moves boxes
        shows: f(parameter, rng, size) that yields the place in the original that each pixel shows, to move label maps
        table: whether it is for tables: the function then gets `Rows`
        columns: the columns of a table to change; None: all that fit
        smooth: a formula of the same without rounding, for formal verifiers; None: there is none

    >>> fade = Perturbation("fade", lambda batch, factor, rng: batch * factor, [1.0, 0.8, 0.6])
    >>> fade.apply(np.array([10.0, 20.0]), 2)
    array([ 6., 12.])
    """

    name: str
    function: Function
    severities: Sequence[Any]
    summary: str = ""
    # How bounding boxes move along; None where they stay as they are.
    boxes: Boxes | None = None
    # Whether a higher severity is always further from the original; some published tables are not so.
    growing: bool = True
    # The two ends of the parameter as a continuous level, off and strongest, for sweeps; None where it has none.
    levels: tuple[float, float] | None = None
    # Whether the function takes torch tensors, and draws that are such, as well as arrays.
    tensors: bool = False
    # How outlines move along, more exact in composites than `boxes`, which it makes if there is none.
    move: Move | None = None
    # Which place each pixel shows, so that label maps move along; it makes `move`, too, if there is none.
    shows: Shows | None = None
    # Whether the function takes rows of a table, with named columns (`Rows`), instead of an array; and which columns
    # it is to change: all where None.
    table: bool = False
    columns: tuple[str, ...] | None = None
    # The same without rounding, in arithmetic that can be written down as a graph; None where that cannot be done.
    smooth: Smooth | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"perturbation name: {self.name!r} is not accepted; give a non-empty string")
        if not callable(self.function):
            raise InputError(
                f"perturbation '{self.name}': function is {self.function!r}; "
                "it must be callable as f(batch, parameter, rng)"
            )
        if isinstance(self.severities, str | dict) or not isinstance(self.severities, Iterable):
            raise InputError(
                f"perturbation '{self.name}': severities is {self.severities!r}; give a list of parameters"
            )
        table = tuple(self.severities)
        if len(table) < 2:
            raise InputError(
                f"perturbation '{self.name}': severities has {len(table)} of at least 2 parameters "
                "(the first belongs to severity 0, off)"
            )
        object.__setattr__(self, "severities", table)
        if self.boxes is not None and not callable(self.boxes):
            raise InputError(
                f"perturbation '{self.name}': boxes is {self.boxes!r}; "
                "it must be callable as f(boxes, parameter, rng, size)"
            )
        if self.boxes is None and self.move is None and self.shows is not None:
            object.__setattr__(self, "move", _move_by(self.shows))
        if self.boxes is None and self.move is not None:
            object.__setattr__(self, "boxes", _boxes_by(self.move))
        if self.levels is not None:
            object.__setattr__(self, "levels", self._checked_levels(self.levels))

    def __repr__(self) -> str:
        parameters = self.severities[1:]
        shown = ", ".join(map(str, parameters[:SHOWN])) + (", …" if len(parameters) > SHOWN else "")
        return f"<Perturbation {self.name}: severities 1 to {len(parameters)} ({shown})>"

    def _checked_levels(self, levels: Any) -> tuple[float, float]:
        try:
            off, strongest = map(float, levels)
        except (TypeError, ValueError):
            off = strongest = math.nan
        if not (math.isfinite(off) and math.isfinite(strongest) and off != strongest):
            raise InputError(
                f"perturbation '{self.name}': levels is {levels!r}; give two different numbers (off, strongest)"
            )
        return off, strongest

    def check_severity(self, severity: int) -> int:
        """The severity as a plain int, or an InputError.

        Args:
            severity: what is asked for
        """
        return whole(f"perturbation '{self.name}': severity", severity, least=0, most=len(self.severities) - 1)

    def apply(
        self,
        batch: Batch,
        severity: int,
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
        side: Side = "both",
        table: Table | None = None,
    ) -> Batch:
        """The batch at this severity; the batch handed in stays as it is.

        Args:
            batch: inputs; stays as it is
            severity: which severity; 0 is off
            seed: of all that is drawn
            indices: the inputs' numbers in the data set, which random draws follow; None: 0, 1, 2, …
            occurrence: tells apart several uses of one perturbation on the same inputs
            side: which texts are changed where inputs are pairs: 'first', 'second' or 'both', with draws of their
                own
            table: what the columns are where inputs are rows of a table, as `testifai.data.wrap(…).table` says
        """
        severity = self.check_severity(severity)
        count = check_batch(batch)
        side = check_side(side)
        if severity == 0:
            return batch
        key = (check_seed(seed), severity, check_indices(indices, count), occurrence)
        return self._run(batch, self.severities[severity], key, side, table, f"severity {severity}")

    def apply_level(
        self,
        batch: Batch,
        level: float,
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
        side: Side = "both",
        table: Table | None = None,
    ) -> Batch:
        """The batch at a continuous level of the parameter, between the two ends of `levels`.

        An input's draws are the same at every level: what changes between two levels is the level.

        Args:
            batch: inputs; stays as it is
            level: a value of the parameter between the two ends of `levels`
            seed: of all that is drawn
            indices: the inputs' numbers in the data set, which random draws follow; None: 0, 1, 2, …
            occurrence: tells apart several uses of one perturbation on the same inputs
            side: which texts are changed where inputs are pairs: 'first', 'second' or 'both', with draws of their
                own
            table: what the columns are where inputs are rows of a table, as `testifai.data.wrap(…).table` says
        """
        if self.levels is None:
            raise InputError(f"perturbation '{self.name}': it has no continuous level; use a severity")
        low, high = sorted(self.levels)
        level = number(f"perturbation '{self.name}': level", level, least=low, most=high)
        count = check_batch(batch)
        side = check_side(side)
        if level == self.levels[0]:
            return batch
        key = (check_seed(seed), LEVEL, check_indices(indices, count), occurrence)
        return self._run(batch, float(level), key, side, table, f"level {level:g}")

    def apply_boxes(
        self,
        boxes: Sequence[ArrayLike],
        severity: int,
        size: tuple[int, int],
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
    ) -> list[Floats]:
        """Where bounding boxes are once `apply` with the same severity, seed and indices has moved the image.

        A box becomes the smallest upright box around its moved
        self, cut off at the image; one that has left the image has no area. Perturbations without a `boxes`
        function leave boxes alone.

        Args:
            boxes: for each image an array of rows (x1, y1, x2, y2), in pixels from the outer corner of the first pixel
            severity: which severity; 0 is off
            size: (height, width) of the images
            seed: of all that is drawn
            indices: the inputs' numbers in the data set, which random draws follow; None: 0, 1, 2, …
            occurrence: tells apart several uses of one perturbation on the same inputs
        """
        severity, size = self.check_severity(severity), check_size(size)
        given = [box_rows(rows, place) for place, rows in enumerate(boxes)]
        if severity == 0 or self.boxes is None or not given:
            return given
        rng = Rng(check_seed(seed), self.name, severity, check_indices(indices, len(given)), occurrence)
        with self._blamed(f"severity {severity} on boxes"):
            moved = [np.asarray(rows) for rows in self.boxes(given, self.severities[severity], rng, size)]
        if [rows.shape for rows in moved] != [rows.shape for rows in given]:
            raise InputError(f"perturbation '{self.name}' at severity {severity} returned boxes of another number")
        return moved

    def apply_outlines(
        self,
        outlines: Sequence[Sequence[Outline]],
        severity: int,
        size: tuple[int, int],
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
    ) -> list[list[Outline]]:
        """Where outlines, some for each image, are once `apply` has moved the image, cut off at its edges.

        For the steps of a composite one after the other: boxes around boxes around boxes would grow with every turn.

        Args:
            outlines: for each image its outlines, arrays of points
            severity: which severity; 0 is off
            size: (height, width) of the images
            seed: of all that is drawn
            indices: the inputs' numbers in the data set, which random draws follow; None: 0, 1, 2, …
            occurrence: tells apart several uses of one perturbation on the same inputs
        """
        severity, given = self.check_severity(severity), [list(image) for image in outlines]
        if severity == 0 or not given:
            return given
        key = (check_seed(seed), severity, check_indices(indices, len(given)), occurrence)
        return self._moved(given, self.severities[severity], key, check_size(size), f"severity {severity}")

    def apply_outlines_level(
        self,
        outlines: Sequence[Sequence[Outline]],
        level: float,
        size: tuple[int, int],
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
    ) -> list[list[Outline]]:
        """Where outlines are once `apply_level` has moved the image.

        Args:
            outlines: for each image its outlines, arrays of points
            level: a value of the parameter between the two ends of `levels`
            size: (height, width) of the images
            seed: of all that is drawn
            indices: the inputs' numbers in the data set, which random draws follow; None: 0, 1, 2, …
            occurrence: tells apart several uses of one perturbation on the same inputs
        """
        given = [list(image) for image in outlines]
        if self.levels is None or level == self.levels[0] or not given:
            return given
        key = (check_seed(seed), LEVEL, check_indices(indices, len(given)), occurrence)
        return self._moved(given, float(level), key, check_size(size), f"level {level:g}")

    def _moved(
        self, given: list[list[Outline]], parameter: Any, key: Key, size: tuple[int, int], where: str
    ) -> list[list[Outline]]:
        if self.move is None and self.boxes is None:
            return given
        rng = _rng(given, self.name, key)
        with self._blamed(f"{where} on outlines"):
            if self.move is None:
                return self._boxed(given, parameter, rng, size)
            corners = [[outline.corners for outline in image] for image in given]
            moved = self.move(corners, parameter, rng, size)
        return [
            [outline.moved(corners, size) for outline, corners in zip(image, to, strict=True)]
            for image, to in zip(given, moved, strict=True)
        ]

    def apply_masks(
        self,
        masks: ArrayLike,
        severity: int,
        *,
        void: int = UNSEEN,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
    ) -> Array:
        """Label maps (images, height, width) once `apply` has moved the images: the label of the nearest pixel.

        Args:
            masks: label maps, (images, height, width)
            severity: which severity; 0 is off
            void: the label of pixels that show nothing of the image, or only its mirror image
            seed: of all that is drawn
            indices: the inputs' numbers in the data set, which random draws follow; None: 0, 1, 2, …
            occurrence: tells apart several uses of one perturbation on the same inputs
        """
        severity, given = self.check_severity(severity), check_masks(masks, void)
        if severity == 0 or not self.moves or not len(given):
            return given
        numbers, size = check_indices(indices, len(given)), (given.shape[1], given.shape[2])
        shown = self.places(severity, size, seed=seed, indices=numbers, occurrence=occurrence)
        return np.stack([looked_up(mask, places, void) for mask, places in zip(given, shown, strict=True)])

    def places(
        self,
        severity: int,
        size: tuple[int, int],
        *,
        indices: ArrayLike,
        seed: int = 0,
        occurrence: int = 0,
        level: float | None = None,
    ) -> Iterator[Places]:
        """For images of these numbers, one after the other: the place in the original that each pixel shows.

        Args:
            severity: which severity; 0 is off
            size: (height, width) of the images
            indices: the images' numbers in the data set
            seed: of all that is drawn
            occurrence: tells apart several uses of one perturbation on the same inputs
            level: a level instead of the severity; None: the severity
        """
        if self.shows is None:
            raise InputError(
                f"perturbation '{self.name}': it moves boxes and does not say how masks move; give it `shows`, "
                "f(parameter, rng, size), which yields for each image the x and y of the place that each pixel shows"
            )
        parameter = self.severities[severity] if level is None else level
        drawn_at = severity if level is None else LEVEL
        rng = Rng(check_seed(seed), self.name, drawn_at, np.asarray(indices), occurrence)
        with self._blamed("masks"):
            yield from self.shows(parameter, rng, check_size(size))

    @property
    def moves(self) -> bool:
        """Whether it says that pixels move, and with them boxes or masks."""
        return self.boxes is not None or self.shows is not None

    def _boxed(
        self, given: list[list[Outline]], parameter: Any, rng: Rng, size: tuple[int, int]
    ) -> list[list[Outline]]:
        """By way of boxes, which is all that a function of somebody else's knows; what it cuts off is not known."""
        assert self.boxes is not None
        boxes = [np.array([outline.box for outline in image]).reshape(-1, 4) for image in given]
        moved = self.boxes(boxes, parameter, rng, size)
        return [
            [Outline(Outline.of(box).corners, outline.left) for outline, box in zip(image, rows, strict=True)]
            for image, rows in zip(given, moved, strict=True)
        ]

    def on(self, *columns: str) -> Perturbation:
        """The same for some columns of a table alone.

        Args:
            columns: their names

        >>> from testifai.perturb import get
        >>> get("tabular.noise").on("age", "income").columns
        ('age', 'income')
        """
        if not self.table:
            raise InputError(f"perturbation '{self.name}': takes no columns; those of the suite tabular do")
        if not columns or len(set(columns)) < len(columns):
            raise InputError(f"perturbation '{self.name}': columns is {list(columns)}; give names, each once")
        return replace(self, columns=columns)

    def check_table(self, table: Table | None) -> None:
        """Refuse data without columns, or without those it is to change.

        Args:
            table: what is known of the columns; None: inputs are no table
        """
        if self.table and table is None:
            raise InputError(f"perturbation '{self.name}': is for tables; these inputs are none")
        if self.columns is not None and table is not None:
            with self._blamed("its columns"):
                table.places(self.columns)

    def _run(self, batch: Batch, parameter: Any, key: Key, side: Side, table: Table | None, where: str) -> Batch:
        if self.table:
            return self._run_rows(batch, parameter, key, table, where)
        if are_images(batch):
            seed, severity, indices, occurrence = key

            def change(images: Array, rows: NDArray[np.intp]) -> Any:
                return self._run(images, parameter, (seed, severity, indices[rows], occurrence), side, None, where)

            return by_shape(batch, change)
        if not are_pairs(batch):
            return self._call(batch, parameter, _rng(batch, self.name, key), where)
        firsts, seconds = [pair[0] for pair in batch], [pair[1] for pair in batch]
        if side != "second":
            firsts = cast(list[str], self._call(firsts, parameter, _rng(firsts, self.name, key), where))
        if side != "first":
            seconds = cast(list[str], self._call(seconds, parameter, _rng(seconds, second(self.name), key), where))
        return list(zip(firsts, seconds, strict=True))

    def _run_rows(self, batch: Any, parameter: Any, key: Key, table: Table | None, where: str) -> Batch:
        if not isinstance(batch, np.ndarray) or batch.ndim != 2 or batch.dtype.kind not in "biuf":
            raise InputError(f"perturbation '{self.name}': is for tables, rows × columns; this batch is none")
        if table is None or len(table.columns) != batch.shape[1]:
            raise InputError(
                f"perturbation '{self.name}': needs to know the columns of this batch, {batch.shape[1]} of them; say "
                "table=testifai.data.wrap(ROWS).table, with all rows of the data"
            )
        with self._blamed(where):
            made = self.function(Rows(protected(batch), table, self.columns), parameter, _rng(batch, self.name, key))
        values = made.values if isinstance(made, Rows) else made
        if isinstance(values, np.ndarray) and batch.dtype.kind != "f":
            if np.isnan(values).any():
                raise InputError(
                    f"perturbation '{self.name}': inputs of dtype {batch.dtype} have no missing values; convert them "
                    "to float64"
                )
            values = values.astype(batch.dtype)
        return self._checked(values, batch, where)

    def _call(self, batch: Batch, parameter: Any, rng: Rng, where: str) -> Batch:
        with self._blamed(where):
            result = self.function(protected(batch), parameter, rng)
        return self._checked(result, batch, where)

    @contextmanager
    def _blamed(self, where: str) -> Iterator[None]:
        """Whatever goes wrong in here is reported as an InputError with the perturbation's name, in one line."""
        try:
            yield
        except InputError as error:
            raise InputError(f"perturbation '{self.name}': {error}") from error
        except ANY_FAULT as error:
            if isinstance(error, ValueError) and "read-only" in str(error):
                raise InputError(f"perturbation '{self.name}' must not change its argument; work on a copy") from error
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"perturbation '{self.name}' failed at {where}: {reason}") from error

    def _checked(self, result: Any, batch: Batch, where: str) -> Batch:
        wrong = f"perturbation '{self.name}' at {where} returned"
        if isinstance(batch, list):
            if not isinstance(result, list) or not all(isinstance(text, str) for text in result):
                raise InputError(f"{wrong} {kind(result)}; expected a list of strings")
            if len(result) != len(batch):
                raise InputError(f"{wrong} {len(result)} texts for {len(batch)} inputs")
            return result
        same_kind = is_tensor(result) if is_tensor(batch) else isinstance(result, np.ndarray)
        if not same_kind:
            raise InputError(f"{wrong} {kind(result)}; expected {'a tensor' if is_tensor(batch) else 'an array'}")
        checked: Batch = checked_form(result, batch, wrong)
        return checked


def _move_by(shows: Shows) -> Move:
    """Outlines moved as pixels are."""

    def move(outlines: list[list[Corners]], parameter: Any, rng: Rng, size: tuple[int, int]) -> list[list[Corners]]:
        shown = shows(parameter, rng, size)
        return [seen(image, *places) for image, places in zip(outlines, shown, strict=True)]

    return move


def _boxes_by(move: Move) -> Boxes:
    """Boxes moved as outlines are: the upright box around what of each is still on the image."""

    def boxes(rows: list[Floats], parameter: Any, rng: Rng, size: tuple[int, int]) -> list[Floats]:
        given = [[Outline.of(box) for box in image] for image in rows]
        moved = move([[outline.corners for outline in image] for image in given], parameter, rng, size)
        return [
            np.array([one.moved(to, size).box for one, to in zip(image, corners, strict=True)]).reshape(-1, 4)
            for image, corners in zip(given, moved, strict=True)
        ]

    return boxes


def second(name: str) -> str:
    """The name that the draws of the second texts of pairs go by: equal texts are not changed alike."""
    return f"{name} (second)"


def _rng(batch: Any, name: str, key: Key) -> Any:
    seed, severity, indices, occurrence = key
    if is_tensor(batch):
        from testifai.perturb.ops_torch.rng import TensorRng

        return TensorRng(seed, name, severity, indices, occurrence, device=batch.device)
    return Rng(seed, name, severity, indices, occurrence)
