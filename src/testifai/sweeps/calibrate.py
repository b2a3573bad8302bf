"""`calibrate`: the levels of a perturbation at which accuracy has fallen by given amounts, as a severity table."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from contextlib import closing
from dataclasses import dataclass, fields, replace
from typing import TYPE_CHECKING, Any

from testifai.errors import InputError
from testifai.perturb import Perturbation
from testifai.perturb.registry import resolve
from testifai.support.serialization import plain
from testifai.support.types import Record
from testifai.support.validation import number
from testifai.support.views import view
from testifai.sweeps.curve import TARGET, Given, SweepTask
from testifai.sweeps.probe import SweepBatch
from testifai.sweeps.result import Sweep

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

DROPS = (0.01, 0.05, 0.1, 0.2, 0.4)


@dataclass(frozen=True, eq=False)
class Calibrated(Perturbation):
    """A perturbation whose severity s, from 1, is the level at which accuracy has fallen by `drops[s − 1]`."""

    accuracy: float = float("nan")  # on the clean inputs
    drops: tuple[float, ...] = ()
    brackets: tuple[tuple[float, float], ...] = ()  # the measured levels around each level
    unreached: tuple[float, ...] = ()  # the drops that the strongest level does not reach
    sweeps: tuple[Sweep, ...] = ()  # one per requested drop
    inferences: int = 0  # of all sweeps

    def __repr__(self) -> str:
        steps = ", ".join(f"{level:.4g} (−{drop:g})" for level, drop in self.falls)
        return f"<Calibrated {self.name}: accuracy {self.accuracy:.3f}, levels {steps or 'none'}>"

    @property
    def falls(self) -> tuple[tuple[float, float], ...]:
        return tuple(zip(map(float, self.severities[1:]), self.drops, strict=True))

    def plot(self, *, dark: bool = False) -> Figure:
        """Accuracy over the level with its intervals and the drops that were asked for, as a plotly figure."""
        figure: Figure = view("calibrated perturbation as a figure")(self, dark=dark)
        return figure

    def as_dict(self) -> Record:
        names = ("name", "accuracy", "drops", "levels", "brackets", "unreached", "inferences")
        levels = [float(level) for level in self.severities[1:]]
        return {name: plain(levels if name == "levels" else getattr(self, name)) for name in names}


def calibrate(
    model: Any,
    data: Any,
    perturbation: Given,
    drops: Sequence[float] = DROPS,
    *,
    curvature: float | str = "auto",
    points: int = 1024,
    narrowest: float | None = None,
    levels: tuple[float, float] | None = None,
    integer: bool = False,
    confidence: float | None = 0.95,
    target: float = TARGET,
    oracle: Any = "label",
    batch_size: int | None = None,
    seed: int = 0,
    workers: int | str | None = None,
    executor: Any = None,
    recorded: Iterable[SweepBatch] = (),
    on_batch: Callable[[SweepBatch], None] | None = None,
) -> Calibrated:
    """The perturbation with a severity for every drop of accuracy: severities placed where they matter.

    The clean accuracy is measured on all inputs, the levels by one sweep with a threshold for every drop; where the
    curve crosses one several times, the first crossing counts. Drops that no level reaches are left out of the table.

    Args:
        model: what `ta.scan` takes: a function, a path, an estimator, a module
        data: what `ta.scan` takes: (inputs, labels), a path, a data set, a frame
        perturbation: its name, or the object
        drops: how far below clean accuracy each severity is to lie
        curvature: how curved accuracy may be, per level squared; "auto": found from the curve
        points: how fine: steps of 1 / points of the span at most
        narrowest: width of the narrowest dip to be found, as a share of the span (for curvature "auto"); None: 0.05
        levels: (first, last) of the levels to try; None: from off to strongest, as the perturbation declares
        integer: whether only whole levels are tried
        confidence: with which each level's side of a threshold is told; None: all inputs are tried
        target: the bound wanted; measuring ends there
        oracle: when an input passes: a name, a table with 'use', an object or a function
        batch_size: inputs handed to the model at once; None: what is quickest
        seed: of all that is drawn
        workers: how many work side by side here, or 'ray' and 'ray:ADDRESS'; None: as the model allows
        executor: where inputs are run, by name, as a table with 'use' or as an object; None: on this machine
        recorded: batches of an earlier sweep, as `on_batch` got them: not measured again
        on_batch: called with every batch that was measured

    >>> import numpy as np, testifai as ta
    >>> rows = np.linspace(0, 1, 1001)[:, None]
    >>> shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.5], levels=(0.0, 0.5))
    >>> table = calibrate(lambda x: (x[:, 0] > 0.5).astype(int), (rows, rows[:, 0] > 0.5), shift, [0.1, 0.2, 0.7])
    >>> [round(level, 2) for level in table.severities], table.unreached
    ([0.0, 0.1, 0.2], (0.7,))
    >>> ta.Space({"shift": table}).shape
    (3,)
    """
    given: Any = drops
    listed = list(given) if isinstance(given, Sequence) and not isinstance(given, str) else []
    wanted = sorted({number("drops", one) for one in listed})
    if not wanted or wanted[0] <= 0 or wanted[-1] >= 1:
        raise InputError(f"drops: give amounts of accuracy between 0 and 1, such as [0.05, 0.2], got {drops!r}")
    chosen = resolve(perturbation)
    task = SweepTask(
        model, data, chosen, levels=levels, integer=integer, oracle=oracle, batch_size=batch_size, seed=seed,
        workers=workers, executor=executor, population="data", recorded=recorded, on_batch=on_batch,
    )  # fmt: skip
    with closing(task.probe):
        accuracy = task.accuracy(task.scale.ends[0])
        thresholds = [max(0.0, accuracy - drop) for drop in wanted]
        options = {"curvature": curvature, "points": points, "narrowest": narrowest}
        sweeps = task.run(task.setting(thresholds, "asap", confidence, target, **options))
    reached, brackets = dict[float, float](), list[tuple[float, float]]()
    for drop, sweep in zip(wanted, sweeps, strict=True):
        below = sweep.accuracies < sweep.threshold
        if below.any():
            reached[drop], after = sweep.crossings[0], int(below.argmax())
            brackets.append((float(sweep.levels[after - 1]), float(sweep.levels[after])))
    if not reached:
        raise InputError(
            f"drops: accuracy never falls by {min(wanted):g} between the levels {task.scale.ends[0]:g} and "
            f"{task.scale.ends[1]:g} of {chosen.name}; give smaller drops or a wider span of levels"
        )
    table = replace(chosen, severities=[task.scale.ends[0], *reached.values()], growing=True)
    own = {field.name: getattr(table, field.name) for field in fields(Perturbation)}
    unreached = tuple(drop for drop in wanted if drop not in reached)
    return Calibrated(
        **own, accuracy=accuracy, drops=tuple(reached), brackets=tuple(brackets), unreached=unreached,
        sweeps=sweeps, inferences=sweeps[0].inferences,
    )  # fmt: skip
