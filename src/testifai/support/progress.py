"""How far a run is, a bar that shows it (share, rate, time left), and a line that says what is being done."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from html import escape
from typing import Any

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@dataclass(frozen=True)
class Step:
    """How far a session is: inferences done of at most `most`, and how many tests have outcomes.

    While quality is measured, `scored` says of how many tests, and of how many it will be. `where` says on which
    machines the work is done, where that is not this one.
    """

    done: int
    most: int
    tests: int
    scored: tuple[int, int] | None = None
    where: str = ""


def note(doing: str) -> None:
    """Tell whoever shows it what is being done from now on; nothing where nobody does."""
    if (listener := _listener.get()) is not None:
        listener(doing)


@contextmanager
def heard(listener: Callable[[str], None]) -> Iterator[None]:
    """Have what is noted told to somebody.

    >>> with heard(print):
    ...     note("fitting 12 tests")
    fitting 12 tests
    """
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def status() -> Iterator[None]:
    """A line on standard error, where that is a terminal, that says what is being done."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status("") as shown, heard(lambda doing: shown.update(f"{escape(doing)} …")):
        yield


class Pace:
    """How fast a session is and how long it will take, from its steps.

    What an earlier run left is done, but it says nothing about this one's speed.
    """

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._first: int | None = None

    def words(self, step: Step) -> str:
        """The speed and where the work is done; of quality, how many tests have one."""
        if step.scored is not None:
            return "quality of {:,} of {:,} tests".format(*step.scored)
        speed = self._speed(step)
        return ", ".join(filter(None, [f"{speed:,.0f}/s" if speed else "", step.where]))

    def left(self, step: Step) -> str:
        """The time left, as far as it can be told."""
        speed = self._speed(step)
        return f"{timedelta(seconds=math.ceil((step.most - step.done) / speed))} left" if speed else ""

    def _speed(self, step: Step) -> float:
        """Inferences a second; 0 as long as there is little to tell it by."""
        if self._first is None:
            self._first = step.done
        elapsed = time.monotonic() - self._begun
        return (step.done - self._first) / elapsed if elapsed > 0.5 else 0.0


@contextmanager
def bar() -> Iterator[Callable[[Step], None]]:
    """A bar in the notebook that runs this, or on standard error; what it yields takes a session's steps."""
    with _in_notebook() if shell() is not None else _on_terminal() as show:
        yield show


@contextmanager
def _in_notebook() -> Iterator[Callable[[Step], None]]:
    shown, pace = NotebookBar(), Pace()
    reached = Step(0, 1, 0)

    def draw(doing: str, *, last: bool = False) -> None:
        count = f"{reached.tests:,} tests, {reached.done:,} of {reached.most:,} inferences"
        shown.show(reached.done, reached.most, ", ".join(filter(None, [count, doing])), last=last)

    def show(step: Step) -> None:
        nonlocal reached
        reached = step
        draw(", ".join(filter(None, [pace.words(step), pace.left(step)])))

    with heard(draw):
        yield show
    draw("done", last=True)


@contextmanager
def _on_terminal() -> Iterator[Callable[[Step], None]]:
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.fields[tests]:,} tests"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} inferences"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console, pace = Console(stderr=True), Pace()
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("scan", total=1, tests=0, rate="")

        def show(step: Step) -> None:
            progress.update(task, completed=step.done, total=step.most, tests=step.tests, rate=pace.words(step))

        with heard(lambda doing: progress.update(task, rate=doing)):
            yield show


BETWEEN = 0.2  # seconds at least between two drawings: each is a message to the page
WIDTH = 16  # em


def shell() -> Any:
    """IPython's shell where it serves a notebook (or another front end of a kernel); None anywhere else."""
    ipython = sys.modules.get("IPython")
    found = None if ipython is None else ipython.get_ipython()
    return None if getattr(found, "kernel", None) is None else found


class NotebookBar:
    """A bar with a line of words behind it."""

    def __init__(self) -> None:
        self._handle: Any = None
        self._last = -BETWEEN

    def show(self, done: int, most: int, words: str, *, last: bool = False) -> None:
        """Draw so much of the whole, unless the last drawing was just before; the last one is drawn in any case."""
        now = time.monotonic()
        if not last and now - self._last < BETWEEN:
            return
        self._last = now
        style = f"width:{WIDTH}em;vertical-align:middle"
        html = f'<div><progress value="{done}" max="{max(most, 1)}" style="{style}"></progress> {escape(words)}</div>'
        shown = {"text/html": html, "text/plain": words}
        if self._handle is None:
            self._handle = sys.modules["IPython"].display.display(shown, raw=True, display_id=True)
        else:
            self._handle.update(shown, raw=True)
