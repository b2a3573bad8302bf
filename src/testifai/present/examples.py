"""Inputs as a configuration shows them to the model, beside the originals: what a failure looks like."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.engine.subject import Subject
from testifai.oracles import predicted
from testifai.present.drawn import LEGENDS, drawn
from testifai.present.edits import Piece, marked, unmarked
from testifai.support.images import as_image, data_uri
from testifai.support.tables import Table
from testifai.tomogram import Tomogram

LARGEST = 112  # pixels of a thumbnail's longer side
SMALL = 64  # pixels up to which every one of them is kept as it is
MOST_COLUMNS = 12  # of a row of a table that are shown


@dataclass(frozen=True)
class Thumb:
    """One input to look at: a picture as a data address, or text; a pair of texts has a line for each.

    `pieces` are its texts, one or two, with what differs from the other version of the input marked.
    """

    picture: str | None = None
    text: str | None = None
    pieces: tuple[tuple[Piece, ...], ...] = ()


@dataclass(frozen=True)
class Case:
    """One input under one configuration. `label` and `predicted` are None where there are no classes."""

    number: int  # of the input in the data
    original: Any
    changed: Any
    label: str | None
    predicted: str | None
    passed: bool | None  # None where this input was not tried under this configuration
    note: str | None = None  # what was found on a photograph, which then is shown with it


@dataclass(frozen=True)
class Example(Case):
    """A case to look at."""

    original: Thumb
    changed: Thumb


@dataclass(frozen=True)
class Failures:
    """Some of the inputs that fail a test."""

    test: int
    title: str
    why: str  # this test is shown
    failed: int
    trials: int
    examples: tuple[Example, ...]
    legend: str | None = None  # what the marks on them mean


def telling_tests(tomogram: Tomogram, count: int = 3) -> list[tuple[int, str]]:
    """Tests whose failures say most, with why: the worst that have failures, and the mildest that have any."""
    ids = tomogram.measured_ids
    passes, trials = tomogram.outcomes.plain().counts(ids)
    ids = ids[(trials > passes) & (ids > 0)]
    estimate = tomogram.table(ids).estimate
    total = tomogram.space.matrix(ids)[:, : len(tomogram.space.axes)].sum(axis=1)
    worst = ids[np.argsort(estimate, kind="stable")][:count].tolist()
    mild = [test for test in ids[np.lexsort((estimate, total))].tolist() if test not in worst][:count]
    return [
        *((test, "one of the mildest tests that fail") for test in mild),
        *((test, "one of the worst") for test in worst),
    ]


def failing_places(tomogram: Tomogram, test: int, count: int) -> NDArray[np.intp]:
    """The first inputs, by their place in the visiting order, that fail a test."""
    places = np.arange(tomogram.outcomes.inputs)
    tried = tomogram.outcomes.attempted(test, places)
    return np.asarray(places[tried & ~tomogram.outcomes.passed(test, places)][:count])


def failures(subject: Subject, tomogram: Tomogram, *, tests: int = 3, each: int = 6) -> tuple[Failures, ...]:
    """Failing inputs of telling tests; nothing where nothing fails."""
    found = []
    for test, why in telling_tests(tomogram, tests):
        passes, trials = (int(counts[0]) for counts in tomogram.outcomes.plain().counts([test]))
        sigma = tomogram.space.configuration(test)
        shown = examples(subject, tomogram, test, failing_places(tomogram, test, each))
        title, marked = tomogram.space.words(sigma), legend(subject)
        found.append(Failures(test, title, why, trials - passes, trials, shown, marked))
    return tuple(found)


def legend(subject: Subject) -> str | None:
    """What the marks on photographs mean, where there are any."""
    return LEGENDS.get(type(subject.oracle))


def examples(subject: Subject, tomogram: Tomogram, test: int, places: NDArray[np.intp]) -> tuple[Example, ...]:
    """Inputs at some places of the visiting order, to look at, with what the model makes of them."""
    return tuple(
        Example(case.number, *_both(case, subject.data.schema), case.label, case.predicted, case.passed, case.note)
        for case in cases(subject, tomogram, test, places)
    )


def _both(case: Case, table: Table | None) -> tuple[Thumb, Thumb]:
    if case.note is not None:
        return photograph(case.original), photograph(case.changed)
    return thumbs(case.original, case.changed) if table is None else row_thumbs(table, case.original, case.changed)


def cases(subject: Subject, tomogram: Tomogram, test: int, places: NDArray[np.intp]) -> list[Case]:
    """Inputs at some places of the visiting order, as a test shows them to the model, with what it makes of them."""
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
    """A class by the name it has in the data or, where the model numbers its own, by the model's."""
    values = subject.model.class_values
    names = subject.data.classes if values is None else values
    return str(names[number]) if names is not None and 0 <= number < len(names) else str(number)


