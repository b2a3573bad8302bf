"""Whether a run is finished, which every output of one that is not says first, and what its numbers are about."""

from __future__ import annotations

from testifai.runs import keys
from testifai.support.types import Record
from testifai.tomogram.answers import only_for
from testifai.tomogram.tomogram import Tomogram


def run_state(tomogram: Tomogram) -> Record:
    """Return as plain data whether a run is finished; one that was never stored, or merged, is."""
    done, planned = tomogram.outcomes.total(), tomogram.provenance.get(keys.PLANNED)
    finished = planned is None or tomogram.provenance.get(keys.FINISHED) == done
    planned = done if finished or planned is None else max(planned, done)
    return {"finished": finished, "planned": planned, "done": done, "population": tomogram.settings.population}


def unfinished(tomogram: Tomogram) -> str | None:
    found = run_state(tomogram)
    if found["finished"]:
        return None
    return f"UNFINISHED: {found['done']:,} of {found['planned']:,} inferences"


def scope(tomogram: Tomogram) -> str:
    return only_for(tomogram.outcomes.inputs if tomogram.settings.finite else None)
