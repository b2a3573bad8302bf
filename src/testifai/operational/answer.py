"""What the labels say: the accuracy with its interval, the failures, what is confused with what, what to do next."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from pathlib import Path

from testifai.operational.base import assumed_by, conclude
from testifai.operational.release import Release, check_require, judge
from testifai.operational.rounds import Collected
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Record

SHOWN = 10  # failing examples and confusions in the lines for people; JSON has all


@dataclass(frozen=True)
class Failing:
    """An example that the model got wrong."""

    example: int
    where: str
    label: str
    predicted: str


@dataclass(frozen=True)
class Findings:
    """An estimate from filled files.

    `used` of the `labels` are without a gap in drawing order and carry the estimate; `planned` will be there in the
    end, `waiting` are empty in the files, the first of them in `waiting_in`. Accuracy and bounds are NaN before the
    first usable label. The interval `assumes` what the technique says.
    """

    technique: str
    accuracy: float
    low: float
    high: float
    size: int
    labels: int
    used: int
    planned: int
    waiting: tuple[int, ...]
    failing: tuple[Failing, ...]
    confusions: tuple[tuple[str, str, int], ...]
    more_rounds: bool
    verdict: Release | None = None
    assumes: str = ""
    waiting_in: Path | None = None

    def __repr__(self) -> str:
        found = estimate_text(self.accuracy, self.low, self.high)
        labels = f"{self.used:,} of {self.planned:,} labels, {len(self.failing):,} failures"
        verdict = "" if self.verdict is None else f", {self.verdict.status}"
        return f"<Findings {found} by {self.technique}: {labels}{verdict}>"

    def as_dict(self) -> Record:
        """Plain data for JSON."""
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
        """What the labels say and what to do next, for people to read."""
        return [*self._estimate(), *self._failures(), *self._remaining(path), *self._decision(path)]

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

    def _remaining(self, path: Path) -> list[str]:
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
        return lines

    def _decision(self, path: Path) -> list[str]:
        verdict = self.verdict
        if verdict is None:
            return []
        line = f"{verdict.status.upper()}: accuracy of at least {verdict.require:g} required, {verdict.reason}"
        if verdict.more is None:
            return [line]
        return [
            f"{line}; about {verdict.more:,} more labels needed",
            "  (a projection: if the accuracy is what it looks like now, so many decide in four cases of five; "
            f"testifai label select … --tests {self.used + verdict.more} --known {path} -o MORE.csv reuses "
            "what it can)",
        ]


def answer(collected: Collected, require: float | None = None) -> Findings:
    """What the labels that came back say."""
    if require is not None:
        check_require(require)
    selection, standing = collected.selection, collected.standing
    sample = standing.sample
    used = len(sample.selected)
    accuracy = low = high = math.nan
    if used:
        estimate = conclude(selection.technique, selection.frame, sample)
        accuracy, low, high = estimate.accuracy, estimate.low, estimate.high
    failing = _failing(collected)
    written = standing.batches[: collected.rounds]
    asked = dict.fromkeys(int(example) for batch in written for example in batch)
    waiting = tuple(example for example in asked if example not in collected.labels)
    verdict = None
    if require is not None:
        verdict = judge(
            accuracy, low, high, require=require, labelled=used, planned=standing.draws, size=selection.frame.size
        )
    return Findings(
        technique=selection.technique.name,
        accuracy=accuracy,
        low=low,
        high=high,
        size=selection.frame.size,
        labels=len(collected.labels),
        used=used,
        planned=standing.draws,
        waiting=waiting,
        waiting_in=collected.files.get(waiting[0]) if waiting else None,
        failing=failing,
        confusions=_confusions(failing),
        more_rounds=not standing.complete and len(standing.batches) > collected.rounds,
        verdict=verdict,
        assumes=assumed_by(selection.technique),
    )


def _failing(collected: Collected) -> tuple[Failing, ...]:
    classes, predicted = collected.selection.classes, collected.selection.frame.predicted
    assert predicted is not None
    return tuple(
        Failing(
            example,
            collected.where.get(example, ""),
            classes.text(collected.labels[example]),
            classes.text(int(predicted[example])),
        )
        for example, failed in sorted(collected.failed().items())
        if failed
    )


def _confusions(failing: tuple[Failing, ...]) -> tuple[tuple[str, str, int], ...]:
    """(label, predicted, how often), most often first."""
    counts = Counter((one.label, one.predicted) for one in failing)
    ordered = sorted(counts.items(), key=lambda item: (-item[1], item[0]))
    return tuple((label, predicted, count) for (label, predicted), count in ordered)
