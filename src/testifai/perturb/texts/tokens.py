"""Words of a text, and what no edit may touch: placeholders, addresses and quoted spans.

Kinds of edits look for their places in a text's shadow: a string of the same length in which protected spans are
underscores and combining marks are letters. An underscore is part of no word, no gap and no punctuation, so that
nothing is found there, nor in a word that touches it.
"""

from __future__ import annotations

import re
import unicodedata

Place = tuple[int, int]

# A letter that stands for a combining mark or joiner in the shadow: it belongs to the word and to no table of letters.
_MARK = "ª"

# A word has letters only, with single apostrophes or hyphens inside; "3rd" and "B2B" are no words.
WORD = re.compile(r"(?<!\w)[^\W\d_]++(?:['’-][^\W\d_]++)*+(?!\w)")

# A text without any of these holds nothing protected; most texts are done here.
_HINT = re.compile(r"""[{<%$\[@#"“”„«»`‘/\\]|(?<!\w)'|\w\.\w""")

# Every repetition stops at what may begin the next span, so that the search is linear in the length of the text.
_PROTECTED = re.compile(
    r"""
      \{\{[^{}]*\}\} | \$?\{[^{}]*\}                                  # {name}, {{name}}, ${name}
    | <[^<>\s][^<>]*>                                                 # <tag>
    | %(?:\([^()\s]*\))?[-+0\#]*\d*(?:\.\d+)?(?:\d\$)?[sdifgrxeouc]\b  # %s, %(name)s, %.2f, %1$s
    | \[/?[^\W\d]\w*\]                                                # [MASK], [/math]
    | \$\w+                                                           # $name, and amounts of money
    | (?<!\w)(?:[a-z][a-z0-9+.-]{1,15}://|www\.)[^\s<>"“”]+           # addresses of pages
    | (?<![\w.+-])[\w.+-]++@[\w.-]+                                   # addresses of mail
    | (?<![\w.-])(?:[\w-]++\.)+(?:com|org|net|edu|gov|io|co\.\w\w)\b(?:/[^\s<>"“”]*)?
    | (?<!\w)[@\#]\w+                                                 # @mention, #topic
    | "[^"]*" | “[^“”]*” | „[^„“”]*[“”] | «[^«»]*» | `[^`]*`
    | ‘(?:[^‘’]|(?<=\w)’(?=\w))*’ | (?<!\w)'(?:[^'\n]|(?<=\w)'(?=\w))++'(?!\w)
    """,
    re.VERBOSE | re.IGNORECASE,
)


# A mark that follows no letter, such as the variation selector of an emoji, belongs to no word.
_STRAY = re.compile(rf"(?<![^\W_]){_MARK}++")


class _Marks(dict[int, int | None]):
    """A table for str.translate that finds out about a character when it first meets it."""

    def __missing__(self, code: int) -> int:
        joined = unicodedata.category(chr(code))[0] == "M" or code in (0x200C, 0x200D)
        made = self[code] = ord(_MARK) if joined else code
        return made


_marks = _Marks()


def shadow_of(text: str) -> str:
    """The text with what is protected covered by underscores.

    >>> shadow_of("Mail {name} at a@b.org now")
    'Mail ______ at _______ now'
    """
    shadow = _plain(text)
    if _HINT.search(shadow) is None:
        return shadow
    return _PROTECTED.sub(_covered, shadow)


def protected(text: str) -> list[str]:
    """The spans that no edit touches, in order.

    >>> protected('Who said "I am late" on www.quora.com?')
    ['"I am late"', 'www.quora.com?']
    """
    return [text[found.start() : found.end()] for found in _PROTECTED.finditer(_plain(text))]


def words(shadow: str) -> list[Place]:
    """Where the words are.

    >>> words("The 3rd well-known one")
    [(0, 3), (8, 18), (19, 22)]
    """
    return [found.span() for found in WORD.finditer(shadow)]


def clusters(word: str) -> list[str]:
    """The letters of a word, each with the marks that belong to it.

    >>> len(clusters("cafe\u0301")), len("cafe\u0301")
    (4, 5)
    """
    if word.isascii():
        return list(word)
    found: list[str] = []
    for character in word:
        if found and (_marks[ord(character)] != ord(character) or found[-1][-1] == "\u200d"):
            found[-1] += character
        else:
            found.append(character)
    return found


def _plain(text: str) -> str:
    """The text with marks as letters; underscores where they belong to none."""
    return text if text.isascii() else _STRAY.sub(_covered, text.translate(_marks))


def _covered(found: re.Match[str]) -> str:
    return "_" * (found.end() - found.start())


def in_case_of(new: str, old: str) -> str:
    """The new word with the old one's capitals: all of them, the first, or none.

    >>> in_case_of("auto", "Car"), in_case_of("don't", "DO NOT"), in_case_of("i am", "I'm")
    ('Auto', "DON'T", 'I am')
    """
    if len(old) > 1 and old.isupper():
        return new.upper()
    return new[0].upper() + new[1:] if old[0].isupper() else new
