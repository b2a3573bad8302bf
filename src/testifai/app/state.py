"""What the explorer knows: the runs it was given, their answers, and which view of them is shown."""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs

from testifai.commands.common import measured
from testifai.comparing import Comparison, compare
from testifai.errors import InputError
from testifai.reopen import reopen
from testifai.session import Session, open_run
from testifai.space import Space
from testifai.tomogram import Answer, Tomogram

EVERYTHING = "order >= 0"
VIEWS = ("space", "pairs", "curves", "tests", "compare")
MOST_ANSWERS = 500  # that are remembered
MOST_VIEWS = 8  # the figures of a view can take some megabytes


class Memory:
    """Results that were asked for before; the oldest go first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: dict[Any, Any] = {}
        self.lock = threading.Lock()

    def get(self, key: Any, make: Callable[[], Any]) -> Any:
        """What is remembered under a key, or is now made."""
        with self.lock:
            if key in self.kept:
                return self.kept[key]
        made = make()  # outside the lock: a slow answer must not hold up a quick one
        with self.lock:
            while len(self.kept) >= self.most:
                del self.kept[next(iter(self.kept))]
            self.kept[key] = made
        return made


class Runs:
    """The runs named on the command line: the only files that are ever read, chosen by their number."""

    def __init__(self, files: Sequence[Path], spec: Path | None = None) -> None:
        self.files = tuple(files)
        self.spec = spec
        self.names = _short_names(self.files)
        self.tomograms: tuple[Tomogram, ...] = tuple(measured(open_run(path), path) for path in self.files)
        self.answers = Memory(MOST_ANSWERS)
        self.views = Memory(MOST_VIEWS)
        self._subjects: dict[int, Session | InputError] = {}
        self._opening = threading.Lock()
        for name, tomogram in zip(self.names[1:], self.tomograms[1:], strict=True):
            if _axes(tomogram.space) != _axes(self.space):
                raise InputError(
                    f"run files: {name} has other axes or severities than {self.names[0]}; explore them one at a time"
                )

    @property
    def space(self) -> Space:
        """The axes that all the runs share."""
        return self.tomograms[0].space

    def warm(self) -> None:
        """Estimate every test of every run once, so that later questions are quick."""
        for tomogram in self.tomograms:
            with self._opening:
                _ = tomogram.estimate

    def tomogram(self, run: int) -> Tomogram:
        """A run's tomogram, its estimates made."""
        if "_whole" not in self.tomograms[run].__dict__:
            with self._opening:
                _ = self.tomograms[run].estimate
        return self.tomograms[run]

    def answer(self, run: int, query: str) -> Answer:
        """A query's answer."""
        found: Answer = self.answers.get(("answer", run, query), lambda: self.tomogram(run).query(query))
        return found

    def comparison(self, run: int, against: int, query: str) -> Comparison:
        """How the second of two runs differs from the first."""
        found: Comparison = self.answers.get(
            ("compare", run, against, query),
            lambda: compare(self.tomogram(run), self.tomogram(against), [query]),
        )
        return found

    def session(self, run: int) -> Session:
        """A run's model and data, loaded when first asked for; what is wrong with them is told each time."""
        with self._opening:
            if run not in self._subjects:
                try:
                    self._subjects[run] = reopen(self.files[run], self.spec)
                except InputError as error:
                    self._subjects[run] = error
        found = self._subjects[run]
        if isinstance(found, InputError):
            raise InputError(str(found))
        return found


@dataclass(frozen=True)
class View:
    """What is on the screen, as the page's address holds it."""

    run: int
    against: int
    view: str
    axes: tuple[str, ...]
    dark: bool
    query: str
    test: int | None = None


def read_address(search: str | None, runs: Runs) -> View:
    """The view an address asks for; whatever does not fit these runs is left at its default."""
    found = {key: values[-1] for key, values in parse_qs((search or "").lstrip("?"), max_num_fields=50).items()}
    names = runs.space.names
    wanted = tuple(dict.fromkeys(name for name in found.get("axes", "").split(",") if name in names))
    shown = min(3, len(names))
    axes = (*wanted, *(name for name in names if name not in wanted))[:shown]
    view = found.get("view", "")
    return View(
        run=_number(found.get("run"), len(runs.files), 0) or 0,
        against=_number(found.get("against"), len(runs.files), min(1, len(runs.files) - 1)) or 0,
        view=view if view in VIEWS and (view != "compare" or len(runs.files) > 1) else VIEWS[0],
        axes=axes,
        dark=found.get("dark") == "1",
        query=found.get("query", EVERYTHING),
        test=_number(found.get("test"), runs.space.size, None),
    )


def _number(text: str | None, below: int, default: int | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and int(text[:12]) < below else default


def _axes(space: Space) -> list[tuple[str, tuple[int, ...]]]:
    return [(axis.name, tuple(axis.severities)) for axis in space.axes]


def _short_names(files: Sequence[Path]) -> tuple[str, ...]:
    """File names, with as much of their folders as tells them apart."""
    names = [path.name for path in files]
    if len(set(names)) == len(names):
        return tuple(names)
    return tuple(f"{number}: {path}" for number, path in enumerate(files, start=1))
