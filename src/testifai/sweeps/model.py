"""`sweep_model`: the robustness of a model over the continuous level of a perturbation."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.perturb.registry import resolve
from testifai.session.assembly import session_of
from testifai.space import Space
from testifai.support.validation import number, whole
from testifai.sweeps import asap, curve
from testifai.sweeps import probe as sampled
from testifai.sweeps.asap import Points
from testifai.sweeps.probe import Probe, SweepBatch
from testifai.sweeps.result import Scale, Sweep, SweepSetting, results

Given = str | Perturbation

TARGET = 0.01


def sweep_model(
    model: Any,
    data: Any,
    perturbation: Given,
    threshold: float | Sequence[float] = 0.8,
    curvature: float | str = "auto",
    points: int = 1024,
    method: str = "asap",
    *,
    levels: tuple[float, float] | None = None,
    integer: bool = False,
    narrowest: float | None = None,
    confidence: float | None = 0.95,
    target: float = TARGET,
    population: str = "data",
    oracle: Any = "label",
    batch_size: int | None = None,
    seed: int = 0,
    repetitions: int = 1,
    workers: int | str | None = None,
    executor: Any = None,
    recorded: Iterable[SweepBatch] = (),
    on_batch: Callable[[SweepBatch], None] | None = None,
) -> Any:
    """The share of a perturbation's levels at which a model's accuracy is at least the threshold, with a bound.

    Levels count as 0..1: a curvature means the same for every perturbation. The accuracy at a level is measured on as
    many inputs as it takes to tell its side of the threshold with this confidence, until the bound is at most the
    target or steps of 1/points are reached; by the methods other than asap, on all inputs.

    Args:
        model: what `ta.scan` takes: a function, a path, an estimator, a module
        data: what `ta.scan` takes: (inputs, labels), a path, a data set, a frame
        perturbation: its name, or the object
        threshold: the accuracy to reach, or several, which share the measurements and give a result each
        curvature: per level², where levels count as 0..1; "auto": found from the curve
        points: how fine: steps of 1 / points of the span at most
        method: "asap", or "uniform", "random" and "quad", to compare with
        levels: (first, last) of the levels to try; None: from off to strongest, as the perturbation declares
        integer: whether only whole levels are tried
        narrowest: with curvature "auto", the width of the narrowest dip that is sure to be found, as a share of the
            span; None: 0.05
        confidence: with which each level's side of the threshold is told; None: all inputs are tried
        target: the bound wanted; measuring ends there
        population: whether the answer is about exactly these inputs, 'data', or about new ones like them, 'future'
        oracle: when an input passes: a name, a table with 'use', an object or a function
        batch_size: inputs handed to the model at once; None: what is quickest
        seed: of all that is drawn
        repetitions: how many times "random" is repeated
        workers: how many work side by side here, or 'ray' and 'ray:ADDRESS'; None: as the model allows
        executor: where inputs are run, by name, as a table with 'use' or as an object; None: on this machine
        recorded: batches of an earlier sweep, as `on_batch` got them: not measured again
        on_batch: called with every batch that was measured

    >>> import numpy as np, testifai as ta
    >>> rows = np.random.default_rng(0).uniform(size=(2000, 1))
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.5], levels=(0.0, 0.5))
    >>> found = sweep_model(lambda x: (x[:, 0] > 0.5).astype(int), (rows, rows[:, 0] > 0.5), shift)
    >>> found.bound <= 0.01, abs(found.robustness - 0.4) < 0.05, found.inferences < 2000 * 30
    (True, True, True)
    """
    task = SweepTask.checked(
        model, data, perturbation, levels=levels, integer=integer, oracle=oracle, batch_size=batch_size, seed=seed,
        workers=workers, executor=executor, population=population, recorded=recorded, on_batch=on_batch,
    )  # fmt: skip
    options = {"curvature": curvature, "points": points, "narrowest": narrowest}
    setting = task.setting(threshold, method, confidence, target, **options)
    with closing(task.probe):
        found = task.run(setting, repetitions=whole("repetitions", repetitions, least=1))
    return found[0] if np.ndim(threshold) == 0 else found


@dataclass(frozen=True)
class SweepTask:
    """One model, one perturbation: all that stays the same between sweeps."""

    probe: Probe
    scale: Scale
    integer: bool
    population: str
    seed: int
    name: str

    @classmethod
    def checked(
        cls,
        model: Any,
        data: Any,
        perturbation: Given,
        *,
        levels: tuple[float, float] | None,
        integer: bool,
        recorded: Iterable[SweepBatch],
        on_batch: Callable[[SweepBatch], None] | None,
        **options: Any,
    ) -> SweepTask:
        chosen = resolve(perturbation)
        ends = _ends(chosen, levels, integer)
        session = session_of(model, data, Space({"level": chosen}), strategy="full", **options)
        probe = Probe(session, chosen, ends, recorded, on_batch)
        scale = Scale(ends, (0.0, abs(ends[1] - ends[0]) if integer else 1.0))
        return cls(probe, scale, integer, session.options.population, session.seed, chosen.name)

    def setting(
        self, threshold: Any, method: str, confidence: float | None, target: float, **options: Any
    ) -> SweepSetting:
        """The checked options of a sweep; a curvature is for levels from 0 to 1, in any unit of the perturbation."""
        checked = None if confidence is None else number("confidence", confidence, above=0, below=1)
        return curve.checked_setting(
            self.scale, threshold, method, unit=self.scale.work[1], confidence=checked if method == "asap" else None,
            population=self.population, target=number("target", target, least=0, below=1), name=self.name, **options,
        )  # fmt: skip

    def accuracy(self, level: float) -> float:
        """The accuracy at one of the perturbation's levels, on all inputs."""
        parts = [passed for _, passed in self.probe.measure([sampled.Ask(level, 0, self.probe.inputs)])]
        return float(np.concatenate(parts).mean())

    def run(self, setting: SweepSetting, *, repetitions: int = 1) -> tuple[Sweep, ...]:
        """Measure what the setting asks for; what was measured before an error is in the SweepError."""
        grid = asap.LevelGrid(*self.scale.work, setting.points, self.integer, setting.narrowest)
        inputs = self.probe.inputs
        # All inputs are the sample of the methods without a confidence: what they measure is exact for the data.
        population = self.population if setting.confidence is not None else "data"
        samples = sampled.Samples(self._measure, inputs, setting.confidence or 0.5, population, grid)
        known: dict[float, float] = {}

        def points() -> Points:
            return replace(samples.points(setting.bend), inferences=self.probe.inferences)

        def evaluate(place: float) -> float:
            if place not in known:
                samples.grow({place: inputs})
                known[place] = samples.accuracy(place)
            return known[place]

        compared = None
        try:
            if setting.confidence is not None:
                sampled.explore(samples, setting.thresholds, setting.bend, setting.target)
            else:
                compared = curve.run(evaluate, known, grid, setting, seed=self.seed, repetitions=repetitions)
        except Exception as error:
            raise curve.unfinished(error, setting, points()) from error
        return results(setting, points(), compared)

    def _measure(self, asks: list[sampled.Ask]) -> Iterable[tuple[float, sampled.Bits]]:
        """Asks in the units of the work as asks at the perturbation's levels, and back."""
        places = {self.scale.shown(ask.level): ask.level for ask in asks}
        for level, passed in self.probe.measure([ask._replace(level=self.scale.shown(ask.level)) for ask in asks]):
            yield places[level], passed


def _ends(perturbation: Perturbation, levels: Any, integer: bool) -> tuple[float, float]:
    given = perturbation.levels if levels is None else levels
    if given is None:
        raise InputError(
            f"perturbation '{perturbation.name}': it has no continuous level; "
            "give levels=(first, last) where its function takes any number between them"
        )
    try:
        first, last = (number("levels", end) for end in given)
    except (TypeError, ValueError):
        first = last = 0.0
    if first == last:
        raise InputError(f"levels: give two different numbers (first, last), got {given!r}")
    if integer and not (first.is_integer() and last.is_integer()):
        raise InputError(f"levels: must be whole numbers when integer is set, got {given!r}")
    return first, last
