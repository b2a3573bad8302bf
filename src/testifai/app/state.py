"""What the explorer knows: the runs it was given, their answers, and which view of them is shown."""

from __future__ import annotations

import contextlib
import ctypes
import json
import math
import sys
import threading
import time
from collections import deque
from collections.abc import Callable, Hashable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Self, TypeVar, cast
from urllib.parse import parse_qs

from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.lock import is_held
from testifai.runs.reader import Loaded, Signature
from testifai.session.session import Session
from testifai.session.stored_runs import open_measured
from testifai.space import Space
from testifai.support import validation
from testifai.support.types import Record
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.run_state import unfinished

if TYPE_CHECKING:
    from testifai.locality.summary import Explanation
    from testifai.tomogram.comparison import Comparison

GROWING, FINISHED, STILL, LOST = "growing", "finished", "still", "lost"


def clock() -> str:
    return time.strftime("%H:%M:%S")


@dataclass(frozen=True)
class RunStatus:
    """The status of a run file, and since when it is known."""

    kind: str  # growing, finished, still or lost
    inferences: int
    at: str = field(default_factory=clock)
    problem: str = ""
    unfinished: str = ""  # the line about a run that is not finished

    @classmethod
    def of(cls, path: Path, run: Tomogram) -> Self:
        """Return the status of a run file from what was read of it."""
        if run.provenance.get(keys.FINISHED) == run.outcomes.total():
            return cls(FINISHED, run.inferences)
        line = unfinished(run) or ""
        return cls(GROWING if is_held(path) else STILL, run.inferences, unfinished=line)

    @property
    def words(self) -> str:
        if self.kind == FINISHED:
            return f"{self.inferences:,} inferences · finished"
        so_far, ends = (" so far", "following") if self.kind == GROWING else ("", self.problem or "it no longer grows")
        if self.unfinished:
            return f"{self.unfinished}, as of {self.at} · {ends}"
        return f"{self.inferences:,} inferences{so_far}, as of {self.at} · {ends}"


MOST_SAVED = 100


def add(saved: object, name: object, query: str, at_least: object) -> list[Record]:
    """The saved queries with one more; the same name takes the older one's place."""
    words = str(name or "").strip()
    if not words:
        raise InputError("name: none was given; type one, such as mild weather")
    wanted = validation.number("at least", at_least, least=0, most=1)
    kept = [one for one in known(saved) if one["name"] != words]
    if len(kept) >= MOST_SAVED:
        raise InputError(f"saved queries: there are {MOST_SAVED} already; forget some first")
    return [*kept, {"name": words, "query": query, "at_least": wanted}]


def known(saved: object) -> list[Record]:
    """The valid entries among those that a browser sent."""
    return [
        {"name": one["name"], "query": one["query"], "at_least": float(one["at_least"])}
        for one in (saved if isinstance(saved, list) else [])
        if isinstance(one, dict)
        and all(isinstance(one.get(key), str) for key in ("name", "query"))
        and isinstance(one.get("at_least"), int | float)
        and math.isfinite(one["at_least"])
    ]


def as_toml(saved: Sequence[Record]) -> str:
    """The saved queries as gates, to be pasted into a spec."""
    return "\n".join(
        f"[[gate]]\nname = {_text(one['name'])}\nquery = {_text(one['query'])}\nat_least = {one['at_least']!r}\n"
        for one in saved
    )


def _text(value: str) -> str:
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


EVERYTHING = "order >= 0"
VIEWS = ("space", "pairs", "curves", "tests", "errors", "compare")
MOST_CLASSES = 60  # up to which a table of classes can be read
MOST_ANSWERS = 500  # that are remembered
MOST_ASKED = 2  # last queries that are answered again when a run has grown, before a page asks them
MOST_VIEWS = 8  # the figures of a view can take some megabytes


Made = TypeVar("Made")


class Memory:
    """A cache of results; the oldest are dropped first."""

    def __init__(self, most: int) -> None:
        self.most = most
        self.kept: dict[Hashable, object] = {}
        self.lock = threading.Lock()

    def get(self, key: Hashable, make: Callable[[], Made]) -> Made:
        with self.lock:
            if key in self.kept:
                return cast(Made, self.kept[key])
        made = make()  # outside the lock: a slow answer must not hold up a quick one
        with self.lock:
            while len(self.kept) >= self.most:
                del self.kept[next(iter(self.kept))]
            self.kept[key] = made
        return made

    def begin_anew(self, known: Mapping[Hashable, object]) -> None:
        with self.lock:
            self.kept = dict(known)


