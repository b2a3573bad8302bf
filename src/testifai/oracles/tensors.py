"""Device implementations of oracles; nothing waits for the device, values are checked when the results are read."""

from __future__ import annotations

import pkgutil
from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

from testifai.oracles.base import ForeignOracle, Oracle
from testifai.oracles.label import Consistency, Label
from testifai.oracles.tolerance import Tolerance

# Passed or not, and a function that computes the value, if the oracle has one.
Judged = tuple[Tensor, Callable[[], Tensor] | None]


@dataclass(frozen=True)
class TensorJudge:
    """`judge(outputs, expected, clean)` and `reference(outputs)` of an oracle, for tensors."""

    judge: Callable[[Tensor, Tensor | None, Tensor | None], Judged]
    reference: Callable[[Tensor], Tensor]


def on_tensors(oracle: Oracle, columns: int) -> TensorJudge | None:
    """Return the device implementation of an oracle for outputs with n columns (0 for labels), None if it has none."""
    given = oracle.given if isinstance(oracle, ForeignOracle) else oracle
    place = vars(type(given)).get("device")
    if not isinstance(place, str) or (oracle.decides_classes and columns < 2):
        return None
    made: TensorJudge = pkgutil.resolve_name(place)(given)
    return made


def predicted(outputs: Tensor) -> Tensor:
    return outputs.argmax(dim=1)


def margin(outputs: Tensor, labels: Tensor) -> Tensor:
    own = labels[:, None]
    scores = outputs.float()
    return scores.gather(1, own)[:, 0] - scores.scatter(1, own, -torch.inf).amax(dim=1)


def label(oracle: Label) -> TensorJudge:
    def judge(outputs: Tensor, expected: Tensor | None, _clean: Tensor | None) -> Judged:
        assert expected is not None
        if expected.ndim == 2:
            return _sets(oracle, outputs, expected)
        return predicted(outputs) == expected, lambda: margin(outputs, expected)

    return TensorJudge(judge, lambda outputs: outputs)


def _sets(oracle: Label, outputs: Tensor, expected: Tensor) -> Judged:
    given = outputs >= oracle.threshold
    wanted = torch.zeros_like(given)
    wanted[:, : expected.shape[1]] = expected != 0
    common, total = (given & wanted).sum(dim=1), given.sum(dim=1) + wanted.sum(dim=1)
    score = torch.where(total == 0, 1.0, 2.0 * common.double() / total.clamp(min=1))
    passed = (given == wanted).all(dim=1) if oracle.f1 is None else score >= oracle.f1
    return passed, score.float


def consistency(oracle: Consistency) -> TensorJudge:
    def judge(outputs: Tensor, _expected: Tensor | None, clean: Tensor | None) -> Judged:
        assert clean is not None
        if oracle.threshold is not None:
            return ((outputs >= oracle.threshold) == clean).all(dim=1), None
        return predicted(outputs) == clean, lambda: margin(outputs, clean)

    def reference(outputs: Tensor) -> Tensor:
        return predicted(outputs) if oracle.threshold is None else outputs >= oracle.threshold

    return TensorJudge(judge, reference)


def tolerance(oracle: Tolerance) -> TensorJudge:
    def judge(outputs: Tensor, expected: Tensor | None, clean: Tensor | None) -> Judged:
        wanted = clean if oracle.against == "clean" else expected
        assert wanted is not None
        near = wanted.double().reshape(len(outputs), -1)
        distance = (outputs.double().reshape(len(outputs), -1) - near).abs()
        allowed = oracle.eps * near.abs() if oracle.relative else oracle.eps
        farthest = distance.amax(dim=1)
        value = farthest if oracle.scale is None else (1 - farthest / oracle.scale).clamp(min=0)
        return (distance <= allowed).all(dim=1), value.float

    return TensorJudge(judge, lambda outputs: outputs)
