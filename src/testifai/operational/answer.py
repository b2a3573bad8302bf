"""Answers from labels: accuracy with its interval, failures, confusions, the release decision and the next step."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from testifai.operational.base import assumed_by, conclude
from testifai.operational.rounds import Collected
from testifai.statistics.intervals import half_widths, quantile
from testifai.statistics.multiplicity import confidence_each
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Record
from testifai.support.validation import number

PASS, FAIL, UNDECIDED = "pass", "fail", "undecided"

CHANCE = 0.8  # of a decision after as many labels as are projected


@dataclass(frozen=True)
class Release:
    require: float
    status: str
    reason: str
    more: int | None = None  # labels, projected

    @property
    def passed(self) -> bool:
        return self.status == PASS

    def as_dict(self) -> Record:
        return {"require": self.require, "status": self.status, "more_labels": self.more, "reason": self.reason}


def judge(
    accuracy: float, low: float, high: float, *, require: float, labelled: int, planned: int, size: int
) -> Release:
    """Pass if the lower bound reaches what is required, fail if the upper bound does not.

    Before all planned labels are there, bounds are wider (O'Brien and Fleming 1979), so that looking after every few
    labels does not turn a lucky start into a pass.
    """
    check_require(require)
    if labelled == 0 or math.isnan(accuracy):
        return Release(require, UNDECIDED, "no label yet")
    if math.isnan(low) or math.isnan(high):
        return Release(require, UNDECIDED, "the technique gives no interval")
    accuracy = min(max(accuracy, 0.0), 1.0)  # an unbiased estimate from a handful of labels may lie outside
    early = labelled < planned
    # A Brownian motion stays within ±c up to time 1 with probability 0.95 if 4 (1 - Phi(c)) = 0.05 (reflection
    # principle), which is the half-width of each of two simultaneous intervals.
    widen = half_widths(confidence_each(2)) / half_widths() * math.sqrt(planned / labelled) if early else 1.0
    least, most = max(0.0, accuracy - widen * (accuracy - low)), min(1.0, accuracy + widen * (high - accuracy))
    bounds = f"between {least:.3f} and {most:.3f}" + (", bounds for an early look" if early else "")
    needed = require - 1e-9  # a rate that is just enough must not fall short by rounding
    if least >= needed:
        return Release(require, PASS, bounds)
    if most < needed:
        return Release(require, FAIL, bounds)
    more = more_labels(accuracy, low, high, require=require, labelled=labelled, size=size)
    return Release(require, UNDECIDED, bounds, max(more, planned - labelled))


def more_labels(accuracy: float, low: float, high: float, *, require: float, labelled: int, size: int) -> int:
    """Number of further labels that decide with a chance of 80 %, if the estimated accuracy is the true one.

    The labels so far are worth the number of simple random labels whose Wilson bound is as far away, and this worth
    grows with 1/n - 1/N. The number needed for a share p against a requirement r is the textbook's ((z sqrt(r (1 - r))
    + z' sqrt(p (1 - p))) / (p - r))^2 with z for the bound and z' for the chance.
    """
    if accuracy < require:  # the same question about failures
        accuracy, low, require = 1 - accuracy, 1 - high, 1 - require
    if accuracy <= require or not 0 < low < accuracy:
        return size - labelled
    z = half_widths()
    worth = z**2 * low * (1 - low) / (accuracy - low) ** 2
    chance = quantile(CHANCE) * math.sqrt(accuracy * (1 - accuracy))
    needed = ((z * math.sqrt(require * (1 - require)) + chance) / (accuracy - require)) ** 2
    total = 1 / (1 / size + (1 / labelled - 1 / size) * worth / max(needed, 1e-9))
    return max(0, min(size - labelled, max(1, math.ceil(total) - labelled)))


def check_require(require: float) -> None:
    number("require", require, above=0, most=1)


SHOWN = 10  # failing examples and confusions in the lines for people; JSON has all


@dataclass(frozen=True)
class Failing:
    example: int
    where: str
    label: str
    predicted: str


@dataclass(frozen=True)
class Findings:
    """An estimate from filled files; accuracy and bounds are NaN before the first usable label."""

    technique: str
    accuracy: float
    low: float
    high: float
    size: int
    labels: int
    used: int  # labels without a gap in drawing order, which the estimate is based on
    planned: int  # labels in the end
    waiting: tuple[int, ...]  # examples that are empty in the files
    failing: tuple[Failing, ...]
    more_rounds: bool
    verdict: Release | None = None
    assumes: str = ""
    waiting_in: Path | None = None  # the file of the first of them

    def __repr__(self) -> str:
        found = estimate_text(self.accuracy, self.low, self.high)
        labels = f"{self.used:,} of {self.planned:,} labels, {len(self.failing):,} failures"
        verdict = "" if self.verdict is None else f", {self.verdict.status}"
        return f"<Findings {found} by {self.technique}: {labels}{verdict}>"

    @property
    def confusions(self) -> tuple[tuple[str, str, int], ...]:
        """(label, predicted, how often), most often first."""
        counts = Counter((one.label, one.predicted) for one in self.failing)
        ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
        return tuple((*pair, count) for pair, count in ordered)

    def as_dict(self) -> Record:
        verdict = {} if self.verdict is None else {"verdict": self.verdict.as_dict()}
        return {
            "technique": self.technique, "accuracy": plain(self.accuracy), "low": plain(self.low),
            "high": plain(self.high), "size": self.size, "labels": self.labels, "used": self.used,
            "tests": self.planned, "remaining": self.planned - self.used, "waiting": list(self.waiting),
            "next_round": self.more_rounds, "failures": len(self.failing), "assumes": self.assumes,
            "failing": [
                {"id": one.example, "where": one.where, "label": one.label, "predicted": one.predicted}
                for one in self.failing
            ],
            "confusions": [
                {"label": label, "predicted": predicted, "count": count}
                for label, predicted, count in self.confusions
            ],
            **verdict,
        }  # fmt: skip

    def lines(self, path: Path) -> list[str]:
        return [*self._estimate(), *self._failures(), *self._next_step(path)]

    def _estimate(self) -> list[str]:
        if math.isnan(self.accuracy):
            return [f"No estimate yet: {self.labels} of {self.planned} labels, none usable without a gap."]
        bounds = "no interval" if math.isnan(self.low) else f"95 % interval {self.low:.4f} … {self.high:.4f}"
        so_far = "" if self.used == self.planned else " so far"
        assumed = [f"The interval takes for granted {self.assumes}."] if self.assumes else []
        return [
            f"Accuracy{so_far} {self.accuracy:.4f} ({bounds}) on {self.size:,} examples, "
            f"from {self.used} of {self.planned} labels chosen by {self.technique}",
            *assumed,
        ]

    def _failures(self) -> list[str]:
        if not self.failing:
            return ["No failure among the labels."] if self.labels else []
        lines = [f"{len(self.failing)} failures:" if len(self.failing) > 1 else "1 failure:"]
        lines += [
            f"  {one.where or one.example} is {one.label}, predicted {one.predicted}" for one in self.failing[:SHOWN]
        ]
        if len(self.failing) > SHOWN:
            lines.append(f"  … and {len(self.failing) - SHOWN} more (--json lists all)")
        pairs = [f"{label} taken for {predicted} ({count})" for label, predicted, count in self.confusions[:SHOWN]]
        return [*lines, "Confused most: " + ", ".join(pairs)]

    def _next_step(self, path: Path) -> list[str]:
        lines = []
        if self.waiting:
            lines.append(f"{len(self.waiting)} rows are still empty, the first is id {self.waiting[0]}.")
            if self.labels > self.used:
                lines.append(
                    f"{self.labels - self.used} labels after it in drawing order count once it is filled: leaving out "
                    "what is hard to label would flatter the model."
                )
            lines.append(f"Next: testifai label page {self.waiting_in or path}")
        elif self.more_rounds:
            lines.append(
                f"This round is filled; the same testifai label select command as before (-o {path}) writes the next."
            )
        if (verdict := self.verdict) is None:
            return lines
        line = f"{verdict.status.upper()}: accuracy of at least {verdict.require:g} required, {verdict.reason}"
        if verdict.more is None:
            return [*lines, line]
        return [
            *lines,
            f"{line}; about {verdict.more:,} more labels needed",
            "  (a projection: if the accuracy is what it looks like now, so many decide in four cases of five; "
            f"testifai label select … --tests {self.used + verdict.more} --known {path} -o MORE.csv reuses "
            "what it can)",
        ]


def answer(collected: Collected, require: float | None = None) -> Findings:
    if require is not None:
        check_require(require)
    selection, standing, frame = collected.selection, collected.standing, collected.selection.frame
    used = len(standing.sample.selected)
    accuracy = low = high = math.nan
    if used:
        estimate = conclude(selection.technique, frame, standing.sample)
        accuracy, low, high = estimate.accuracy, estimate.low, estimate.high
    assert frame.predicted is not None
    failing = tuple(
        Failing(
            example,
            collected.where.get(example, ""),
            selection.classes.text(collected.labels[example]),
            selection.classes.text(int(frame.predicted[example])),
        )
        for example, failed in sorted(collected.failed().items())
        if failed
    )
    asked = dict.fromkeys(int(example) for batch in standing.batches[: collected.rounds] for example in batch)
    waiting = tuple(example for example in asked if example not in collected.labels)
    verdict = None
    if require is not None:
        verdict = judge(accuracy, low, high, require=require, labelled=used, planned=standing.draws, size=frame.size)
    return Findings(
        technique=selection.technique.name, accuracy=accuracy, low=low, high=high, size=frame.size,
        labels=len(collected.labels), used=used, planned=standing.draws, failing=failing,
        waiting=waiting, waiting_in=collected.files.get(waiting[0]) if waiting else None,
        more_rounds=not standing.complete and len(standing.batches) > collected.rounds,
        verdict=verdict, assumes=assumed_by(selection.technique),
    )  # fmt: skip
