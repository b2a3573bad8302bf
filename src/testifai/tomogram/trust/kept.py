"""What `assess` found, in the run file: the same outcomes need not be assessed twice."""

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

METHOD = 1  # to be raised with every change in what `assess` finds or how it is written


def keep(run_file: str | os.PathLike[str], tomogram: Tomogram) -> Trust:
    """Assess the tomogram of a run file, unless that was done before, and put what was found there.

    Of a run that predicts nothing there is nothing to find.
    """
    if not tomogram.query("order >= 0").inferred:
        return Trust()
    with Store.create_or_open(run_file) as store:
        found = _kept(store, tomogram)
        if found is None:
            found = assess(tomogram)
            store.put(**{keys.TRUST: {"of": fingerprint(tomogram), **found.as_dict()}})
    return found


def recall(tomogram: Tomogram) -> Trust:
    """What the tomogram's run file says about it, where it has been kept there; assessed anew elsewhere."""
    path = tomogram.provenance.get("path")
    if path is not None and os.path.isfile(path):
        with Store.open(path) as store:
            found = _kept(store, tomogram)
        if found is not None:
            return found
    return assess(tomogram)


def fingerprint(tomogram: Tomogram) -> str:
    """Of all that an assessment depends on: what was asked for, every outcome, and how it is made."""
    digest = hashlib.sha256()
    settings: list[Any] = [
        VERSION, METHOD, tomogram.space.describe(), tomogram.population, tomogram.seed, tomogram.inferences,
        tomogram.surrogate if isinstance(tomogram.surrogate, str | None) else type(tomogram.surrogate).__qualname__,
        tomogram.outcomes.kept_names(), (tomogram.provenance.get("identity") or {}),
    ]  # fmt: skip
    digest.update(json.dumps(settings, sort_keys=True, default=str).encode())
    for test in tomogram.measured_ids.tolist():
        for bits in tomogram.outcomes.bits(test):
            digest.update(bits.tobytes())
        digest.update(b"%d" % test)
    return digest.hexdigest()


def _kept(store: Store, tomogram: Tomogram) -> Trust | None:
    kept = store.get(keys.TRUST)
    return Trust.from_dict(kept) if kept is not None and kept.get("of") == fingerprint(tomogram) else None
