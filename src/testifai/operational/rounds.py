"""The files of a selection: written a round at a time, found again when they come back.

`to_label.csv` goes out to be filled in, with `to_label.inputs.zip` for `testifai label page` and, of images,
`to_label.html` to look at; `to_label.selection.npz` stays and knows the rest. A technique that looks at labels
before it asks for more gets `to_label.2.csv` and so on. Nothing that exists is ever overwritten.
"""

from __future__ import annotations

import itertools
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from testifai import models
from testifai.data import Data
from testifai.data.image_files import ImageFiles
from testifai.errors import InputError
from testifai.operational import input_previews, label_file
from testifai.operational.input_previews import inputs_path
from testifai.operational.label_file import ID, LABEL, SELECTION, WHERE, selection_of, write_new
from testifai.operational.selection import SUFFIX, LabellingProgress, LabelSelection, data_fingerprint, read
from testifai.support.types import RecordLike


@dataclass(frozen=True)
class Written:
    number: int
    path: Path
    sheet: Path | None
    examples: int


@dataclass(frozen=True, eq=False)
class Collected:
    selection: LabelSelection
    labels: dict[int, int]
    examples: frozenset[int]
    where: dict[int, str] = field(default_factory=dict)
    files: Mapping[int, Path] = field(default_factory=dict)  # with the row of each example

    def failed(self) -> dict[int, bool]:
        predicted = self.selection.frame.predicted
        assert predicted is not None
        return {example: bool(predicted[example] != label) for example, label in self.labels.items()}

    @cached_property
    def standing(self) -> LabellingProgress:
        return self.selection.replay(self.failed())

    @property
    def rounds(self) -> int:
        """How many rounds went out, whatever files their rows are in now."""
        standing = self.standing
        out = [not self.examples.isdisjoint(standing.new_in(batch)) for batch in range(len(standing.batches))]
        return out.index(False) if False in out else len(out)


def selection_path(out: Path) -> Path:
    return out.with_name(out.stem + SUFFIX)


def round_path(out: Path, number: int) -> Path:
    return out if number == 1 else out.with_name(f"{out.stem}.{number}{out.suffix}")


def sheet_path(path: Path) -> Path:
    return path.with_suffix(".html")


def check_out(out: Path) -> None:
    if out.suffix.lower() != ".csv":
        raise InputError(f"out: {out.name!r} is not accepted; a name that ends in .csv is")
    if not out.parent.is_dir():
        raise InputError(f"out: the folder {out.parent} does not exist")
    for place in (sheet_path(out), inputs_path(out)):
        if place.exists() and not selection_path(out).exists():
            raise InputError(f"out: {place} exists and is never overwritten; choose another name with -o")


def write_first(selection: LabelSelection, data: Data, out: Path, known: Mapping[int, int] | None = None) -> Written:
    """Write the first round, and beside it the selection; `known` labels are filled in already."""
    place = selection_path(out)
    if place.exists() and read(place).tag != selection.tag:
        raise InputError(
            f"out: {place} belongs to another selection and is never overwritten; choose another name with -o"
        )
    return _write(selection, selection.replay({}), data, out, 1, known or {})


def write_next(collected: Collected, data: Data, out: Path, known: Mapping[int, int] | None = None) -> Written:
    standing = collected.standing
    number = collected.rounds + 1
    if standing.complete:
        raise InputError(
            f"out: {out} exists and has all its labels (testifai label estimate {out}); for another selection choose "
            "name with -o"
        )
    if len(standing.batches) < number:
        empty = [example for batch in standing.batches for example in batch.tolist() if example not in collected.labels]
        raise InputError(
            f"out: {out} exists and waits for labels: {len(set(empty))} are empty, the first is id {empty[0]}; "
            f"fill it in (testifai label page {collected.files[empty[0]]}), or choose another name with -o"
        )
    return _write(collected.selection, standing, data, out, number, known or {})


def continued(out: Path, described: RecordLike, tests: int, seed: int, model: Any, data: Data) -> Collected:
    """The selection whose first round exists already, if what is asked for now is the same."""
    place = selection_path(out)
    if not place.is_file():
        raise InputError(f"out: {out} exists and is never overwritten; choose another name with -o")
    stored = read(place)
    asked = {
        "technique": (dict(stored.described), dict(described)),
        "tests": (stored.tests, tests),
        "seed": (stored.seed, seed),
        "model": (stored.model, models.wrap(model).fingerprint),
        "data": (stored.data, data_fingerprint(data)),
    }
    for name, (before, now) in asked.items():
        if before != now:
            change = f"{name} was {before}, now {now}" if name in ("tests", "seed", "technique") else f"another {name}"
            raise InputError(f"out: {out} belongs to another selection ({change}); choose another name with -o")
    return collect([out], place)


