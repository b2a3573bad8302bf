"""The score that a run's oracle gives every trial: kept, checked, and what the run is planned for, where asked to."""

from __future__ import annotations

from typing import Any

import numpy as np

from testifai.engine.base import BatchOutcome
from testifai.engine.subject import Subject
from testifai.errors import InputError
from testifai.oracles import Oracle
from testifai.runs.scored import VALUE


def kept(asked: tuple[str, ...], oracle: Oracle) -> tuple[str, ...]:
    """What is kept of trials: where the oracle has a score, that too."""
    return asked if oracle.score is None or VALUE in asked else (*asked, VALUE)


def check(asked: str | None, oracle: Oracle) -> None:
    """Refuse a score that the oracle does not have."""
    if oracle.score is not None and not (isinstance(oracle.score, str) and oracle.score.isidentifier()):
        raise InputError(
            f"oracle {oracle.name}: its score is {oracle.score!r}; accepted: a name of letters and digits, such as f1"
        )
    if asked is not None and asked != oracle.score:
        has = "has none" if oracle.score is None else f"has {oracle.score}"
        raise InputError(f"score: {asked!r} is not a score of the oracle {oracle.name}, which {has}")


def identity(asked: str | None, oracle: Oracle) -> dict[str, Any]:
    """What a run file says of scores; nothing where there are none, as before there were any."""
    has = {} if oracle.score is None else {"scores": [oracle.score]}
    return has if asked is None else {**has, "score": asked}


def refuse(measured: BatchOutcome, oracle: Oracle, subject: Subject) -> None:
    """Refuse values that are no scores, where the oracle says that they are."""
    if oracle.score is None:
        return
    values = measured.kept.get(VALUE)
    if values is None:
        raise InputError(f"oracle {oracle.name}: it has the score {oracle.score!r}, and gave no values")
    wrong = ~((values >= 0) & (values <= 1))
    if wrong.any():
        at = int(np.argmax(wrong))
        test = subject.space.words(subject.space.configuration(measured.configuration))
        raise InputError(
            f"oracle {oracle.name}: its score {oracle.score!r} is {values[at]:.9g} for input "
            f"{int(subject.order[measured.places[at]])} under {test}; accepted: 0 to 1"
        )
