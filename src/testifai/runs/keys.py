"""Every key under which a run file keeps something, and what stands there. Nothing is stored under any other."""

from __future__ import annotations

# -- plain data (table `meta`) ----------------------------------------------------------------------------------------

ID = "id"  # random, given when the file is made: no part of the run, so not compared, exported or merged
IDENTITY = "identity"  # all that decides the outcomes; a run is continued only if none of it changed
ENVIRONMENT = "environment"  # versions of what it was made with
ENVIRONMENTS = "environments"  # where other versions contributed too: all of them, the first among them
ASKED_TWICE = "asked_twice"  # whether the model gave the same answers twice, and of how many inputs that is known
INPUTS = "inputs"  # how many there are
PARTLY = "partly"  # whether names and some contents tell the data, and CONTENTS each input that was measured
CLASSES = "classes"  # their names, in the order of their numbers
STOPPED_EARLY = "stopped_early"  # whether a rule may have ended tests, which widens their bounds
SPEC = "spec"  # the spec it was made from, as plain data
FOLDER = "folder"  # where that spec was
GATES = "gates"  # its requirements
HASHES = "hashes"  # of the files that model and data were read from: names, sizes, SHA-256
RAN = "ran"  # who ran it when, one entry each time that this was asked for
QUALITY = "quality"  # which measure of input quality the run has, and the key of its scores
TRUST = "trust"  # how far predictions can be trusted, and of which outcomes that was found
FIT = "fit"  # what the surrogate learned, and of what: readers take it instead of learning it again
LOCALITY = "locality"  # how inputs were drawn per class
AGAIN = "again"  # the word under which a cached run was made anew
FINISHED = "finished"  # how many trials there were when nothing was left to do; more: it was continued since
ENDED = "ended"  # under which terms a cached run ended, and its verdicts

# -- arrays -----------------------------------------------------------------------------------------------------------

LABELS = "labels"  # as in the data
FILES = "files"  # what is known of unchanged data files, so that they are not read again: sizes, times, hashes
REFERENCE = "reference"  # what the oracle remembers of clean outputs, in blocks of places
CONTENTS = "contents"  # hashes of what measured inputs held, in blocks of places
BOXES = "boxes/"  # and what they are, and /, and a test's number: rows of place and box, in blocks of places
SCORES = "quality/"  # and a digest of the measure: scores in blocks of one test, and as plain data what they cost
SWEEPS = "sweep/"  # and a perturbation's name and /: batches by level, and as plain data what was found

# What parts of one run have in common: a merged run takes it from the first of them.
SHARED = (IDENTITY, ENVIRONMENT, SPEC, GATES, INPUTS, PARTLY, CLASSES, FOLDER, STOPPED_EARLY, HASHES)


def scores(digest: str) -> str:
    """Where the scores of one measure are.

    >>> scores("0a1b")
    'quality/0a1b'
    """
    return SCORES + digest


def boxes(name: str, configuration: int) -> str:
    """Where the boxes of one test are.

    >>> boxes("found", 7)
    'boxes/found/7'
    """
    return f"{BOXES}{name}/{configuration}"


def sweep(name: str, what: str = "") -> str:
    """Where something about the sweep of one perturbation is.

    >>> sweep("classic.noise", "found")
    'sweep/classic.noise/found'
    """
    return f"{SWEEPS}{name}/{what}"
