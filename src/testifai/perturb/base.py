"""A perturbation: a function with severities, checked around every call, that may also move boxes and label maps."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, Protocol, TypeAlias, TypedDict, cast

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.data.annotations import UNSEEN
from testifai.data.table_columns import Table
from testifai.errors import InputError
from testifai.perturb.annotations import Corners, Outline, Places, Size, check_masks, looked_up, seen
from testifai.perturb.rng import Rng
from testifai.perturb.table_rows import Rows
from testifai.perturb.validation import box_rows, check_batch, check_indices, check_size, is_tensor, kind, protected
from testifai.support.batches import SIDES, Batch, Side, are_images, are_pairs, by_shape
from testifai.support.types import Array, Floats
from testifai.support.validation import choice, number, whole

Parameter: TypeAlias = Any  # of a severity: a number, a tuple or a text, as the function needs it
Changed: TypeAlias = Any  # the result of a function, which is checked to be a batch
Function = Callable[[Any, Parameter, Rng], Changed]
Term: TypeAlias = Any  # numbers of some kind with +, − and ×: arrays, or nodes of a graph
# A formula for formal verifiers, f(ops, images, parameter) -> images in grey levels, neither rounded nor clipped.
# `ops` has `image_shape` and `channel_means` for the kind of number.
Smooth = Callable[[Any, Term, Term], Term]
BoxFunction = Callable[[list[Floats], Parameter, Rng, Size], list[Floats]]
LEVEL = -1  # replaces the severity in the draws of levels
SHOWN = 5  # parameters in a repr


class Shows(Protocol):
    """Yields, image after image, the place in the original that each pixel shows.

    An optional method `outlines(corners, parameter, rng, size)` moves the corners of outlines exactly; otherwise an
    outline becomes that of the pixels that show a place within it.
    """

    def __call__(self, parameter: Parameter, rng: Rng, size: Size, /) -> Iterator[Places]: ...


class Options(TypedDict, total=False):
    """The optional fields of a `Perturbation` that describe its function."""

    boxes: BoxFunction | None
    shows: Shows | None
    growing: bool
    levels: tuple[float, float] | None
    tensors: bool
    table: bool | tuple[str, ...]
    smooth: Smooth | None


@dataclass(frozen=True)
class _Call:
    """The parameter of one call, and what its draws depend on besides the perturbation's name."""

    parameter: Parameter
    severity: int
    where: str  # for errors
    seed: int
    indices: NDArray[np.integer]
    occurrence: int

    def rng(self, name: str, batch: Any = None) -> Rng:
        if is_tensor(batch):
            from testifai.perturb.ops_torch.rng import TensorRng

            return TensorRng(self.seed, name, self.severity, self.indices, self.occurrence, device=batch.device)
        return Rng(self.seed, name, self.severity, self.indices, self.occurrence)


