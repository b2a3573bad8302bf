"""The one exception a user's mistake raises, and the words for a near miss."""

from __future__ import annotations

import difflib
from collections.abc import Iterable

LONGEST = 2000  # characters of a message


class InputError(ValueError):
    """A mistake in what the user gave: one line that names the field, the value and what is accepted.

    A message with a very long value keeps its beginning and its end.

    >>> len(str(InputError(f"seed: expected a number, got {'9' * 100_000!r}")))
    2000
    """

    def __init__(self, message: object = "") -> None:
        text = str(message)
        super().__init__(text if len(text) <= LONGEST else f"{text[: LONGEST - 303]} … {text[-300:]}")


def suggest(word: object, known: Iterable[str]) -> str:
    """Say which of the known names was probably meant, or list them.

    >>> suggest("zom", ["zoom", "blur"])
    "did you mean 'zoom'? (known: blur, zoom)"
    >>> suggest("q", ["zoom", "blur"])
    'known: blur, zoom'
    """
    names = sorted(known)
    listing = "known: " + ", ".join(names)
    close = difflib.get_close_matches(str(word), names, n=1, cutoff=0.6)
    return f"did you mean '{close[0]}'? ({listing})" if close else listing
