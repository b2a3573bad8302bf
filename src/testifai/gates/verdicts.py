"""Verdicts on gates: each holds, fails or is undecided, with a reason."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from testifai.errors import InputError
from testifai.runs import keys
from testifai.spec.parsing import Gate
from testifai.support.bits import count_set
from testifai.support.types import Record
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.region_estimator import NEEDED
from testifai.tomogram.run_state import unfinished

RULE = 3  # version of the rule; stored verdicts of another one are not used


@dataclass(frozen=True)
class Verdict:
    """The result of a gate."""

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
            **{name: getattr(self.gate, name) for name in ("name", "query", "at_least", "basis")},
            **({} if self.gate.score is None else {"score": self.gate.score}),
            "status": self.status,
            "reason": self.reason,
            **({} if self.gate.because is None else {"because": self.gate.because}),
            **{key: self.answer.as_dict()[key] for key in ("robustness", "low", "high", "population")},
        }


def judge(gates: Iterable[Gate], tomogram: Tomogram, sharing: int | None = None) -> list[Verdict]:
    """Return the verdicts on gates; bounds are valid for repeated evaluation and all gates (Bonferroni).

    `sharing` is the number of all gates, if these are only some.
    """
    listed = list(gates)
    return [_judge(gate, tomogram, sharing or len(listed)) for gate in listed]


def check_gates(gates: Iterable[Gate], tomogram: Tomogram) -> None:
    """Raise InputError for a gate that cannot be evaluated, before a run."""
    for number, gate in enumerate(gates, start=1):
        with naming(gate, number):
            tomogram.scored(gate.score).query_engine.bound(gate.query, gate.inputs)


@contextmanager
def naming(gate: Gate, number: int) -> Iterator[None]:
    """Add the name of the gate to errors."""
    try:
        yield
    except InputError as error:
        raise InputError(f"gate {gate.name or number}: {error}") from error


def stored_gates(tomogram: Tomogram) -> list[Gate]:
    """Return the gates of a run file."""
    return [Gate(**gate) for gate in tomogram.provenance.get(keys.GATES) or ()]


def stored_sharing(tomogram: Tomogram) -> int:
    """Return the number of gates that share the risk of a wrong decision: those of the run, or of a test suite."""
    ended = tomogram.provenance.get(keys.ENDED) or {"terms": {}}
    return ended["terms"].get("sharing") or max(1, len(stored_gates(tomogram)))


def requires_robustness(gates: Iterable[Gate], tomogram: Tomogram) -> bool:
    """Return True if a gate requires anything of a perturbed condition."""
    engine = tomogram.query_engine
    return any(gate.at_least > 0 and engine.sample(gate.query).beyond_clean for gate in gates)


def unfit(gate: Gate, tomogram: Tomogram) -> str | None:
    """Return why a run with these inputs cannot decide a gate, however many trials it has; None if it can."""
    among = tomogram.query_engine.input_bits(gate.inputs)
    inputs = tomogram.outcomes.inputs if among is None else int(count_set(among))
    if inputs < NEEDED:
        return f"too few inputs: {inputs}, and a gate needs {NEEDED}"
    labels, oracle = tomogram.labels, (tomogram.provenance.get(keys.IDENTITY) or {}).get("oracle")
    classifies = oracle is None or (isinstance(oracle, dict) and oracle.get("use") == "label")
    if labels is None or labels.ndim != 1 or labels.dtype.kind not in "iub" or not classifies:
        return None
    if gate.inputs is None and (labels == labels[0]).all():
        return f"all inputs have the same label, {labels[0]}: a model that always answers it would hold every gate"
    return None


def _judge(gate: Gate, tomogram: Tomogram, gates: int) -> Verdict:
    tomogram = tomogram.scored(gate.score)
    answer = tomogram.query_engine.bound(gate.query, gate.inputs, looks=gates)
    if (reason := unfit(gate, tomogram)) is not None:
        return Verdict(gate, answer, "undecided", reason)
    own = tomogram.query_engine.own_inputs(gate.query, gate.inputs)
    if own < NEEDED:
        reason = f"not enough runs in this region: {own} of {NEEDED} different inputs on tests drawn from it"
        return Verdict(gate, answer, "undecided", reason)
    needed = gate.at_least - 1e-9  # allows for rounding of a mean of rates that are just enough
    if gate.basis == "estimate" and unfinished(tomogram) is None:
        holds = answer.robustness >= needed
        return Verdict(gate, answer, "holds" if holds else "fails", f"estimate {answer.robustness:.3f}{answer.scope}")
    if math.isnan(answer.low):
        reason = f"{answer.inferred} of {answer.tests} tests are predicted without an interval"
        return Verdict(gate, answer, "undecided", f"{reason}; measure them, or set basis = 'estimate'")
    bounds = f"between {answer.low:.3f} and {answer.high:.3f}"
    if answer.model_free is not None:
        agrees = " by the surface, which the tests' own trials do not contradict"
        bounds += " by the surface and by the tests' own trials, which contradict it" if answer.disagrees else agrees
    bounds += answer.scope
    if answer.low >= needed:
        return Verdict(gate, answer, "holds", bounds)
    if answer.high < needed:
        return Verdict(gate, answer, "fails", bounds)
    return Verdict(gate, answer, "undecided", f"{bounds}; more inferences would narrow it")
