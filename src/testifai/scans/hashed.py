"""The files that a run's model and data were read from, by their SHA-256: what `sha256sum` of anyone says too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any

from testifai.data import Data
from testifai.errors import InputError
from testifai.runs import keys
from testifai.scans.held import contents_of
from testifai.scans.reopen import source
from testifai.scans.spec import Spec
from testifai.support.fields import Part
from testifai.support.files import sha256
from testifai.support.remote import RemoteFolder
from testifai.tomogram import Tomogram

MOST = 1000  # files of a model's folder

Hashes = dict[str, list[dict[str, Any]]]


def about(spec: Spec, folder: Path, data: Data) -> dict[str, Any]:
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
    recorded: Mapping[str, Any] = tomogram.provenance.get(keys.HASHES) or {}
    lines = []
    with suppress(InputError):  # of what cannot be looked at, whoever shows failing inputs says why
        for part in (part for part in ("model", "data") if recorded.get(part)):
            found = source(tomogram, spec)
            there: dict[str, list[Path]] = {}
            for name, file in _files(getattr(found.spec, part), found.folder, folders=part == "model"):
                there.setdefault(name, []).append(file)
            lines += [line for one in recorded[part] if (line := _another(one, there.get(one["name"], [])))]
    return lines


def _another(known: Mapping[str, Any], there: Sequence[Path]) -> str | None:
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


def _hash(name: str, file: Path) -> dict[str, Any]:
    return {"name": name, "bytes": file.stat().st_size, "sha256": sha256(file)}