def collect(paths: Sequence[Path], selection_file: Path | None = None) -> Collected:
    """Read filled files back; further rounds beside the first file are found without being named."""
    place = selection_file or _find_selection(paths[0])
    selection = read(place)
    out = place.with_name(place.name.removesuffix(SUFFIX) + ".csv")
    files: list[label_file.Filled] = []
    given = {path.resolve() for path in paths}
    beside = itertools.takewhile(Path.is_file, (round_path(out, number) for number in itertools.count(1)))
    for path in [*paths, *(one for one in beside if one.resolve() not in given)]:
        _check_tag(path, selection, place)
        found = label_file.read_filled(path, selection.classes)
        # The original of a round is passed over if a copy was given.
        if path in paths or not any(found.examples & one.examples for one in files):
            files.append(found)
    labels: dict[int, int] = {}
    where: dict[int, str] = {}
    holder: dict[int, Path] = {}
    for one in files:
        for example in sorted(one.examples):
            if example in holder:
                raise InputError(f"{one.path.name}: id {example} is in {holder[example].name} too; keep one of them")
            holder[example] = one.path
        labels |= one.labels
        where |= one.where
    collected = Collected(selection, labels, frozenset(holder), where, holder)
    asked = {int(example) for batch in collected.standing.batches for example in batch}
    for one in files:
        strange = sorted(one.examples - asked)
        if strange:  # its label would be lost without a word
            raise InputError(
                f"{one.path.name}: id {strange[0]} ({len(strange)} in all) is not among the examples of the selection; "
                "leave the ids as they are"
            )
    return collected


def _check_tag(path: Path, selection: LabelSelection, place: Path) -> None:
    tag = selection_of(path)
    if tag is not None and tag != selection.tag:
        raise InputError(
            f"{path.name}: belongs to selection {tag!r}, but {place.name} is {selection.tag!r}; "
            "name its own with --selection"
        )


def selection_for(path: Path, place: Path | None = None) -> LabelSelection:
    """The selection that a file to fill in belongs to, found beside it unless its place is named."""
    place = place or _find_selection(path)
    selection = read(place)
    _check_tag(path, selection, place)
    return selection


def _find_selection(path: Path) -> Path:
    """The selection of a filled file: the one named alike, else the one beside it that the rows name."""
    stem = re.sub(r"\.\d+$", "", path.stem)
    tag = selection_of(path)
    named = [path.with_name(name + SUFFIX) for name in dict.fromkeys((path.stem, stem))]
    others = sorted(path.parent.glob("*" + SUFFIX)) if tag is not None else []
    existing = [place for place in (*named, *others) if place.is_file()]
    for place in existing:
        if tag is None or read(place).tag == tag:
            return place
    wanted = f"selection {tag!r}" if tag is not None else named[0].name
    raise InputError(f"{path.name}: its {wanted} is not beside it; name the file that select wrote with --selection")


def _write(
    selection: LabelSelection, standing: LabellingProgress, data: Data, out: Path, number: int, known: Mapping[int, int]
) -> Written:
    path, examples = round_path(out, number), standing.new_in(number - 1)
    places = [f"{data.name}[{example}]" for example in examples]
    if isinstance(data.inputs, ImageFiles):
        places = [Path(data.name, data.inputs.files.names[example]).as_posix() for example in examples]
    opinions = [selection.opinion(example) for example in examples]
    sheet = None
    if input_previews.have_pictures(data):
        sheet = sheet_path(path)
        images = map(input_previews.thumbnail, input_previews.pictures(data, examples))
        cards = [
            input_previews.Card(example, image, *opinion, place)
            for example, image, opinion, place in zip(examples, images, opinions, places, strict=True)
        ]
        title = f"{len(examples)} examples of {data.name} to label"
        write_new(sheet, input_previews.page(title, path.name, cards, selection.classes.names or ()))
    # Before the table: rows without their selection would be of no use.
    if not selection_path(out).exists():
        write_new(selection_path(out), selection.save())
    write_new(inputs_path(path), input_previews.packed(selection.tag, data, examples))
    shown = input_previews.cells(data, examples)
    header = [ID, WHERE, *(["input"] if shown else []), "predicted", "confidence", LABEL, SELECTION]
    rows: list[list[object]] = []
    for row, (example, (predicted, sure)) in enumerate(zip(examples, opinions, strict=True)):
        label = selection.classes.text(known[example]) if example in known else ""
        confidence = "" if sure is None else f"{sure:.4f}"
        rows.append([example, places[row], *shown[row : row + 1], predicted, confidence, label, selection.tag])
    write_new(path, label_file.table(header, rows))
    return Written(number, path, sheet, len(examples))
