"""Strategies on recorded grids, without a model: all outcomes are known, so estimates can be held against the truth.

The file format is that of `testifai export --grid`.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine import stopping as stopping_rules
from testifai.errors import InputError, suggest
from testifai.identity.run_identity import environment
from testifai.perturb import Perturbation
from testifai.runs.outcomes import Outcomes, visiting_order
from testifai.session.session import RunProgress
from testifai.space import Space
from testifai.spec.options import ScanOptions, choose
from testifai.support import validation
from testifai.support.bits import Bits, count_set, unpack
from testifai.support.types import Array, Bools, Floats, Record
from testifai.tomogram import EstimatorSettings, Tomogram


@dataclass(frozen=True, eq=False)
class Grid:
    """Every outcome of a model on every test of a space.

    >>> truth = np.array([[True, True, True], [True, False, False]])
    >>> grid = Grid(("fade",), 3, np.packbits(truth, axis=-1))
    >>> grid.truth.round(3).tolist()
    [1.0, 0.333]
    >>> replay(grid, "full", surrogate="none").estimate.round(3).tolist()
    [1.0, 0.333]
    """

    axes: tuple[str, ...]
    inputs: int
    passes: Bits  # levels of each axis, then the inputs, eight to a byte
    margins: NDArray[np.int8] | None = None  # levels of each axis, then the inputs
    margin_scale: float = 1.0  # stored is margin times scale
    score: str | None = None  # the name of the scores, where the oracle gave them
    scores: NDArray[np.float32] | None = None  # levels of each axis, then the inputs; in place of margins

    def __post_init__(self) -> None:
        _check(self)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Grid:
        """A grid from its file."""
        arrays = _arrays(Path(path))
        try:
            return cls(**_fields(arrays))
        except InputError as error:
            raise InputError(f"{error} (in {path})") from None

    @property
    def levels(self) -> tuple[int, ...]:
        """The number of severities of each axis, off among them."""
        return self.passes.shape[:-1]

    @cached_property
    def space(self) -> Space:
        """A space of the same shape, whose perturbations change nothing."""
        return Space({name: _identity(name, count) for name, count in zip(self.axes, self.levels, strict=True)})

    @cached_property
    def truth(self) -> Floats:
        """The pass rate of every test."""
        rates: Floats = count_set(self.passes) / self.inputs
        return rates

    @cached_property
    def means(self) -> Floats:
        """The mean score of every test."""
        return np.asarray(self._scores().mean(axis=-1, dtype=np.float64))

    def _scores(self) -> NDArray[np.float32]:
        if self.scores is None:
            raise InputError("grid: no scores were recorded; record a run whose oracle has a score")
        return self.scores

    def passed(self, configuration: int, inputs: NDArray[np.intp]) -> Bools:
        """Which of these inputs passed under a configuration, by its id."""
        row = self.passes.reshape(-1, self.passes.shape[-1])[configuration]
        return unpack(row, self.inputs)[inputs]

    def values(self, configuration: int, inputs: NDArray[np.intp]) -> NDArray[np.float32]:
        """The scores of these inputs under a configuration, by its id, or their margins."""
        if self.scores is not None:
            return np.asarray(self.scores.reshape(-1, self.inputs)[configuration, inputs])
        if self.margins is None:
            raise InputError("grid: no margins were recorded; record with keep = ['value'], or leave the scores out")
        row = self.margins.reshape(-1, self.inputs)[configuration]
        margins: NDArray[np.float32] = row[inputs] / np.float32(self.margin_scale)
        return margins

    def sub(self, fixed: Mapping[str, int]) -> Grid:
        """The part of the grid where some axes stand at one severity; they are no axes any more.

        >>> grid = Grid(("fade", "blur"), 8, np.arange(6, dtype=np.uint8).reshape(2, 3, 1))
        >>> part = grid.sub({"fade": 1})
        >>> part.axes, part.passes.tolist()
        (('blur',), [[3], [4], [5]])
        """
        for name, severity in fixed.items():
            if name not in self.axes:
                raise InputError(f"grid: no axis {name!r}; {suggest(name, self.axes)}")
            validation.whole(f"grid: {name}", severity, least=0, most=self.levels[self.axes.index(name)] - 1)
        at = tuple(fixed.get(name, slice(None)) for name in self.axes)
        rest = tuple(name for name in self.axes if name not in fixed)
        margins = None if self.margins is None else self.margins[at]
        scores = None if self.scores is None else self.scores[at]
        return Grid(rest, self.inputs, self.passes[at], margins, self.margin_scale, self.score, scores)


def replay(grid: Grid, strategy: Any, surrogate: Any = None, *, scores: bool = False, **options: Any) -> Tomogram:
    """Return what a scan with this strategy and these options would have found, from recorded outcomes.

    With `scores`, the recorded margins are kept with the outcomes, as a scan does with keep=["value"]; scores of an
    oracle always are.
    """
    chosen = ScanOptions.of({"strategy": strategy, "surrogate": surrogate, "population": "data", **options})
    if scores and grid.margins is None and grid.scores is None:
        raise InputError("scores: the grid has no margins; record it with keep = ['value'], or leave the scores out")
    if chosen.score not in (None, grid.score):
        raise InputError(f"score: the grid has no {chosen.score!r}; accepted: {grid.score or 'none'}")
    methods, seed, budget = choose(chosen, grid.space), chosen.seed, chosen.budget
    strategy, rule = methods.strategy, methods.stopping
    order = visiting_order(grid.inputs, seed)
    outcomes = Outcomes(grid.inputs)
    decided: dict[int, Bools] = {}
    done = 0

    def tomogram(known: Outcomes) -> Tomogram:
        return Tomogram(
            grid.space,
            known,
            order,
            settings=EstimatorSettings(
                stopped_early=rule is not None,
                surrogate=methods.surrogate,
                population=chosen.population,
                seed=seed,
                ended_by_width=stopping_rules.by_width_alone(stopping_rules.describe(rule)),
            ),
            provenance={
                "identity": _replayed(grid, strategy, rule, methods.surrogate, seed),
                "environment": environment(),
            },
        )

    while True:
        progress = RunProgress(
            grid.space, outcomes, budget=budget, target=chosen.target, stopping=rule, seed=seed, decided=decided,
            scored=chosen.score is not None, tomogram=tomogram, finite=chosen.population == "data",
        )  # fmt: skip
        work = strategy.propose(progress)
        if work is None:
            break
        added = _record(grid, work, outcomes, order, scores=scores or grid.scores is not None)
        done += added
        if budget is not None and done > budget:
            raise RuntimeError(f"strategy {strategy.name} spent {done} inferences of a budget of {budget}")
        if added == 0:
            break
    return tomogram(outcomes)


def _record(grid: Grid, work: Any, outcomes: Outcomes, order: NDArray[np.intp], *, scores: bool) -> int:
    """Take what is missing of the work from the grid; how many outcomes that were."""
    added = 0
    shared = None if isinstance(work.places, list) else np.sort(work.places)
    asked = work.places if shared is None else [shared] * len(work.configurations)
    for configuration, places in zip(work.configurations.tolist(), asked, strict=True):
        if configuration in outcomes:
            places = places[~outcomes.attempted(configuration, places)]
        inputs = order[places]
        kept = {"value": grid.values(configuration, inputs)} if scores else None
        outcomes.record(configuration, places, grid.passed(configuration, inputs), kept)
        added += len(places)
    return added


def _replayed(grid: Grid, strategy: Any, rule: Any, surrogate: Any, seed: int) -> Record:
    return {
        "model": "recorded grid",
        "space": grid.space.describe(),
        "strategy": strategy.describe(),
        "surrogate": surrogate if isinstance(surrogate, str | dict | None) else type(surrogate).__name__,
        "stopping": stopping_rules.describe(rule),
        "population": "data",
        "seed": seed,
        **({} if grid.score is None else {"scores": [grid.score]}),
    }


def _identity(name: str, levels: int) -> Perturbation:
    return Perturbation(name, lambda batch, parameter, rng: batch, range(levels))


def _arrays(path: Path) -> dict[str, Array]:
    """The arrays of an npz file."""
    if not path.is_file():
        raise InputError(f"grid: {path} is not a file" if path.exists() else f"grid: {path} does not exist")
    try:  # zip, NumPy and zlib have many words for a damaged file
        loaded = np.load(path, allow_pickle=False)
        if not isinstance(loaded, np.lib.npyio.NpzFile):
            raise ValueError("a single array")
        with loaded:
            return {name: loaded[name] for name in loaded.files}
    except Exception as error:
        why = (str(error).splitlines() or [type(error).__name__])[0]
        raise InputError(f"grid: {path} is not a readable npz file ({why})") from None


def _fields(arrays: Mapping[str, Array]) -> Record:
    """The fields of a grid from the arrays of its file."""
    missing = [name for name in ("axes", "inputs", "passes") if name not in arrays]
    if missing:
        found = ", ".join(sorted(arrays)) or "nothing"
        raise InputError(f"grid: no array {missing[0]!r}; a recorded grid has axes, inputs and passes, found: {found}")
    if "margins" in arrays and "margin_scale" not in arrays:
        raise InputError("grid: margins without margin_scale; accepted: both or neither")
    axes, inputs = arrays["axes"], arrays["inputs"]
    if axes.ndim != 1 or axes.dtype.kind != "U":
        raise InputError(f"grid: axes is an array of {axes.dtype}, shape {axes.shape}; accepted: a list of names")
    fields = {"axes": tuple(axes.tolist()), "inputs": _scalar("inputs", inputs), "passes": arrays["passes"]}
    if "margins" in arrays:
        fields |= {"margins": arrays["margins"], "margin_scale": _scalar("margin_scale", arrays["margin_scale"])}
    if "scores" in arrays:
        fields["scores"] = arrays["scores"]
    if "score" in arrays:
        fields["score"] = str(arrays["score"])
    return fields


def _scalar(name: str, array: Array) -> Any:
    if array.size != 1 or array.dtype.kind not in "iuf":
        raise InputError(f"grid: {name} is an array of {array.dtype}, shape {array.shape}; accepted: one number")
    return array.reshape(-1)[0].item()


def _check(grid: Grid) -> None:
    """Refuse what does not fit together, before anything is estimated from it."""
    inputs, passes, margins = grid.inputs, grid.passes, grid.margins
    validation.whole("grid: inputs", inputs, least=1)
    if passes.dtype != np.uint8:
        raise InputError(f"grid: passes is an array of {passes.dtype}; accepted: uint8, eight inputs a byte")
    size = (inputs + 7) // 8
    if passes.ndim != len(grid.axes) + 1 or passes.shape[-1] != size:
        raise InputError(
            f"grid: passes has shape {passes.shape}; accepted for {len(grid.axes)} axes and {inputs} inputs: "
            f"{len(grid.axes)} numbers of levels, then {size}"
        )
    if np.any(passes[..., -1] & (0xFF >> (inputs - 8 * (size - 1)))):
        raise InputError(
            f"grid: passes has bits set beyond the last of {inputs} inputs; is the number of inputs right?"
        )
    if margins is not None and (margins.dtype != np.int8 or margins.shape != (*grid.levels, inputs)):
        raise InputError(
            f"grid: margins is an array of {margins.dtype}, shape {margins.shape}; "
            f"accepted: int8, shape {(*grid.levels, int(inputs))}"
        )
    if not (np.isfinite(grid.margin_scale) and grid.margin_scale > 0):
        raise InputError(f"grid: margin_scale = {grid.margin_scale!r}; accepted: a positive number")
    if (grid.scores is None) != (grid.score is None):
        raise InputError("grid: scores without their name, or a name without scores; accepted: both or neither")
    if grid.scores is not None:
        right = grid.scores.dtype == np.float32 and grid.scores.shape == (*grid.levels, inputs)
        if not right or not ((grid.scores >= 0) & (grid.scores <= 1)).all():
            raise InputError(
                f"grid: scores is an array of {grid.scores.dtype}, shape {grid.scores.shape}; "
                f"accepted: float32 in 0..1, shape {(*grid.levels, int(inputs))}"
            )
    if min(grid.levels, default=0) < 2:
        raise InputError(f"grid: levels {grid.levels}; accepted: at least one axis, each with at least 2 levels")
    if len(set(grid.axes)) < len(grid.axes):
        raise InputError(f"grid: axes {', '.join(grid.axes)}; accepted: each name once")
    try:
        _ = grid.space  # refuses names that no query could use
    except InputError as error:
        raise InputError(f"grid: {error}") from None
