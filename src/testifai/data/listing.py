"""The image files of a folder, listed by name without a look into them: there may be millions."""

from __future__ import annotations

import os
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import overload

from testifai.errors import InputError

IMAGE_SUFFIXES = (".png", ".jpg", ".jpeg", ".bmp", ".ppm", ".pgm", ".tif", ".tiff", ".webp")


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


def images(folder: Path) -> tuple[list[str], dict[str, list[str]]]:
    """Names of the images right in a folder, and by class folder those of the images anywhere below it; all sorted."""
    loose, classes = [], []
    with _entries(folder) as entries:
        for entry in entries:
            if is_image(entry):
                loose.append(entry.name)
            elif not entry.name.startswith(".") and _holds(entry.is_dir):
                classes.append(entry.name)
    found = {name: _below(folder, name) for name in sorted(classes)}
    return sorted(loose), {name: names for name, names in found.items() if names}


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
    # In the order of paths, which compare part by part.
    return sorted(found, key=lambda one: one.replace("/", "\0"))


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
