"""The image files of a folder, listed by name without a look into them: there may be millions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import NamedTuple, overload

from testifai.data.files import stat_of
from testifai.errors import InputError
from testifai.support.remote import RemoteFolder, version_of

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp")
_THREADS = 16  # that fetch: each waits most of the time


class Listed(Sequence[Path]):
    """Files of a folder by their names within it, parts joined by /; a path is made when it is asked for."""

    def __init__(self, folder: Path, names: Sequence[str]) -> None:
        self.folder, self.names = folder, names

    def __len__(self) -> int:
        return len(self.names)

    @overload
    def __getitem__(self, place: int) -> Path: ...
    @overload
    def __getitem__(self, place: slice) -> Listed: ...
    def __getitem__(self, place: int | slice) -> Path | Listed:
        if isinstance(place, slice):
            return Listed(self.folder, self.names[place])
        return self.folder / self.names[place]

    def sizes(self) -> Iterator[int]:
        """How many bytes each has."""
        return (stat_of(file)[0] for file in self)

    def make_ready(self, places: Iterable[int]) -> None:
        """What is to be read soon; here all files are ready."""


class Fetched(Listed):
    """Files of a folder elsewhere: a path is that of a copy on this machine, fetched when it is asked for."""

    def __init__(self, folder: RemoteFolder, names: Sequence[str], about: Sequence[About]) -> None:
        self.remote, self.names, self._about = folder, names, about

    @overload
    def __getitem__(self, place: int) -> Path: ...
    @overload
    def __getitem__(self, place: slice) -> Fetched: ...
    def __getitem__(self, place: int | slice) -> Path | Fetched:
        if isinstance(place, slice):
            return Fetched(self.remote, self.names[place], self._about[place])
        about = self._about[place]
        return self.remote.file(self.names[place], about.version, about.size)

    def sizes(self) -> Iterator[int]:
        return (about.size or 0 for about in self._about)

    def make_ready(self, places: Iterable[int]) -> None:
        missing = [place for place in places if not self._copy(place).exists()]
        if missing:
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="testifai") as pool:
                list(pool.map(self.__getitem__, missing))

    def _copy(self, place: int) -> Path:
        return self.remote.copy_of(self.names[place], self._about[place].version)


class About(NamedTuple):
    """What tells a file elsewhere from an earlier one of its name."""

    version: str
    size: int | None


@dataclass(frozen=True)
class Images:
    """The images of a folder by name: those right in it, and by class folder those anywhere below it; all sorted."""

    loose: list[str]
    by_class: dict[str, list[str]]
    files: Callable[[list[str]], Listed]  # of these names


def images_elsewhere(folder: RemoteFolder) -> Images:
    """The images of a folder elsewhere."""
    found = folder.listed()
    loose: list[str] = []
    by_class: dict[str, list[str]] = {}
    for name in found:
        parts = name.split("/")
        if parts[-1].lower().endswith(IMAGE_SUFFIXES) and not (parts[0].startswith(".") or parts[-1].startswith(".")):
            (loose if len(parts) == 1 else by_class.setdefault(parts[0], [])).append(name)

    def files(names: list[str]) -> Listed:
        return Fetched(folder, names, [About(version_of(found[name]), found[name].get("size")) for name in names])

    ordered = {name: sorted(by_class[name], key=_by_part) for name in sorted(by_class)}
    return Images(sorted(loose), ordered, files)


def images(folder: Path) -> Images:
    """The images of a folder."""
    loose, classes = [], []
    with _entries(folder) as entries:
        for entry in entries:
            if is_image(entry):
                loose.append(entry.name)
            elif not entry.name.startswith(".") and _holds(entry.is_dir):
                classes.append(entry.name)
    found = {name: _below(folder, name) for name in sorted(classes)}
    by_class = {name: names for name, names in found.items() if names}
    return Images(sorted(loose), by_class, lambda names: Listed(folder, names))


def has_images(folder: Path) -> bool:
    """Whether there is an image in a folder or right in a folder of it."""
    below = []
    with _entries(folder) as entries:
        for entry in entries:
            if is_image(entry):
                return True
            if not entry.name.startswith(".") and _holds(entry.is_dir):
                below.append(entry.name)
    return any(_has_image(folder / name) for name in sorted(below))


def is_image(entry: os.DirEntry[str] | Path) -> bool:
    """Whether an entry of a folder is a file named like an image."""
    named = entry.name.lower().endswith(IMAGE_SUFFIXES) and not entry.name.startswith(".")
    return named and _holds(entry.is_file)


def _has_image(folder: Path) -> bool:
    with _entries(folder) as entries:
        return any(map(is_image, entries))


def _below(root: Path, name: str) -> list[str]:
    """The images of a class folder and of folders in it, but not of links in it, which may lead anywhere."""
    if (root / name).is_symlink() and root.resolve().is_relative_to((root / name).resolve()):
        raise InputError(f"data: {root / name} is a link to a folder that it lies in itself; remove it")
    found, waiting = [], [name]
    while waiting:
        inside = waiting.pop()
        with _entries(root / inside) as entries:
            for entry in entries:
                if is_image(entry):
                    found.append(f"{inside}/{entry.name}")
                elif _holds(lambda here=entry: here.is_dir(follow_symlinks=False)):  # type: ignore[misc]
                    waiting.append(f"{inside}/{entry.name}")
    return sorted(found, key=_by_part)


def _by_part(name: str) -> str:
    """For the order of paths, which compare part by part."""
    return name.replace("/", "\0")


def _holds(question: Callable[[], bool]) -> bool:
    """Whether an entry is a file or a folder; what leads nowhere, or round in circles, is neither."""
    try:
        return question()
    except OSError:
        return False


@contextmanager
def _entries(folder: Path) -> Iterator[Iterator[os.DirEntry[str]]]:
    try:
        with os.scandir(folder) as entries:
            yield entries
    except OSError as error:
        raise InputError(f"data: {folder} cannot be read ({error.strerror})") from None
