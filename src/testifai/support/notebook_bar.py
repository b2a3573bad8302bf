"""A bar in a notebook, drawn anew in its place as a run goes on. IPython is used where it is loaded, never imported."""

from __future__ import annotations

import sys
import time
from html import escape
from typing import Any

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