def thumbs(original: Any, changed: Any) -> tuple[Thumb, Thumb]:
    """Both versions of an input; of texts, with the edits marked.

    >>> [thumb.pieces[0][-1] for thumb in thumbs(("same", "a cat"), ("same", "a bat"))]
    [Piece(text='same', edited=False), Piece(text='same', edited=False)]
    >>> [thumb.pieces[1][-1] for thumb in thumbs(("same", "a cat"), ("same", "a bat"))]
    [Piece(text='cat', edited=True), Piece(text='bat', edited=True)]
    """
    one, two = (_texts(version) for version in (original, changed))
    if not one or len(one) != len(two):
        return thumb(original), thumb(changed)
    left, right = zip(*(marked(*both) for both in zip(one, two, strict=True)), strict=True)
    return _shown(left), _shown(right)


def row_thumbs(table: Table, original: Any, changed: Any) -> tuple[Thumb, Thumb]:
    """Both versions of a row of a table, a line for each column; of many columns, those that differ first.

    >>> from testifai.support.tables import Column, learn
    >>> rows = np.array([[30.0, 0.0], [31.0, 0.0]])
    >>> left, right = row_thumbs(learn([Column("age"), Column("sex", "category", ("f", "m"))], rows), *rows)
    >>> left.text, right.text, right.pieces[0]
    ('age 30\\nsex f', 'age 31\\nsex f', (Piece(text='age ', edited=False), Piece(text='31', edited=True)))
    """
    differs = ~((original == changed) | (np.isnan(original) & np.isnan(changed)))
    order = np.argsort(~differs, kind="stable")[:MOST_COLUMNS]
    shown = np.sort(order) if len(differs) <= MOST_COLUMNS else order
    versions = [
        tuple(
            (
                Piece(f"{table.columns[place].name} ", False),
                Piece(table.columns[place].word(row[place]), bool(differs[place])),
            )
            for place in shown.tolist()
        )
        for row in (original, changed)
    ]
    return _shown(versions[0]), _shown(versions[1])


def thumb(one: Any) -> Thumb:
    """An input as something to look at.

    >>> thumb("a text").text, thumb(np.array([0.5, 2.0])).text
    ('a text', '0.5, 2')
    >>> thumb(("a question", "another")).text
    'a question\\nanother'
    >>> thumb(np.zeros((28, 28), np.uint8)).picture[:22]
    'data:image/png;base64,'
    """
    if texts := _texts(one):
        return _shown(tuple(unmarked(text) for text in texts))
    array = np.asarray(one)
    image = as_image(array)
    if image is not None:
        return Thumb(picture=data_uri(image, LARGEST, SMALL))
    numbers = array.reshape(-1)
    shown = ", ".join(f"{number:.4g}" for number in numbers[:16].tolist())
    return Thumb(text=shown + (", …" if numbers.size > 16 else ""))


def photograph(image: NDArray[np.uint8]) -> Thumb:
    """A picture on which there is something to read, as large as it is."""
    return Thumb(picture=data_uri(image, max(image.shape), SMALL))


def _texts(one: Any) -> tuple[str, ...]:
    """A text or a pair of them; nothing where the input is neither."""
    if isinstance(one, str):
        return (one,)
    return one if isinstance(one, tuple) and all(isinstance(part, str) for part in one) else ()


def _shown(pieces: tuple[tuple[Piece, ...], ...]) -> Thumb:
    return Thumb(text="\n".join("".join(piece.text for piece in text) for text in pieces), pieces=pieces)
