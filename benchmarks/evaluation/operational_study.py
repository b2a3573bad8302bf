"""The runs behind the section on operational testing, each made once and used by every part that wants it."""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np

from evaluation.operational_published import TESTS
from evaluation.operational_subjects import SUBJECTS, Subject, published, recorded
from evaluation.operational_trials import Arm, Trials, measure
from evaluation.recording.operational import STREAMS
from evaluation.setting import MissingFileError, Setting
from testifai.operational.deepest import WEIGHTED

MAIN, CURVE = 1000, 200  # repetitions at the published setting, and along curves
KNOB = (0.0, 0.1, 0.3, 0.5, 0.8, 1.0)
DEFAULT = 0.3
SIZES = (50, 100, 200, 400, 800)
SHARES = (0.0, 0.2, 0.4, 0.6, 0.8, 0.95)
# The variants as they stand in the published tables.
VARIANTS = ("CS", "DSA", "LSA", "C")
USES = {"CS": "confidence", "DSA": "dsa", "LSA": "lsa", "C": "combined"}


def variant(subject: Subject, name: str, **options: float) -> Arm:
    """A variant with the authors' threshold where they set one by hand."""
    use = USES[name]
    told = {"threshold": subject.thresholds[use]} if use in subject.thresholds else {}
    return Arm(name, use, {"share": WEIGHTED, **told, **options})


def arms(subject: Subject) -> dict[str, Arm]:
    """Everything that is compared at 200 tests, by its name on the page."""
    chosen = [Arm("SRS", "srs")]
    if subject.features is not None:
        chosen.append(Arm("CES", "ces"))
    chosen += [variant(subject, name) for name in VARIANTS]
    if subject.thresholds:
        chosen += [Arm("DSA, rule", "dsa"), Arm("LSA, rule", "lsa")]
    chosen += [Arm("LSA, q0.9", "lsa", {"threshold": "q0.9"}), balanced(DEFAULT)]
    return {arm.title: arm for arm in chosen}


def balanced(balance: float) -> Arm:
    return Arm(f"balanced {balance:g}", "balanced", {"balance": balance})


@dataclass(frozen=True)
class Equal:
    """`balanced` where it finds as many failures as a technique: read off its curve between measured balances."""

    balance: float
    ratio: float  # mean squared error over that of simple random sampling


@dataclass(eq=False)
class Study:
    """Subjects and what was measured on them so far."""

    setting: Setting
    made: dict[tuple[str, str, int], Trials] = field(default_factory=dict)

    @cached_property
    def tables(self) -> list[Subject]:
        """The published subjects; raises MissingFileError."""
        return [published(self.setting.file(f"reference/deepest/{name}.csv")) for name in SUBJECTS]

    @cached_property
    def streams(self) -> list[Subject]:
        """Those of our own that are there; raises MissingFileError where none is."""
        paths = [self.setting.grids / f"{stream.name}.npz" for stream in STREAMS]
        there = [path for path in paths if path.exists()]
        if not there:
            raise MissingFileError(f"{paths[0].name} (made by `make papers FULL=1`)")
        return [recorded(path) for path in there]

    def trials(self, subject: Subject, arm: Arm, repetitions: int, tests: int = TESTS) -> Trials:
        """The first repetitions of one technique; none is made twice."""
        count = self.setting.times(repetitions)
        key = (subject.name, f"{arm}", tests)
        if key not in self.made or len(self.made[key].accuracy) < count:
            self.made[key] = measure(subject, arm, tests, count)
        return self.made[key].first(count)

    def main(self, subject: Subject, name: str) -> Trials:
        """A technique at the published setting; CES, which is slow, less often."""
        return self.trials(subject, arms(subject)[name], CURVE if name == "CES" else MAIN)

    def ratio(self, subject: Subject, name: str) -> float:
        """Mean squared error over that of simple random sampling."""
        return 1.0 if name == "SRS" else self.main(subject, name).mse / subject.simple(TESTS)

    def curve(self, subject: Subject) -> list[tuple[float, Trials]]:
        """`balanced` over its knob."""
        return [(knob, self.trials(subject, balanced(knob), MAIN if knob == DEFAULT else CURVE)) for knob in KNOB]

    def equal(self, subject: Subject, found: float) -> Equal | None:
        """Where `balanced` finds that many failures; None where it never finds so many."""
        points = self.curve(subject)
        failures = np.maximum.accumulate([trials.found for _, trials in points])
        if found > failures[-1]:
            return None
        balance = float(np.interp(found, failures, [knob for knob, _ in points]))
        errors = np.log([trials.mse / subject.simple(TESTS) for _, trials in points])
        return Equal(balance, float(np.exp(np.interp(balance, KNOB, errors))))
