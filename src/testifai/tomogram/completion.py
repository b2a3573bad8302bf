"""Whether a run is finished: every output of one that is not says so first."""

from __future__ import annotations

from testifai.runs import keys
from testifai.support.types import Record
from testifai.tomogram.tomogram import Tomogram


def completion(tomogram: Tomogram) -> Record:
    """Return whether a run is finished, and its planned and done inferences, as plain data for JSON.

    What was planned is the most that the run may need. A run that was never stored, or merged, is finished.
    """
    done, planned = tomogram.outcomes.total(), tomogram.provenance.get(keys.PLANNED)
    finished = planned is None or tomogram.provenance.get(keys.FINISHED) == done
    return {"finished": finished, "planned": done if finished or planned is None else max(planned, done), "done": done}


def unfinished(tomogram: Tomogram) -> str | None:
    """Return the line about a run that is not finished; None for one that is."""
    found = completion(tomogram)
    if found["finished"]:
        return None
    return f"UNFINISHED: {found['done']:,} of {found['planned']:,} inferences"
