"""What `assess` found, in the run file: outcomes need not be assessed twice."""

from __future__ import annotations

import hashlib
import json
import os
from typing import Any

from testifai.runs import keys
from testifai.runs.store import Store
from testifai.support.version import VERSION
from testifai.tomogram.tomogram import Tomogram
from testifai.tomogram.trust.refit import assess
from testifai.tomogram.trust.statements import Trust

METHOD = 2  # to be raised with every change in what `assess` finds or how it is written


def keep(run_file: str | os.PathLike[str], tomogram: Tomogram) -> Trust:
    """Assess the tomogram of a run file, unless that was done before, and put what was found there.

    Of a run that predicts nothing there is nothing to find.
    """
    if not tomogram.query("order >= 0").inferred:
        return Trust()
    with Store.create_or_open(run_file) as store:
        found = _kept(store.get(keys.TRUST), tomogram)
        if found is None:
            found = assess(tomogram)
            store.put(**{keys.TRUST: {"of": fingerprint(tomogram), **found.as_dict()}})
    return found


def recall(tomogram: Tomogram) -> Trust:
    """What the tomogram's run file said about it, where it had been kept there; assessed anew elsewhere."""
    found = _kept(tomogram.provenance.get(keys.TRUST), tomogram)
    return assess(tomogram) if found is None else found


def fingerprint(tomogram: Tomogram) -> str:
    """Of all that an assessment depends on: what was asked for, every outcome, and how it is made."""
    digest = hashlib.sha256()
    settings: list[Any] = [
        VERSION, METHOD, tomogram.space.describe(), tomogram.population, tomogram.seed, tomogram.inferences,
        tomogram.surrogate if isinstance(tomogram.surrogate, str | None) else type(tomogram.surrogate).__qualname__,
        tomogram.outcomes.kept_names(), (tomogram.provenance.get("identity") or {}),
        *([] if tomogram.score is None else [tomogram.score]),
    ]  # fmt: skip
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for test in tomogram.measured_ids.tolist():
        for bits in tomogram.outcomes.bits(test):
            digest.update(bits.tobytes())
        digest.update(b"%d" % test)
    return digest.hexdigest()


def _kept(kept: dict[str, Any] | None, tomogram: Tomogram) -> Trust | None:
    if kept is None or kept.get("of") != fingerprint(tomogram):
        return None
    try:
        found = Trust.from_dict(kept)
        found.lines()
    except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError):
        return None  # not as `keep` writes it
    return found