class Runs:
    """The runs named on the command line: the only files that are ever read, chosen by their number."""

    def __init__(self, files: Sequence[Path], spec: Path | None = None) -> None:
        self.files = tuple(files)
        self.spec = spec
        names = [path.name for path in self.files]
        unique = len(set(names)) == len(names)
        self.file_names = tuple(names if unique else (f"{n}: {path}" for n, path in enumerate(self.files, start=1)))
        self.signatures = tuple(map(Signature.of, self.files))  # before what they are the signatures of is read
        self.loaded = [Loaded() for _ in self.files]
        from testifai.locality.measure import tells_confusions

        opened = [open_measured(path, loaded) for path, loaded in zip(self.files, self.loaded, strict=True)]
        # A run with a score is there twice, by its pass rates and by the score's means: either may be chosen.
        listed = [(file, score) for file, run in enumerate(opened) for score in (None, *run.scores)]
        self.against = 0 if len(opened) < 2 else 1 + len(opened[0].scores)  # the second run's pass rates
        self.file_of = tuple(file for file, _ in listed)
        self.names = tuple(
            self.file_names[file] + ("" if score is None else f": mean {score}") for file, score in listed
        )
        self.tomograms: tuple[Tomogram, ...] = tuple(opened[file].scored(score) for file, score in listed)
        self.revision = 0  # how often more of a run was taken up
        self.standing = [RunStatus.of(path, run) for path, run in zip(self.files, opened, strict=True)]
        self.answers = Memory(MOST_ANSWERS)
        self.views = Memory(MOST_VIEWS)
        self._asked: deque[tuple[int, str]] = deque(maxlen=MOST_ASKED)
        confused = any(tells_confusions(tomogram, MOST_CLASSES) for tomogram in self.tomograms)
        absent = {"compare": len(self.files) < 2, "errors": not confused}
        self.available = tuple(view for view in VIEWS if not absent.get(view))
        self._subjects: dict[int, Session | InputError] = {}
        self._opening = threading.Lock()
        axes = [[(axis.name, axis.severities) for axis in tomogram.space.axes] for tomogram in self.tomograms]
        for name, others in zip(self.names, axes, strict=True):
            if others != axes[0]:
                raise InputError(
                    f"run files: {name} has other axes or severities than {self.names[0]}; explore them one at a time"
                )

    @property
    def space(self) -> Space:
        return self.tomograms[0].space

    def warm(self) -> None:
        """Start to estimate every test of every run while the page is created and the browser opens."""

        def estimate() -> None:
            for run in range(len(self.tomograms)):
                with contextlib.suppress(Exception):  # raised again for a page that needs the estimates
                    self.tomogram(run)
            _give_back_memory()

        threading.Thread(target=estimate, daemon=True).start()

    def take_up(self, file: int, run: Tomogram) -> None:
        """Replace the tomograms of a run file by one with more trials; estimates are made first."""
        new = tuple(
            run.scored(old.settings.score) if of == file else old
            for of, old in zip(self.file_of, self.tomograms, strict=True)
        )
        for tomogram in new:
            _ = tomogram.estimator.sample
        known: dict[Hashable, object] = {
            ("answer", self.revision + 1, one, query): new[one].query(query)
            for one, query in list(self._asked)
            if self.file_of[one] == file
        }
        self.answers.begin_anew(known)
        self.views.begin_anew({})
        # Cached results belong to a revision: it is changed last here, and read first by readers.
        self.tomograms = new
        self.revision += 1
        _give_back_memory()

    def growing(self, run: int) -> bool:
        return self.standing[self.file_of[run]].kind == GROWING

    def ready(self, run: int) -> bool:
        return self.tomograms[run].estimator.estimated

    def tomogram(self, run: int) -> Tomogram:
        """A run's tomogram, with its estimates made."""
        if not self.ready(run):
            with self._opening:
                _ = self.tomograms[run].estimator.sample
        return self.tomograms[run]

    def answer(self, run: int, query: str) -> Answer:
        key = ("answer", self.revision, run, query)
        found = self.answers.get(key, lambda: self.tomogram(run).query(query))
        self._asked.append((run, query))
        return found

    def bound(self, run: int, query: str) -> Answer:
        """A query's answer with bounds that stay valid while the run grows."""
        key = ("bound", self.revision, run, query)
        return self.answers.get(key, lambda: self.tomogram(run).query_engine.bound(query))

    def comparison(self, run: int, against: int, query: str) -> Comparison:
        from testifai.tomogram.comparison import compare

        return self.answers.get(
            ("compare", self.revision, run, against, query),
            lambda: compare(self.tomogram(run), self.tomogram(against), [query]),
        )

    def errors(self, run: int) -> Explanation:
        from testifai.locality.explain import explain
        from testifai.locality.measure import from_run

        return self.answers.get(
            ("errors", self.revision, run),
            lambda: explain(from_run(self.tomograms[run]), arity=1, properties=self.space),
        )

    def session(self, run: int) -> Session:
        """A run's model and data, loaded once; an error with them is raised each time."""
        from testifai.session.stored_runs import reopen

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
class FigureRequest:
    """The figures of a view that a page shows. Axes that are not shown are at their severity in `at`, else averaged."""

    run: int
    view: str
    query: str
    axes: Sequence[str]
    against: int = 0
    at: Mapping[str, int] = field(default_factory=dict)
    test: int | None = None  # whose inputs are shown

    @property
    def others(self) -> dict[str, int]:
        return {name: severity for name, severity in self.at.items() if name not in self.axes}

    @property
    def key(self) -> tuple[object, ...]:
        if self.view in ("curves", "errors"):
            return self.view, self.run
        if self.view in ("pairs", "tests"):
            return self.view, self.run, self.query
        against = self.against if self.view == "compare" else None
        return self.view, self.run, self.query, tuple(self.axes), against, tuple(self.others.items())


