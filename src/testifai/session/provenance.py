"""Sources of a run: the files of model and data with their SHA-256, and who ran it."""

from __future__ import annotations

import re
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path

from testifai.data import Data
from testifai.errors import InputError
from testifai.identity.run_identity import contents_of
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
class SourceRecord:
    """The files and code of a model or a data set, and its fingerprint."""

    names: tuple[str, ...]
    fingerprint: str
    unnamed: str = "handed over in Python"  # shown if there are no names

    def __str__(self) -> str:
        """Return at most three names and a part of the fingerprint.

        >>> str(SourceRecord(("net.onnx",), "04e19832a97320c5b194")), str(SourceRecord((), "my model"))
        ('net.onnx (04e19832a973)', 'handed over in Python (my model)')
        """
        rest = len(self.names) - MOST_NAMES
        words = ", ".join(self.names[:MOST_NAMES]) + (f" and {rest} more" if rest > 0 else "")
        known = self.fingerprint[: 12 if HASH.fullmatch(self.fingerprint) else MOST_CHARACTERS]
        return f"{words or self.unnamed} ({known})"

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        return {"named": list(self.names), "fingerprint": self.fingerprint}


def sources(provenance: RecordLike) -> dict[str, SourceRecord]:
    """Return the sources of a run's `model` and `data`, as far as its file contains them; nothing is loaded."""
    identity, stored = provenance.get(keys.IDENTITY) or {}, provenance.get(keys.SPEC)
    names: dict[str, list[str]] = {"model": [], "data": []}
    unnamed = "handed over in Python"
    if stored is not None:
        try:
            spec = parse(stored)
            names = {"model": spec.model.named(), "data": spec.data.named()}
        except InputError:
            unnamed = "of a spec that cannot be read here"
    return {part: SourceRecord(tuple(names[part]), str(identity[part]), unnamed) for part in names if part in identity}


MOST = 1000  # files of a model's folder

Hashes = dict[str, list[Record]]


def about(spec: Spec, folder: Path, data: Data) -> Record:
    """Return the entries of a run file about its spec and the files of the spec."""
    return {**spec.about(folder), keys.HASHES: hashes(spec, folder, data)}


def hashes(spec: Spec, folder: Path, data: Data) -> Hashes:
    """Return name, size and SHA-256 of the files of the model and of the data, except for folders and large data."""
    model = [_hash(name, file) for name, file in _files(spec.model, folder, folders=True)]
    whole = contents_of(data) is None
    told = [_hash(name, file) for name, file in _files(spec.data, folder, folders=False)] if whole else []
    return {"model": model, "data": told}


def changed(tomogram: Tomogram, spec: Path | None = None) -> list[str]:
    """Return a line for each file that has changed since the run."""
    recorded: RecordLike = tomogram.provenance.get(keys.HASHES) or {}
    lines = []
    with suppress(InputError):
        for part in (part for part in ("model", "data") if recorded.get(part)):
            found = source(tomogram, spec)
            there: dict[str, list[Path]] = {}
            for name, file in _files(getattr(found.spec, part), found.folder, folders=part == "model"):
                there.setdefault(name, []).append(file)
            for known in recorded[part]:
                now = [sha256(file) for file in there.get(known["name"], [])]
                if now and known["sha256"] not in now:
                    lines.append(
                        f"{known['name']} is not the file that was run: its SHA-256 was {known['sha256'][:12]}…, "
                        f"and is {now[0][:12]}… now"
                    )
    return lines


def _files(part: Part, folder: Path, *, folders: bool) -> Iterator[tuple[str, Path]]:
    """Return names and paths of existing files, on request also those in folders."""
    for named in part.files(folder):
        if isinstance(named, RemoteFolder):
            continue
        if named.is_file():
            yield named.name, named
        elif folders and named.is_dir():
            within = ((file, file.relative_to(named)) for file in sorted(named.rglob("*")) if file.is_file())
            shown = [(file, path) for file, path in within if not any(part.startswith(".") for part in path.parts)]
            yield from ((f"{named.name}/{path.as_posix()}", file) for file, path in shown[:MOST])


def _hash(name: str, file: Path) -> Record:
    return {"name": name, "bytes": file.stat().st_size, "sha256": sha256(file)}


LONGEST = 200  # characters of a name


@contextmanager
def noted(by: str | None, session: Session, path: Path) -> Iterator[None]:
    """Record in the run file who ran the session in this block, when, and how far; nothing without a name."""
    if by is None:
        yield
        return
    name, started, inferences = by.strip(), _now(), None
    if not name or len(name) > LONGEST or not name.isprintable():
        raise InputError(f"--run-by: expected one line of up to {LONGEST} characters, got {by!r}")
    try:
        yield
        inferences = session.outcomes.total()
    except KeyboardInterrupt:
        inferences = session.outcomes.total()
        raise
    finally:
        if inferences is not None:
            entry = {"by": name, "started": started, "ended": _now(), "inferences": inferences}
            with Store.create_or_open(path) as store:
                store.put(**{keys.RAN: [*(store.get(keys.RAN) or []), entry]})


def _now() -> str:
    return time.strftime("%Y-%m-%d %H:%M:%S UTC", time.gmtime())
