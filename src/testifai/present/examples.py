"""Inputs as a configuration perturbs them, next to the originals, for people to look at."""

from __future__ import annotations

import difflib
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.data.image_io import as_image, data_uri
from testifai.data.table_columns import Table
from testifai.engine.subject import Subject
from testifai.oracles import predicted
from testifai.present.overlays import LEGENDS, drawn
from testifai.tomogram import Tomogram

MOST_TEXT = 400  # characters of a text that are shown
AROUND = 60  # characters shown on either side of an edit, where the text is longer
MOST_COMPARED = 20_000  # characters: what is compared of a very long text
MOST_PARTS = 600  # words, spaces and signs of a text that are shown with its edits in it
SAME, TAKEN, PUT = "same", "taken", "put"
WORDS = re.compile(r"\w+|\s+|.", re.DOTALL)


class Piece(NamedTuple):
    """A stretch of a text; `edited` if the other version does not have it."""

    text: str
    edited: bool = False


def marked(original: str, changed: str) -> tuple[tuple[Piece, ...], tuple[Piece, ...]]:
    """Both texts in pieces, word by word; of long ones, the surroundings of the edits."""
    one, two = (WORDS.findall(text[:MOST_COMPARED]) for text in (original, changed))
    found: tuple[list[Piece], list[Piece]] = [], []
    for taken, put, edited in _stretches(one, two):
        for pieces, words in zip(found, (taken, put), strict=True):
            if words:
                pieces.append(Piece(words, edited))
    left, right = (_shortened(pieces) for pieces in found)
    return left, right


def edits(original: str, changed: str) -> list[tuple[str, str]]:
    """The changed text in pieces: those that are the same, taken out, put in."""
    old, new = WORDS.findall(original), WORDS.findall(changed)
    cut = max(len(old), len(new)) > MOST_PARTS
    pieces: list[tuple[str, str]] = []
    for taken, put, edited in _stretches(old[:MOST_PARTS], new[:MOST_PARTS]):
        pieces += [(TAKEN, taken), (PUT, put)] if edited else [(SAME, put)]
    pieces = [(kind, words) for kind, words in pieces if words]
    return [*pieces, (SAME, " …")] if cut else pieces


def _stretches(old: Sequence[str], new: Sequence[str]) -> Iterator[tuple[str, str, bool]]:
    """Stretches of the old text with those of the new one, and whether the two differ."""
    for kind, start, end, begin, stop in difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes():
        yield "".join(old[start:end]), "".join(new[begin:stop]), kind != "equal"


