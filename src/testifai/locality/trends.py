"""Which failures are more than chance: tests of every class, property, severity and answer, merged into trends.

Two questions are asked of every class under a property at a severity (a cell). Does it fail more often than the other
classes do there? By chance, failures fall on inputs of all classes alike (Fisher's exact test). And are its failures
read as one answer in particular? By chance, every other answer is as likely (binomial test, given the failures). Both
are exact for inputs drawn one by one, whatever hangs together between severities: a cell holds every input once. All
tests together are corrected by Holm's method, so that the chance of any false trend at all is at most `alpha`.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from testifai.locality.local import Local
from testifai.statistics.multiplicity import holm
from testifai.support.types import Bools, Floats

Mask = Bools  # (class, property, severity, output)
SINK = 3  # classes at least, and half of all the others, for one answer to be a sink


@dataclass(frozen=True, eq=False)
class Pattern:
    """Failures that belong together, by places in a table.

    A "confusion" is one class read as one other; a "sink" most classes read as the same one; a "class" fails more
    often than the others and is read as several (`answer` is None).
    """

    kind: str
    classes: tuple[int, ...]
    which: int  # property
    levels: tuple[int, ...]  # places of the severities, first to last
    answer: int | None
    mask: Mask  # which answers to which cells belong to it
    p_value: float  # of its clearest cell, corrected for all tests


class TrendSearch(NamedTuple):
    """The patterns of a table, no failure in two of them, and the number of tests that the correction is for."""

    patterns: tuple[Pattern, ...]
    tests: int


def search(local: Local, alpha: float = 0.05) -> TrendSearch:
    """All patterns of failures that are more than chance.

    >>> table = np.array([[[[95, 1, 2, 2], [1, 60, 38, 1], [2, 2, 95, 1], [1, 2, 2, 95]]]])
    >>> local = Local.from_counts("abcd", ["fog"], [[1]], table)
    >>> [(one.kind, one.classes, one.answer) for one in search(local).patterns]
    [('confusion', (1,), 2)]
    """
    confused, failing = confusion_tests(local), class_tests(local, _failures(local))
    wrong = wrong_answers(local)
    confusions = _patterns(local, "confusion", _holm_both(confused, failing)[0], alpha, wrong)
    named = union(local, confusions)
    # What is named already is taken from the class, but not from what chance gives it: p-values can only rise.
    failing = class_tests(local, _failures(local), _failures(local, ~named))
    classes = _patterns(local, "class", _holm_both(confused, failing)[1][..., None], alpha, wrong & ~named)
    tests = int((~np.isnan(confused)).sum() + (~np.isnan(failing)).sum())
    return TrendSearch((*_merged(local, confusions), *classes), tests)


def wrong_answers(local: Local) -> Mask:
    """Every answer but the class's own, in every cell that was measured."""
    others = ~np.eye(len(local.classes), len(local.outputs), dtype=bool)
    return np.asarray(local.measured[..., None] & others[:, None, None, :])


def counts(local: Local) -> Floats:
    """The confusion as (class, property, severity, output)."""
    return np.moveaxis(local.confusion, 2, 0).astype(np.float64)


def confusion_tests(local: Local) -> Floats:
    """p-values (class, property, severity, output): as many of the cell's failures or more are read as this answer.

    NaN where there is nothing to ask: the right answer, cells without trials, or no more than two answers at all.
    """
    from scipy.special import betainc

    others = len(local.outputs) - 1
    wrong, table = wrong_answers(local), counts(local)
    if others < 2:
        return np.full(table.shape, np.nan)
    failures = np.broadcast_to(_failures(local)[..., None], table.shape)
    # P(at least x of n) is the incomplete beta function, for expected counts, which may be fractions, too.
    tail = np.ones(table.shape)
    some = wrong & (table > 0)
    tail[some] = betainc(table[some], failures[some] - table[some] + 1, 1 / others)
    return np.where(wrong, tail, np.nan)


def class_tests(local: Local, failures: Floats, found: Floats | None = None) -> Floats:
    """p-values (class, property, severity): as many failures or more of all classes' are this class's.

    `found` are the failures to ask about, if not all. NaN where no other class was tried.
    """
    from scipy.stats import hypergeom

    trials = np.rint(local.trials)
    whole, failed = trials.sum(axis=0), np.rint(failures).sum(axis=0)
    asked = np.rint(failures if found is None else found)
    tail = hypergeom.sf(asked - 1, whole, failed, trials)
    return np.where(local.measured & (trials < whole), tail, np.nan)


def _holm_both(confused: Floats, failing: Floats) -> tuple[Floats, Floats]:
    adjusted = holm(np.concatenate([confused.reshape(-1), failing.reshape(-1)]))
    return adjusted[: confused.size].reshape(confused.shape), adjusted[confused.size :].reshape(failing.shape)


def _failures(local: Local, within: Mask | None = None) -> Floats:
    """(class, property, severity): how many answers were wrong, of all or of some."""
    wrong = wrong_answers(local) if within is None else wrong_answers(local) & within
    return np.asarray((counts(local) * wrong).sum(axis=-1))


def _patterns(local: Local, kind: str, adjusted: Floats, alpha: float, allowed: Mask) -> list[Pattern]:
    """A pattern for every class and answer with clear cells, from the first clear severity to the last.

    `adjusted` has the axes (class, property, severity, output), the last of length 1 for a "class" with any answer.
    Only `allowed` answers belong to a pattern.
    """
    clear = adjusted <= alpha
    found = []
    for place, which, answer in np.argwhere(clear.any(axis=2)).tolist():
        places = np.flatnonzero(clear[place, which, :, answer])
        levels = tuple(range(int(places[0]), int(places[-1]) + 1))
        mask = np.zeros(allowed.shape, bool)
        mask[place, which, levels[0] : levels[-1] + 1, slice(None) if kind == "class" else answer] = True
        smallest = float(np.nanmin(adjusted[place, which, :, answer]))
        read_as = None if kind == "class" else answer
        found.append(Pattern(kind, (place,), which, levels, read_as, mask & allowed, smallest))
    return found


def _merged(local: Local, confusions: list[Pattern]) -> list[Pattern]:
    """Most classes read as the same answer under a property are one pattern."""
    groups: dict[tuple[int, int | None], list[Pattern]] = {}
    for one in confusions:
        groups.setdefault((one.which, one.answer), []).append(one)
    found = []
    for (which, answer), group in groups.items():
        others = sum(place != answer for place in range(len(local.classes)))
        if len(group) < max(SINK, others / 2):
            found += group
            continue
        places = tuple(one.classes[0] for one in group)
        levels = tuple(range(min(one.levels[0] for one in group), max(one.levels[-1] for one in group) + 1))
        smallest = min(one.p_value for one in group)
        found.append(Pattern("sink", places, which, levels, answer, union(local, group), smallest))
    return found


def union(local: Local, patterns: Iterable[Pattern]) -> Mask:
    """All answers that belong to any of the patterns."""
    empty = np.zeros((*local.rate.shape, len(local.outputs)), bool)
    return np.asarray(np.any([empty, *(one.mask for one in patterns)], axis=0))
