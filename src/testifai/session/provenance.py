"""The files that a run's model and data were read from, by their SHA-256: what `sha256sum` of anyone says too."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from testifai.data import Data
from testifai.errors import InputError
from testifai.identity.input_hashes import contents_of
from testifai.runs import keys
from testifai.runs.store import Store
from testifai.session.session import Session
from testifai.session.stored_runs import source
from testifai.spec.parsing import Spec, parse
from testifai.support.files import sha256
from testifai.support.options_base import Part
from testifai.support.remote import RemoteFolder
from testifai.support.types import Record, RecordLike
from testifai.tomogram import Tomogram

MOST_NAMES, MOST_CHARACTERS = 3, 40
HASH = re.compile("[0-9a-f]{12}[0-9a-f-]*")


@dataclass(frozen=True)
class Made:
    """A model or a data set: the files and code that the spec names, and the fingerprint of the run's identity."""

    names: tuple[str, ...]
    fingerprint: str
    unnamed: str = "handed over in Python"  # what is said where there is no name

    def __str__(self) -> str:
        """In short.

        >>> str(Made(("net.onnx",), "04e19832a97320c5b194")), str(Made((), "my model"))
        ('net.onnx (04e19832a973)', 'handed over in Python (my model)')
        """
        rest = len(self.names) - MOST_NAMES
        words = ", ".join(self.names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
        known = self.fingerprint[: 12 if HASH.fullmatch(self.fingerprint) else MOST_CHARACTERS]
        return f"{words or self.unnamed} ({known})"

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {"named": list(self.names), "fingerprint": self.fingerprint}


def sources(provenance: RecordLike) -> dict[str, Made]:
    """What is known of a run's `model` and `data`; what its file does not tell is left out. Nothing is loaded."""
    identity = provenance.get(keys.IDENTITY) or {}
    named = _named(provenance.get(keys.SPEC))
    return {part: Made(fingerprint=str(identity[part]), **named[part]) for part in named if part in identity}


def _named(stored: Any) -> dict[str, Record]:
    """The names of both parts in a stored spec, where there is one that can be read."""
    if stored is None:
        return {"model": {"names": ()}, "data": {"names": ()}}
    try:
        spec = parse(stored)
    except InputError:
        unknown = {"names": (), "unnamed": "of a spec that cannot be read here"}
        return {"model": unknown, "data": unknown}
    return {"model": {"names": tuple(spec.model.named())}, "data": {"names": tuple(spec.data.named())}}


MOST = 1000  # files of a model's folder

Hashes = dict[str, list[Record]]


def about(spec: Spec, folder: Path, data: Data) -> Record:
    """What a run file says of the spec it was made from, and of the files that this names."""
    return {**spec.about(folder), keys.HASHES: hashes(spec, folder, data)}


def hashes(spec: Spec, folder: Path, data: Data) -> Hashes:
    """Name, size and SHA-256 of every file of the model and of the data.

    Data in a folder, and those too large to be read whole before a run, are told by their fingerprint alone.
    """
    model = [_hash(name, file) for name, file in _files(spec.model, folder, folders=True)]
    whole = contents_of(data) is None
    told = [_hash(name, file) for name, file in _files(spec.data, folder, folders=False)] if whole else []
    return {"model": model, "data": told}


def changed(tomogram: Tomogram, spec: Path | None = None) -> list[str]:
    """A line for each file that is there and is another one than was run; none where it may not be looked for."""
    recorded: RecordLike = tomogram.provenance.get(keys.HASHES) or {}
    lines = []
    with suppress(InputError):  # of what cannot be looked at, whoever shows failing inputs says why
        for part in (part for part in ("model", "data") if recorded.get(part)):
            found = source(tomogram, spec)
            there: dict[str, list[Path]] = {}
            for name, file in _files(getattr(found.spec, part), found.folder, folders=part == "model"):
                there.setdefault(name, []).append(file)
            lines += [line for one in recorded[part] if (line := _another(one, there.get(one["name"], [])))]
    return lines


def _another(known: RecordLike, there: Sequence[Path]) -> str | None:
    """What is to be said of the files that now have a name, where none of them is the one that was run."""
    now = [sha256(file) for file in there]
    if not now or known["sha256"] in now:
        return None
    was = known["sha256"][:12]
    return f"{known['name']} is not the file that was run: its SHA-256 was {was}…, and is {now[0][:12]}… now"


def _files(part: Part, folder: Path, *, folders: bool) -> Iterator[tuple[str, Path]]:
    """The files that exist, by their names; those of a folder by its name and theirs, if they are wanted."""
    for named in part.files(folder):
        if isinstance(named, RemoteFolder):
            continue
        if named.is_file():
            yield named.name, named
        elif folders and named.is_dir():
            within = [file for file in sorted(named.rglob("*")) if file.is_file() and not _hidden(file, named)]
            yield from ((f"{named.name}/{file.relative_to(named).as_posix()}", file) for file in within[:MOST])


def _hidden(file: Path, folder: Path) -> bool:
    return any(part.startswith(".") for part in file.relative_to(folder).parts)


def _hash(name: str, file: Path) -> Record:
    return {"name": name, "bytes": file.stat().st_size, "sha256": sha256(file)}


LONGEST = 200  # characters of a name


@contextmanager
def noted(by: str | None, session: Session, path: Path) -> Iterator[None]:
    """While this lasts the session runs; then its file says who ran it, from when to when, and how far.

    An interrupted run says so too; one that failed does not. Without a name, nothing is written.
    """
    if by is None:
        yield
        return
    name, started = _checked(by), _now()
    try:
        yield
    except KeyboardInterrupt:
        _note(path, name, started, session.outcomes.total())
        raise
    _note(path, name, started, session.outcomes.total())


def _note(path: Path, name: str, started: str, inferences: int) -> None:
    entry = {"by": name, "started": started, "ended": _now(), "inferences": inferences}
    with Store.create_or_open(path) as store:
        store.put(**{keys.RAN: [*(store.get(keys.RAN) or []), entry]})


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())


def _checked(by: str) -> str:
    name = by.strip()
    if not name or len(name) > LONGEST or not name.isprintable():
        raise InputError(f"--run-by: expected one line of up to {LONGEST} characters, got {by!r}")
    return name
