"""How far a run is, a bar that shows it (share, rate, time left), and a line that says what is being done."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass

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


@contextmanager
def bar() -> Iterator[Callable[[Step], None]]:
    """A bar on standard error; what it yields takes a session's steps."""
    from rich.console import Console
    from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

    columns = (
        TextColumn("{task.fields[tests]:,} tests"),
        BarColumn(),
        TextColumn("{task.completed:,.0f} of {task.total:,.0f} inferences"),
        TextColumn("{task.fields[rate]}"),
        TimeRemainingColumn(),
    )
    console = Console(stderr=True)
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        task = progress.add_task("scan", total=1, tests=0, rate="")
        first: list[int] = []

        def show(step: Step) -> None:
            # What an earlier run left is done, but it says nothing about this one's speed.
            if not first:
                first.append(step.done)
            elapsed = progress.tasks[0].elapsed or 0
            rate = f"{(step.done - first[0]) / elapsed:,.0f}/s" if elapsed > 0.5 else ""
            rate = ", ".join(filter(None, [rate, step.where]))
            if step.scored is not None:
                rate = "quality of {:,} of {:,} tests".format(*step.scored)
            progress.update(task, completed=step.done, total=step.most, tests=step.tests, rate=rate)

        with heard(lambda doing: progress.update(task, rate=doing)):
            yield show
