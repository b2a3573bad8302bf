"""Progress of a run, a bar that shows it, and a line with the current activity."""

from __future__ import annotations

import math
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import timedelta
from typing import Any

from testifai.support.formatting import in_html as escape

_listener: ContextVar[Callable[[str], None] | None] = ContextVar("listener", default=None)


@dataclass(frozen=True)
class Step:
    """Progress of a session."""

    done: int  # inferences
    most: int  # the largest number of inferences
    tests: int  # with outcomes
    scored: tuple[int, int] | None = None  # while quality is measured: tests with a score, and all of them
    where: str = ""  # the machines, if not this one


def note(doing: str) -> None:
    """Report the current activity to the listener, if there is one."""
    if (listener := _listener.get()) is not None:
        listener(doing)


@contextmanager
def heard(listener: Callable[[str], None]) -> Iterator[None]:
    """Pass activities to a listener."""
    token = _listener.set(listener)
    try:
        yield
    finally:
        _listener.reset(token)


@contextmanager
def status() -> Iterator[None]:
    """Show the current activity on standard error if it is a terminal."""
    from rich.console import Console
    from rich.markup import escape

    console = Console(stderr=True)
    if not console.is_terminal:
        yield
        return
    with console.status("") as shown, heard(lambda doing: shown.update(f"{escape(doing)} …")):
        yield


class Pace:
    """Speed of a session and the time left; outcomes of an earlier session do not count for the speed."""

    def __init__(self) -> None:
        self._begun = time.monotonic()
        self._first: int | None = None

    def words(self, step: Step) -> str:
        if step.scored is not None:
            return "quality of {:,} of {:,} tests".format(*step.scored)
        speed = self._speed(step)
        return ", ".join(filter(None, [f"{speed:,.0f}/s" if speed else "", step.where]))

    def left(self, step: Step) -> str:
        speed = self._speed(step)
        return f"{timedelta(seconds=math.ceil((step.most - step.done) / speed))} left" if speed else ""

    def _speed(self, step: Step) -> float:
        """Return inferences per second; 0 during the first half second."""
        if self._first is None:
            self._first = step.done
        elapsed = time.monotonic() - self._begun
        return (step.done - self._first) / elapsed if elapsed > 0.5 else 0.0


@contextmanager
def bar() -> Iterator[Callable[[Step], None]]:
    """Show a bar in a notebook or on standard error; yields a function for the steps of a session."""
    with _in_notebook() if shell() is not None else _on_terminal() as show:
        yield show


BETWEEN = 0.2  # least seconds between two updates: each is a message to the page
STYLE = "width:16em;vertical-align:middle"


@contextmanager
def _in_notebook() -> Iterator[Callable[[Step], None]]:
    pace, reached = Pace(), Step(0, 1, 0)
    handle: Any = None
    updated = -BETWEEN

    def draw(doing: str, *, last: bool = False) -> None:
        nonlocal handle, updated
        now = time.monotonic()
        if not last and now - updated < BETWEEN:
            return
        updated = now
        count = f"{reached.tests:,} tests, {reached.done:,} of {reached.most:,} inferences"
        words = f"{count}, {doing}" if doing else count
        value = f'value="{reached.done}" max="{max(reached.most, 1)}"'
        html = f'<div><progress {value} style="{STYLE}"></progress> {escape(words)}</div>'
        shown = {"text/html": html, "text/plain": words}
        if handle is None:
            handle = sys.modules["IPython"].display.display(shown, raw=True, display_id=True)
        else:
            handle.update(shown, raw=True)

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


def shell() -> Any:
    """Return IPython's shell in a notebook or another front end of a kernel; else None."""
    ipython = sys.modules.get("IPython")
    found = None if ipython is None else ipython.get_ipython()
    return None if getattr(found, "kernel", None) is None else found
