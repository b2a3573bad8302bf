"""`testifai check`: the dry run."""

from __future__ import annotations

from testifai.commands.common import Json, SpecFile, answer, duration, read_spec, say


def check(spec: SpecFile, as_json: Json = False) -> None:
    """Estimate the cost of a run without storing anything."""
    from testifai.gates.verdicts import check_gates
    from testifai.session import assembly
    from testifai.session.dry_run import estimate

    loaded = read_spec(spec)
    session = assembly.session(loaded, spec.resolve().parent)
    check_gates(loaded.gate, session.tomogram())
    found = estimate(session)
    say(*(f"note: {note}" for note in found.differs()), err=True)
    if found.near_chance is not None:
        say(f"warning: {found.near_chance}", err=True)
    clean = f"; clean accuracy {found.clean_accuracy:.3f} on {found.clean_inputs:,} inputs"
    accuracy = "" if found.clean_accuracy is None else clean
    likely = f", likely {found.foreseen:,}" if found.foreseen < found.inferences else ""
    fitting = f" ({duration(found.fitting)} of it for fits and estimates)" if found.fitting >= 1 else ""
    line = (
        f"{found.run_tests:,} of {found.tests:,} tests on up to {found.inputs:,} inputs: at most {found.inferences:,} "
        f"inferences{likely}, about {duration(found.seconds)}{fitting} with {found.workers} workers at "
        f"{found.batch_size} a batch, "
        f"a run file of at most {found.file_bytes / 1e6:.1f} MB{accuracy}"
    )
    answer(as_json, found.as_dict(), line, *found.notes())
