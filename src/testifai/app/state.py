"""What the explorer knows: the runs it was given, their answers, and which view of them is shown."""

from __future__ import annotations

import contextlib
import ctypes
import sys
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs

from testifai.errors import InputError
from testifai.scans.session import Session
from testifai.scans.stored import open_measured
from testifai.space import Space
from testifai.tomogram import Answer, Tomogram

if TYPE_CHECKING:
    from testifai.locality.summary import Explanation
    from testifai.tomogram.comparison import Comparison

EVERYTHING = "order >= 0"
VIEWS = ("space", "pairs", "curves", "tests", "errors", "compare")
MOST_CLASSES = 60  # up to which a table of classes can be read
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
        opened = [open_measured(path) for path in self.files]
        # A run with a score is there twice, by its pass rates and by the score's means: either may be chosen.
        short = zip(_short_names(self.files), opened, strict=True)
        listed = [(name, run, score) for name, run in short for score in (None, *run.scores)]
        self.against = 0 if len(opened) < 2 else 1 + len(opened[0].scores)  # the second run's pass rates
        self.names = tuple(name if score is None else f"{name}: mean {score}" for name, _, score in listed)
        self.tomograms: tuple[Tomogram, ...] = tuple(run.scored(score) for _, run, score in listed)
        self.answers = Memory(MOST_ANSWERS)
        self.views = Memory(MOST_VIEWS)
        absent = {"compare": len(self.files) < 2, "errors": not any(map(has_errors, self.tomograms))}
        self.available = tuple(view for view in VIEWS if not absent.get(view))  # what there is something to show in
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
        """Begin to estimate every test of every run, while the page is still made and the browser opens."""
        threading.Thread(target=self._warm, daemon=True).start()

    def _warm(self) -> None:
        for run in range(len(self.tomograms)):
            with contextlib.suppress(Exception):  # whoever asks for the estimates is told
                self.tomogram(run)
        # Fitting leaves room for a dozen large arrays behind, which glibc would keep.
        if sys.platform == "linux":
            with contextlib.suppress(OSError, AttributeError):  # other C libraries have nothing like it
                ctypes.CDLL(None).malloc_trim(0)

    def ready(self, run: int) -> bool:
        """Whether a run's estimates are made."""
        return self.tomograms[run].estimated

    def tomogram(self, run: int) -> Tomogram:
        """A run's tomogram, its estimates made."""
        if not self.ready(run):
            with self._opening:
                _ = self.tomograms[run].sample
        return self.tomograms[run]

    def answer(self, run: int, query: str) -> Answer:
        """A query's answer."""
        found: Answer = self.answers.get(("answer", run, query), lambda: self.tomogram(run).query(query))
        return found

    def comparison(self, run: int, against: int, query: str) -> Comparison:
        """How the second of two runs differs from the first."""
        from testifai.tomogram.comparison import compare

        found: Comparison = self.answers.get(
            ("compare", run, against, query),
            lambda: compare(self.tomogram(run), self.tomogram(against), [query]),
        )
        return found

    def errors(self, run: int) -> Explanation:
        """Why the model fails, where the run kept what was predicted."""
        from testifai.locality.explain import explain
        from testifai.locality.measure import from_run

        found: Explanation = self.answers.get(
            ("errors", run), lambda: explain(from_run(self.tomograms[run]), arity=1, properties=self.space)
        )
        return found

    def session(self, run: int) -> Session:
        """A run's model and data, loaded when first asked for; what is wrong with them is told each time."""
        from testifai.scans.reopen import reopen

        with self._opening:
            if run not in self._subjects:
                try:
                    self._subjects[run] = reopen(self.tomograms[run], self.spec)
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
    query: str
    test: int | None = None
    at: dict[str, int] = field(default_factory=dict)  # severities of axes that are not shown, where not the mean


def read_address(search: str | None, runs: Runs) -> View:
    """The view an address asks for; whatever does not fit these runs is left at its default."""
    found = {key: values[-1] for key, values in parse_qs((search or "").lstrip("?"), max_num_fields=50).items()}
    names = runs.space.names
    wanted = tuple(dict.fromkeys(name for name in found.get("axes", "").split(",") if name in names))
    shown = min(3, len(names))
    axes = (*wanted, *(name for name in names if name not in wanted))[:shown]
    view = found.get("view", "")
    pairs = (part.rpartition(":") for part in found.get("at", "").split(","))
    return View(
        run=_number(found.get("run"), len(runs.names), 0) or 0,
        against=_number(found.get("against"), len(runs.names), runs.against) or 0,
        view=view if view in runs.available else VIEWS[0],
        axes=axes,
        query=found.get("query", EVERYTHING),
        test=_number(found.get("test"), runs.space.size, None),
        at=fixed(runs.space, {name: _number(severity, 10**9, None) for name, _, severity in pairs}),
    )


def number(runs: Runs, run: Any) -> int:
    """A run by its number: nothing else that a request might hold leads to a file."""
    if type(run) is not int or not 0 <= run < len(runs.names):
        raise InputError(f"run: {str(run)[:40]!r} is not one of those given on the command line")
    return int(run)


def fixed(space: Space, wanted: Any) -> dict[str, int]:
    """Those of an axis's wanted severities that it has."""
    levels = {axis.name: axis.severities for axis in space.axes}
    return {
        name: severity
        for name, severity in (wanted if isinstance(wanted, dict) else {}).items()
        if name in levels and type(severity) is int and severity in levels[name]
    }


def has_errors(tomogram: Tomogram) -> bool:
    """Whether a run says which class was taken for which."""
    from testifai.locality.measure import tells_confusions

    return tells_confusions(tomogram, MOST_CLASSES)


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
