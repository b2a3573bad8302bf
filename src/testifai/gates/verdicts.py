"""Requirements on a tomogram: each holds, fails, or is undecided, and says why."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testifai.errors import InputError
from testifai.runs import keys
from testifai.spec.parsing import Gate
from testifai.support.types import Record
from testifai.tomogram import Answer, Tomogram

RULE = 2  # what decides; verdicts found under another number are found again


@dataclass(frozen=True)
class Verdict:
    """How one gate stands."""

    gate: Gate
    answer: Answer
    status: str  # "holds" | "fails" | "undecided"
    reason: str

    def __repr__(self) -> str:
        return f"<Verdict: {self.gate.name} {self.status}, {self.reason}>"

    @property
    def holds(self) -> bool:
        return self.status == "holds"

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {
            "name": self.gate.name,
            "query": self.gate.query,
            "at_least": self.gate.at_least,
            "basis": self.gate.basis,
            **({} if self.gate.score is None else {"score": self.gate.score}),
            "status": self.status,
            "reason": self.reason,
            **({} if self.gate.because is None else {"because": self.gate.because}),
            **{key: self.answer.as_dict()[key] for key in ("robustness", "low", "high")},
        }


def judge(gates: Iterable[Gate], tomogram: Tomogram, sharing: int | None = None) -> list[Verdict]:
    """Every gate's verdict. Bounds stay valid under repeated looking and are shared among the gates (Bonferroni).

    `sharing` is the number of gates in all, where these are not all of them.
    """
    listed = list(gates)
    return [_judge(gate, tomogram, sharing or len(listed)) for gate in listed]


def check_gates(gates: Iterable[Gate], tomogram: Tomogram) -> None:
    """Refuse a gate that cannot be judged, before anything is measured."""
    for number, gate in enumerate(gates, start=1):
        with naming(gate, number):
            tomogram.scored(gate.score).query_engine.bound(gate.query, gate.inputs)


@contextmanager
def naming(gate: Gate, number: int) -> Iterator[None]:
    """Name the gate in a mistake."""
    try:
        yield
    except InputError as error:
        raise InputError(f"gate {gate.name or number}: {error}") from error


def stored_gates(tomogram: Tomogram) -> list[Gate]:
    """The gates that a run file holds."""
    return [Gate(**gate) for gate in tomogram.provenance.get(keys.GATES) or ()]


def stored_sharing(tomogram: Tomogram) -> int:
    """How many gates share the risk of a wrong decision: those of the run, unless a test suite decided otherwise."""
    ended = tomogram.provenance.get(keys.ENDED) or {"terms": {}}
    return ended["terms"].get("sharing") or max(1, len(stored_gates(tomogram)))


def _judge(gate: Gate, tomogram: Tomogram, gates: int) -> Verdict:
    tomogram = tomogram.scored(gate.score)
    answer = tomogram.query_engine.bound(gate.query, gate.inputs, looks=gates)
    needed = gate.at_least - 1e-9  # a mean of rates that are just enough must not fall short by rounding
    if math.isnan(answer.robustness):
        reason = f"{answer.inferred} of {answer.tests} tests are neither measured nor predicted"
        return Verdict(gate, answer, "undecided", reason)
    if gate.basis == "estimate":
        holds = answer.robustness >= needed
        return Verdict(gate, answer, "holds" if holds else "fails", f"estimate {answer.robustness:.3f}")
    if math.isnan(answer.low):
        reason = f"{answer.inferred} of {answer.tests} tests are predicted without an interval"
        return Verdict(gate, answer, "undecided", f"{reason}; measure them, or set basis = 'estimate'")
    bounds = f"between {answer.low:.3f} and {answer.high:.3f}{_source(answer, tomogram)}"
    if answer.low >= needed:
        return Verdict(gate, answer, "holds", bounds)
    if answer.high < needed:
        return Verdict(gate, answer, "fails", bounds)
    return Verdict(gate, answer, "undecided", f"{bounds}; more inferences would narrow it")


def _source(answer: Answer, tomogram: Tomogram) -> str:
    """What bounds rest on, where a surrogate stands behind them."""
    if answer.model_free is not None:
        if answer.disagrees:
            return " by the surface and by the tests' own trials, which contradict it"
        return " by the surface, which the tests' own trials do not contradict"
    if answer.inferred and tomogram.estimator.pooling() is not None:
        return " by the surface alone, as some tests have no trials of their own"
    return ""