@dataclass(frozen=True, eq=False)
class Perturbation:
    """A label-preserving change of inputs with a table of severities.

    A name, a function and severities are enough. `function(batch, parameter, rng)` returns the changed batch;
    `severities[s]` is the parameter of severity s. Severity 0 is "off": the function is never called for it.

    Args:
        name: for people, and to be found by where it is registered
        function: f(batch, parameter, rng) that returns the changed batch
        severities: the parameter of each severity, the first of them "off"
        summary: one line for people
        boxes: f(boxes, parameter, rng, size) that moves bounding boxes with the image; None: as `shows` says, or
            they stay
        shows: f(parameter, rng, size) that yields the place in the original that each pixel shows, to move label maps
            and boxes; None: pixels stay
        growing: whether a higher severity leads further away from the original
        levels: (off, strongest) of a continuous parameter, for sweeps; None: there are only severities
        tensors: whether the function takes torch tensors too, with draws that are such
        table: whether the function takes `Rows` of a table; the names of columns: only these are changed
        smooth: a formula of the same without rounding, for formal verifiers; None: there is none

    >>> fade = Perturbation("fade", lambda batch, factor, rng: batch * factor, [1.0, 0.8, 0.6])
    >>> fade.apply(np.array([10.0, 20.0]), 2)
    array([ 6., 12.])
    """

    name: str
    function: Function
    severities: Sequence[Parameter]
    summary: str = ""
    boxes: BoxFunction | None = None
    shows: Shows | None = None
    growing: bool = True
    levels: tuple[float, float] | None = None
    tensors: bool = False
    table: bool | tuple[str, ...] = False
    smooth: Smooth | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.name, str) or not self.name.strip():
            raise InputError(f"perturbation name: {self.name!r} is not accepted; give a non-empty string")
        wrong = f"perturbation '{self.name}':"
        if not callable(self.function):
            raise InputError(f"{wrong} function is {self.function!r}; it must be callable as f(batch, parameter, rng)")
        if isinstance(self.severities, str | dict) or not isinstance(self.severities, Iterable):
            raise InputError(f"{wrong} severities is {self.severities!r}; give a list of parameters")
        object.__setattr__(self, "severities", tuple(self.severities))
        if len(self.severities) < 2:
            raise InputError(
                f"{wrong} severities has {len(self.severities)} of at least 2 parameters "
                "(the first belongs to severity 0, off)"
            )
        if self.boxes is not None and not callable(self.boxes):
            raise InputError(f"{wrong} boxes is {self.boxes!r}; it must be callable as f(boxes, parameter, rng, size)")
        if self.levels is not None:
            try:
                off, strongest = map(float, self.levels)
            except (TypeError, ValueError):
                off = strongest = math.nan
            if not (math.isfinite(off) and math.isfinite(strongest) and off != strongest):
                raise InputError(f"{wrong} levels is {self.levels!r}; give two different numbers (off, strongest)")
            object.__setattr__(self, "levels", (off, strongest))

    def __repr__(self) -> str:
        parameters = self.severities[1:]
        shown = ", ".join(map(str, parameters[:SHOWN])) + (", …" if len(parameters) > SHOWN else "")
        return f"<Perturbation {self.name}: severities 1 to {len(parameters)} ({shown})>"

    @property
    def columns(self) -> tuple[str, ...] | None:
        """Names of the columns of a table that are changed; None: all of a fitting kind."""
        return self.table if isinstance(self.table, tuple) else None

    @property
    def moves(self) -> bool:
        """True if pixels move, and boxes or masks with them."""
        return self.boxes is not None or self.shows is not None

    def check_severity(self, severity: int) -> int:
        """Return the severity as a plain int, or raise an InputError.

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
        """Return the batch at this severity.

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
        call = self._at_severity(severity, check_batch(batch), seed, indices, occurrence)
        choice("side", side, SIDES)
        return batch if call is None else self._run(batch, call, side, table)

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
        """Return the batch at a continuous level of the parameter, between the two ends of `levels`.

        An input's draws are the same at every level: what changes between two levels is the level.

        Args:
            batch: inputs; stays as it is
            level: a value of the parameter between the two ends of `levels`
            seed: as for `apply`
            indices: as for `apply`
            occurrence: as for `apply`
            side: as for `apply`
            table: as for `apply`
        """
        call = self._at_level(level, check_batch(batch), seed, indices, occurrence)
        choice("side", side, SIDES)
        return batch if call is None else self._run(batch, call, side, table)

    def on(self, *columns: str) -> Perturbation:
        """Return the same perturbation for some columns of a table alone.

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
        return replace(self, table=columns)

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

    def apply_boxes(
        self,
        boxes: Sequence[ArrayLike],
        severity: int,
        size: Size,
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
    ) -> list[Floats]:
        """Return where bounding boxes are once `apply` with the same severity, seed and indices has moved the image.

        A box becomes the smallest upright box around its moved self, clipped at the image; one that has left the
        image has no area. Boxes stay where the perturbation moves nothing.

        Args:
            boxes: for each image an array of rows (x1, y1, x2, y2), in pixels from the outer corner of the first pixel
            severity: which severity; 0 is off
            size: (height, width) of the images
            seed: as for `apply`
            indices: as for `apply`
            occurrence: as for `apply`
        """
        size = check_size(size)
        given = [box_rows(rows, place) for place, rows in enumerate(boxes)]
        call = self._at_severity(severity, len(given), seed, indices, occurrence)
        if call is None or not self.moves:
            return given
        with self._blamed(f"{call.where} on boxes"):
            if self.boxes is None:
                moved = self._moved_outlines([[Outline.of(box) for box in image] for image in given], call, size)
                return [np.array([outline.box for outline in image]).reshape(-1, 4) for image in moved]
            rows = [np.asarray(one) for one in self.boxes(given, call.parameter, call.rng(self.name), size)]
            if [one.shape for one in rows] != [one.shape for one in given]:
                raise InputError(f"at {call.where} returned boxes of another number")
            return rows

    def apply_outlines(
        self,
        outlines: Sequence[Sequence[Outline]],
        severity: int,
        size: Size,
        *,
        seed: int = 0,
        indices: ArrayLike | None = None,
        occurrence: int = 0,
        level: float | None = None,
    ) -> list[list[Outline]]:
        """Return where outlines are once `apply`, or `apply_level`, has moved the image, clipped at its edges.

        For the steps of a composite one after the other: boxes around boxes around boxes would grow with every turn.

        Args:
            outlines: for each image its outlines, arrays of points
            severity: which severity; 0 is off
            size: (height, width) of the images
            seed: as for `apply`
            indices: as for `apply`
            occurrence: as for `apply`
            level: a level instead of the severity; None: the severity
        """
        given = [list(image) for image in outlines]
        if level is not None and self.levels is None:
            return given
        draws = (len(given), seed, indices, occurrence)
        call = self._at_severity(severity, *draws) if level is None else self._at_level(level, *draws)
        if call is None or not self.moves:
            return given
        with self._blamed(f"{call.where} on outlines"):
            if self.boxes is None:
                return self._moved_outlines(given, call, check_size(size))
            # A function for boxes does not move other outlines, nor return what it has cut off.
            rows = [np.array([outline.box for outline in image]).reshape(-1, 4) for image in given]
            moved = self.boxes(rows, call.parameter, call.rng(self.name), check_size(size))
        return [
            [Outline(Outline.of(box).corners, outline.left) for outline, box in zip(image, new, strict=True)]
            for image, new in zip(given, moved, strict=True)
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
        """Return label maps once `apply` has moved the images: each pixel has the label of the place it shows.

        Args:
            masks: label maps, (images, height, width)
            severity: which severity; 0 is off
            void: the label of pixels that show nothing of the image, or only its mirror image
            seed: as for `apply`
            indices: as for `apply`
            occurrence: as for `apply`
        """
        given = check_masks(masks, void)
        if self.check_severity(severity) == 0 or not self.moves or not len(given):
            return given
        numbers, size = check_indices(indices, len(given)), (given.shape[1], given.shape[2])
        shown = self.places(severity, size, seed=seed, indices=numbers, occurrence=occurrence)
        return np.stack([looked_up(mask, places, void) for mask, places in zip(given, shown, strict=True)])

    def places(
        self,
        severity: int,
        size: Size,
        *,
        indices: ArrayLike,
        seed: int = 0,
        occurrence: int = 0,
        level: float | None = None,
    ) -> Iterator[Places]:
        """Yield, image after image, the place in the original that each pixel shows.

        Args:
            severity: which severity; 0 is off
            size: (height, width) of the images
            indices: the images' numbers in the data set
            seed: as for `apply`
            occurrence: as for `apply`
            level: a level instead of the severity; None: the severity
        """
        if self.shows is None:
            raise InputError(
                f"perturbation '{self.name}': it moves boxes and does not say how masks move; give it `shows`, "
                "f(parameter, rng, size), which yields for each image the x and y of the place that each pixel shows"
            )
        parameter, drawn_at = (self.severities[severity], severity) if level is None else (level, LEVEL)
        rng = Rng(whole("seed", seed), self.name, drawn_at, np.asarray(indices), occurrence)
        with self._blamed("masks"):
            yield from self.shows(parameter, rng, check_size(size))

    def _moved_outlines(self, given: list[list[Outline]], call: _Call, size: Size) -> list[list[Outline]]:
        assert self.shows is not None
        corners: list[list[Corners]] = [[outline.corners for outline in image] for image in given]
        rng = call.rng(self.name)
        if (exact := getattr(self.shows, "outlines", None)) is not None:
            moved = exact(corners, call.parameter, rng, size)
        else:
            shown = self.shows(call.parameter, rng, size)
            moved = [seen(image, *places) for image, places in zip(corners, shown, strict=True)]
        return [
            [outline.moved(new, size) for outline, new in zip(image, to, strict=True)]
            for image, to in zip(given, moved, strict=True)
        ]

    def _at_severity(
        self, severity: int, count: int, seed: int, indices: ArrayLike | None, occurrence: int
    ) -> _Call | None:
        severity = self.check_severity(severity)
        if severity == 0 or not count:
            return None
        given, numbers = self.severities[severity], check_indices(indices, count)
        return _Call(given, severity, f"severity {severity}", whole("seed", seed), numbers, occurrence)

    def _at_level(
        self, level: float, count: int, seed: int, indices: ArrayLike | None, occurrence: int
    ) -> _Call | None:
        if self.levels is None:
            raise InputError(f"perturbation '{self.name}': it has no continuous level; use a severity")
        low, high = sorted(self.levels)
        level = number(f"perturbation '{self.name}': level", level, least=low, most=high)
        if level == self.levels[0] or not count:
            return None
        numbers = check_indices(indices, count)
        return _Call(level, LEVEL, f"level {level:g}", whole("seed", seed), numbers, occurrence)

    def _run(self, batch: Batch, call: _Call, side: Side, table: Table | None) -> Batch:
        if self.table:
            return self._run_rows(batch, call, table)
        if are_images(batch):

            def change(images: Array, rows: NDArray[np.intp]) -> Changed:
                return self._run(images, replace(call, indices=call.indices[rows]), side, None)

            return by_shape(batch, change)
        if not are_pairs(batch):
            return self._result(batch, call, self.name)
        firsts, seconds = [pair[0] for pair in batch], [pair[1] for pair in batch]
        if side != "second":
            firsts = cast(list[str], self._result(firsts, call, self.name))
        if side != "first":
            seconds = cast(list[str], self._result(seconds, call, second(self.name)))
        return list(zip(firsts, seconds, strict=True))

    def _run_rows(self, batch: Batch, call: _Call, table: Table | None) -> Batch:
        if not isinstance(batch, np.ndarray) or batch.ndim != 2 or batch.dtype.kind not in "biuf":
            raise InputError(f"perturbation '{self.name}': is for tables, rows × columns; this batch is none")
        if table is None or len(table.columns) != batch.shape[1]:
            raise InputError(
                f"perturbation '{self.name}': needs to know the columns of this batch, {batch.shape[1]} of them; say "
                "table=testifai.data.wrap(ROWS).table, with all rows of the data"
            )
        with self._blamed(call.where):
            rows = Rows(protected(batch), table, self.columns)
            made = self.function(rows, call.parameter, call.rng(self.name))
        values = made.values if isinstance(made, Rows) else made
        if isinstance(values, np.ndarray) and batch.dtype.kind != "f":
            if np.isnan(values).any():
                raise InputError(
                    f"perturbation '{self.name}': inputs of dtype {batch.dtype} have no missing values; convert them "
                    "to float64"
                )
            values = values.astype(batch.dtype)
        return self._checked(values, batch, call.where)

    def _result(self, batch: Batch, call: _Call, name: str) -> Batch:
        with self._blamed(call.where):
            result = self.function(protected(batch), call.parameter, call.rng(name, batch))
        return self._checked(result, batch, call.where)

    @contextmanager
    def _blamed(self, where: str) -> Iterator[None]:
        try:
            yield
        except InputError as error:
            raise InputError(f"perturbation '{self.name}': {error}") from error
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            if isinstance(error, ValueError) and "read-only" in str(error):
                raise InputError(f"perturbation '{self.name}' must not change its argument; work on a copy") from error
            reason = " ".join(f"{type(error).__name__}: {error}".split())
            raise InputError(f"perturbation '{self.name}' failed at {where}: {reason}") from error

    def _checked(self, result: Changed, batch: Batch, where: str) -> Batch:
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
        both: tuple[Any, Any] = (result, batch)
        if all(one.is_floating_point() if is_tensor(one) else one.dtype.kind == "f" for one in both):
            # Draws are float64, also for float32 inputs.
            result = result.to(batch.dtype) if is_tensor(batch) else result.astype(batch.dtype, copy=False)
        if result.shape != batch.shape or result.dtype != batch.dtype:
            raise InputError(
                f"{wrong} {result.dtype} of shape {tuple(result.shape)}; "
                f"expected {batch.dtype} of shape {tuple(batch.shape)}, as given"
            )
        checked: Batch = result if is_tensor(result) or result.flags.writeable else result.copy()
        return checked


def second(name: str) -> str:
    """The name in the draws of the second texts of pairs: equal texts get different changes."""
    return f"{name} (second)"
