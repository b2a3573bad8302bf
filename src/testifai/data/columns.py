"""Which columns of a table hold the texts and the labels: as told, or told from their names."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from testifai.errors import InputError, suggest

TEXTS = frozenset({
    "text", "sentence", "question", "content", "review", "comment", "tweet", "message", "document", "utterance",
    "query", "input", "prompt", "passage",
})  # fmt: skip
LABELS = frozenset({
    "label", "labels", "is_duplicate", "class", "target", "category", "sentiment", "gold_label", "intent", "polarity",
    "y",
})  # fmt: skip
# Pairs of columns that go together and are not named alike but for a last 1 and 2, or a and b.
PAIRS = (("premise", "hypothesis"), ("question", "sentence"), ("question", "passage"), ("query", "passage"))
ENDINGS = (("1", "2"), ("_a", "_b"))
# A first line that is no name is a text: the file has no line of names.
_NAME = re.compile(r"\w[\w.-]*( [\w.-]+){0,2}")


@dataclass(frozen=True)
class Columns:
    """The columns to read: one of texts, or two for pairs; and that of the labels, where there is one."""

    text: tuple[str, ...]
    label: str | None


def choose(names: Sequence[str], text: str | Sequence[str] | None, label: str | None, file: str) -> Columns:
    """The columns meant; an InputError that says which there are, where that cannot be told.

    >>> choose(["id", "question1", "question2", "is_duplicate"], None, None, "pairs.csv")
    Columns(text=('question1', 'question2'), label='is_duplicate')
    """
    given = _given(text)
    for field, name in [*(("text", name) for name in given), ("label", label)]:
        if name is not None:
            _check_known(field, name, names, file)
    if label is not None and label in given:
        raise InputError(f"data: {file}: column {label!r} cannot be both text and label")
    chosen = label or _guessed_label(names, given, file)
    return Columns(given or _guessed_text(names, chosen, file), chosen)


def _given(text: str | Sequence[str] | None) -> tuple[str, ...]:
    if text is None:
        return ()
    names = (text,) if isinstance(text, str) else tuple(text)
    if len(names) not in (1, 2) or not all(isinstance(name, str) for name in names):
        raise InputError(f"data: text = {text!r} is not accepted; give one column, or two for pairs of texts")
    return names


def _check_known(field: str, name: str, names: Sequence[str], file: str) -> None:
    if name not in names:
        raise InputError(f"data: {file} has no column {name!r} for {field}; {suggest(name, names)}")
    if list(names).count(name) > 1:
        raise InputError(f"data: {file} has several columns {name!r}; rename all but one of them")


def _guessed_label(names: Sequence[str], taken: Sequence[str], file: str) -> str | None:
    found = [name for name in names if name.lower() in LABELS and name not in taken]
    if len(found) > 1:
        raise _unclear("label", "labels", names, file)
    return found[0] if found else None


def _guessed_text(names: Sequence[str], label: str | None, file: str) -> tuple[str, ...]:
    """The only columns that can be meant: a pair, one of a usual name, or the one that is left."""
    _check_separated(names, file)
    rest = [name for name in names if name != label and not is_number(name)]
    pairs = _pairs(rest)
    texts = [name for name in rest if name.lower() in TEXTS and not any(name in pair for pair in pairs)]
    found: list[tuple[str, ...]] = [*pairs, *((name,) for name in texts)]
    if not found and len(rest) == 1 and _NAME.fullmatch(rest[0]):
        found = [(rest[0],)]
    if len(found) != 1 or any(list(names).count(name) > 1 for name in found[0]):
        raise _unclear("text", "texts", names, file)
    return found[0]


def _check_separated(names: Sequence[str], file: str) -> None:
    """A line of names with another separator looks like one long name."""
    for separator, word in ((";", "semicolons"), ("\t", "tabs"), (",", "commas"), ("|", "bars")):
        if len(names) == 1 and separator in names[0]:
            raise InputError(
                f"data: {file}: its columns seem to be separated by {word}; accepted: commas in a .csv file, "
                "tabs in a .tsv file"
            )


def _pairs(names: Sequence[str]) -> list[tuple[str, str]]:
    lower = {name.lower(): name for name in names}
    alike = [
        (name, name[: -len(one)] + other)
        for name in lower
        for one, other in ENDINGS
        if name.endswith(one) and name != one
    ]
    return [(lower[one], lower[other]) for one, other in [*alike, *PAIRS] if one in lower and other in lower]


def is_number(name: str) -> bool:
    """Whether a column's name is that of a number of the row or of its texts (id, idx, qid1), or none at all."""
    bare = name.lower().rstrip("12")
    return bare in ("", "index", "idx", "id", "guid", "uid", "qid") or bare.endswith("_id")


def _unclear(field: str, what: str, names: Sequence[str], file: str) -> InputError:
    listing = ", ".join(name if len(name) <= 40 else name[:39] + "…" for name in names[:20])
    more = f", … {len(names)} in all" if len(names) > 20 else ""
    return InputError(
        f"data: {file}: which column holds the {what} is not clear; set {field} "
        f"(columns, as the first line names them: {' '.join(listing.split())}{more})"
    )