def _shortened(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    if sum(len(piece.text) for piece in pieces) <= MOST_TEXT:
        return tuple(pieces)
    kept = []
    for place, piece in enumerate(pieces):
        text = piece.text
        if not piece.edited and len(text) > 2 * AROUND:
            before = text[:AROUND] if place else ""
            after = text[-AROUND:] if place < len(pieces) - 1 else ""
            # A text without any edit begins as it does.
            text = f"{before} … {after}" if before or after else text
        kept.append(Piece(text, piece.edited))
    return _limited(kept)


def _limited(pieces: Sequence[Piece]) -> tuple[Piece, ...]:
    left, kept = MOST_TEXT, []
    for piece in pieces:
        if len(piece.text) > left:
            kept.append(Piece(piece.text[: max(left - 1, 0)] + "…", piece.edited))
            break
        kept.append(piece)
        left -= len(piece.text)
    return tuple(kept)


LARGEST = 112  # pixels of a thumbnail's longer side
SMALL = 64  # pixels up to which every one of them is kept as it is
MOST_COLUMNS = 12  # of a row of a table that are shown


@dataclass(frozen=True)
class Thumb:
    """One input to look at: a picture as a data address, or text, one or two, with differing pieces marked."""

    picture: str | None = None
    text: str | None = None
    pieces: tuple[tuple[Piece, ...], ...] = ()


@dataclass(frozen=True)
class Case:
    """One input under one configuration. `label` and `predicted` are None if there are no classes."""

    number: int  # of the input in the data
    original: Any  # a `Thumb` in examples
    changed: Any
    label: str | None
    predicted: str | None
    passed: bool | None  # None if this input was not tried under this configuration
    note: str | None = None  # what was found on an image, which then is shown with it


@dataclass(frozen=True)
class Failures:
    """Some of the inputs that fail a test."""

    test: int
    title: str
    why: str  # this test is shown
    failed: int
    trials: int
    examples: tuple[Case, ...]
    legend: str | None = None  # what the marks on them mean


def telling_tests(tomogram: Tomogram, count: int = 3) -> list[tuple[int, str]]:
    """Informative tests, with the reason: the worst that have failures, and the mildest that have any."""
    ids = tomogram.estimator.measured_ids
    passes, trials = tomogram.outcomes.plain().counts(ids)
    ids = ids[(trials > passes) & (ids > 0)]
    estimate = tomogram.estimator.table(ids).estimate
    total = tomogram.space.matrix(ids)[:, : len(tomogram.space.axes)].sum(axis=1)
    worst = ids[np.argsort(estimate, kind="stable")][:count].tolist()
    mild = [test for test in ids[np.lexsort((estimate, total))].tolist() if test not in worst][:count]
    reasons = {"one of the mildest tests that fail": mild, "one of the worst": worst}
    return [(test, why) for why, tests in reasons.items() for test in tests]


def failing_places(tomogram: Tomogram, test: int, count: int) -> NDArray[np.intp]:
    """The first inputs, by their place in the visiting order, that fail a test."""
    places = np.arange(tomogram.outcomes.inputs)
    tried = tomogram.outcomes.attempted(test, places)
    return np.asarray(places[tried & ~tomogram.outcomes.passed(test, places)][:count])


def failures(subject: Subject, tomogram: Tomogram, *, tests: int = 3, each: int = 6) -> tuple[Failures, ...]:
    """Failing inputs of informative tests."""
    found = []
    for test, why in telling_tests(tomogram, tests):
        passes, trials = (int(counts[0]) for counts in tomogram.outcomes.plain().counts([test]))
        sigma = tomogram.space.configuration(test)
        shown = examples(subject, tomogram, test, failing_places(tomogram, test, each))
        title, marked = tomogram.space.words(sigma), legend(subject)
        found.append(Failures(test, title, why, trials - passes, trials, shown, marked))
    return tuple(found)


def legend(subject: Subject) -> str | None:
    """The meaning of the marks on images, if there are any."""
    return LEGENDS.get(type(subject.oracle))


def examples(subject: Subject, tomogram: Tomogram, test: int, places: NDArray[np.intp]) -> tuple[Case, ...]:
    """Inputs at some places of the visiting order, to look at, with the model's predictions."""
    table = subject.data.schema
    shown = []
    for case in cases(subject, tomogram, test, places):
        if case.note is not None:  # an image with text on it, shown in its full size
            images = (case.original, case.changed)
            both = [Thumb(picture=data_uri(image, max(image.shape), SMALL)) for image in images]
        elif table is None:
            both = list(thumbs(case.original, case.changed))
        else:
            both = list(row_thumbs(table, case.original, case.changed))
        shown.append(replace(case, original=both[0], changed=both[1]))
    return tuple(shown)


def cases(subject: Subject, tomogram: Tomogram, test: int, places: NDArray[np.intp]) -> list[Case]:
    """Inputs at some places of the visiting order, as a test perturbs them, with the model's predictions."""
    originals = subject.batch(places)
    changed = subject.composite(tomogram.space.configuration(test), places)
    classes = predicted(subject.infer(changed, test)) if subject.oracle.decides_classes else None
    tried = tomogram.outcomes.attempted(test, places)
    passed = tomogram.outcomes.passed(test, places)
    labels = None if subject.labels is None or classes is None else subject.labels
    pictures = drawn(subject, test, places, originals, changed, partial(class_name, subject))
    return [
        Case(
            number=number,
            original=originals[row] if pictures is None else pictures[row].original,
            changed=changed[row] if pictures is None else pictures[row].changed,
            note=None if pictures is None else pictures[row].note,
            label=None if labels is None else class_name(subject, int(labels[number])),
            predicted=None if classes is None else class_name(subject, int(classes[row])),
            passed=bool(passed[row]) if tried[row] else None,
        )
        for row, number in enumerate(subject.order[places].tolist())
    ]


def class_name(subject: Subject, number: int) -> str:
    """The name of a class in the data or, if the model numbers its own, in the model."""
    values = subject.model.class_values
    names = subject.data.classes if values is None else values
    return str(names[number]) if names is not None and 0 <= number < len(names) else str(number)


def thumbs(original: Any, changed: Any) -> tuple[Thumb, Thumb]:
    """Both versions of an input; of texts, with the edits marked."""
    one, two = (texts_of(version) for version in (original, changed))
    if not one or len(one) != len(two):
        return thumb(original), thumb(changed)
    left, right = zip(*(marked(*both) for both in zip(one, two, strict=True)), strict=True)
    return _shown(left), _shown(right)


def row_thumbs(table: Table, original: Any, changed: Any) -> tuple[Thumb, Thumb]:
    """Both versions of a row of a table, a line for each column; of many columns, those that differ first."""
    differs = ~((original == changed) | (np.isnan(original) & np.isnan(changed)))
    order = np.argsort(~differs, kind="stable")[:MOST_COLUMNS]
    shown = np.sort(order) if len(differs) <= MOST_COLUMNS else order
    columns = [table.columns[place] for place in shown.tolist()]
    versions = [
        tuple(
            (Piece(f"{column.name} "), Piece(column.word(row[place]), bool(differs[place])))
            for place, column in zip(shown.tolist(), columns, strict=True)
        )
        for row in (original, changed)
    ]
    return _shown(versions[0]), _shown(versions[1])


def thumb(one: Any) -> Thumb:
    """An input as something to look at."""
    if texts := texts_of(one):
        return _shown(tuple(_limited([Piece(text)]) for text in texts))
    array = np.asarray(one)
    image = as_image(array)
    if image is not None:
        return Thumb(picture=data_uri(image, LARGEST, SMALL))
    numbers = array.reshape(-1)
    shown = ", ".join(f"{number:.4g}" for number in numbers[:16].tolist())
    return Thumb(text=shown + (", …" if numbers.size > 16 else ""))


def texts_of(one: Any) -> tuple[str, ...]:
    """A text or a pair of them; nothing for other inputs."""
    if isinstance(one, str):
        return (one,)
    return one if isinstance(one, tuple) and all(isinstance(part, str) for part in one) else ()


def _shown(pieces: tuple[tuple[Piece, ...], ...]) -> Thumb:
    return Thumb(text="\n".join("".join(piece.text for piece in text) for text in pieces), pieces=pieces)