def shown_axes(wanted: object, space: Space) -> tuple[str, ...]:
    """Three axes, those wanted first."""
    given = [name for name in (wanted if isinstance(wanted, list) else []) if name in space.names]
    return tuple(dict.fromkeys([*given, *space.names]))[:3]


def read_address(search: str | None, runs: Runs) -> FigureRequest:
    """The view of an address; what does not fit these runs is left at its default."""
    found = {key: values[-1] for key, values in parse_qs((search or "").lstrip("?"), max_num_fields=50).items()}
    view = found.get("view", "")
    pairs = (part.rpartition(":") for part in found.get("at", "").split(","))
    return FigureRequest(
        run=_number(found.get("run"), len(runs.names), 0) or 0,
        view=view if view in runs.available else VIEWS[0],
        query=found.get("query", EVERYTHING),
        axes=shown_axes(found.get("axes", "").split(","), runs.space),
        against=_number(found.get("against"), len(runs.names), runs.against) or 0,
        at=fixed(runs.space, {name: _number(severity, 10**9, None) for name, _, severity in pairs}),
        test=_number(found.get("test"), runs.space.size, None),
    )


def number(runs: Runs, run: object) -> int:
    """A run's number from a request, which may contain anything."""
    if type(run) is not int or not 0 <= run < len(runs.names):
        raise InputError(f"run: {str(run)[:40]!r} is not one of those given on the command line")
    return run


def fixed(space: Space, wanted: object) -> dict[str, int]:
    """The wanted severities that axes have."""
    levels = {axis.name: axis.severities for axis in space.axes}
    return {
        name: severity
        for name, severity in (wanted if isinstance(wanted, dict) else {}).items()
        if name in levels and type(severity) is int and severity in levels[name]
    }


def _give_back_memory() -> None:
    """Return the memory of freed arrays to the system; glibc would keep it."""
    if sys.platform == "linux":
        with contextlib.suppress(OSError, AttributeError):  # other C libraries have nothing like it
            ctypes.CDLL(None).malloc_trim(0)


def _number(text: str | None, below: int, default: int | None) -> int | None:
    return int(text) if text is not None and text.isascii() and text.isdigit() and int(text[:12]) < below else default
