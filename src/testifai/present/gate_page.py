"""A gate that does not pass, in words: the query, the estimate, its confidence, and what would decide it."""

from __future__ import annotations

import math
import shlex
from typing import TYPE_CHECKING

from testifai.gates.runner import GatedRun
from testifai.gates.verdicts import Verdict
from testifai.present.terminal import bounded, counted, interval, rate, scored_words

if TYPE_CHECKING:
    from testifai.spec.parsing import Gate


def line(verdict: Verdict) -> str:
    """A gate in a line, the numbers first."""
    answer, gate = verdict.answer, verdict.gate
    found = bounded(answer.robustness, answer.low, answer.high)
    wanted = " of the estimate" if gate.basis == "estimate" else ""
    return f"{verdict.status}: {found}, at least {gate.at_least:g} is required{wanted}: {asked_words(gate)}"


def page(measured: GatedRun, verdict: Verdict) -> str:
    """A gate in a page, with its worst tests."""
    answer, gate = verdict.answer, verdict.gate
    tomogram = measured.tomogram
    clean = tomogram.scored(gate.score).settings.clean_quantity
    wanted = "the estimate" if gate.basis == "estimate" else "the lower bound"
    scope = "file" if measured.sharing == len(measured.verdicts) else "project"
    sure = f"{100 * measured.confidence:.4g} %"
    if measured.sharing > 1:
        sure += f", 95 % shared among the {measured.sharing} gates of the {scope}"
    rows = [
        ("query", asked_words(gate)),
        ("required", f"{wanted} is at least {gate.at_least:g}"),
        *([("because", gate.because)] if gate.because else []),
        ("estimate", f"{rate(answer.robustness)} ({clean} {rate(answer.robustness - answer.drop)})"),
        ("interval", f"{interval(answer.low, answer.high)} at {sure}; valid however often one looks"),
        ("verdict", f"{verdict.status}: {_why(measured, verdict)}"),
        ("tests", counted(answer)),
        ("inferences", f"{tomogram.inferences:,} of at most {measured.budget:,}, {measured.new:,} of them new"),
        *(("warning", line) for line in measured.warnings),
    ]
    head = [f"gate {gate.name!r}"] if gate.name else []
    table = [f"  {name:<10} {text}" for name, text in rows]
    names = [tomogram.space.words(sigma) for sigma, *_ in answer.worst]
    width = max(map(len, names))
    worst = [
        f"    {name:<{width}}  {rate(estimate)}  {interval(low, high)}"
        for name, (_, estimate, low, high) in zip(names, answer.worst, strict=True)
    ]
    where = [f"  run file   {measured.path}", f"  report     testifai report {shlex.quote(str(measured.path))} --open"]
    return "\n".join([*head, *table, "  worst tests", *worst, *where])


def asked_words(gate: Gate, for_: str = " for inputs ") -> str:
    """The score, the query and the inputs of a gate."""
    return f"{scored_words(gate)}{gate.query}" + (f"{for_}{gate.inputs}" if gate.inputs else "")


def _why(measured: GatedRun, verdict: Verdict) -> str:
    answer, gate = verdict.answer, verdict.gate
    if verdict.status == "fails":
        return f"{'the estimate' if gate.basis == 'estimate' else 'even the upper bound'} is below {gate.at_least:g}"
    if math.isnan(answer.low) or not verdict.reason.startswith("between"):
        return verdict.reason
    return f"{gate.at_least:g} lies between the bounds; {_needed(measured, verdict)}"


def _needed(measured: GatedRun, verdict: Verdict) -> str:
    more, room = measured.lacking(verdict)
    if room == 0:
        return "every input was tried on these tests; only more data can decide it"
    if not measured.adaptive:
        return "more trials would narrow them: strategy = 'adaptive' asks for them until a gate is decided"
    budget = measured.tomogram.inferences + more
    guess = f"about {more:,} more inferences" if more < room else f"all {room:,} inferences left on these tests"
    return f"{guess} would decide it: set budget = {budget} in [scan]"
