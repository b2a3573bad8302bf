"""Queries worth keeping: named in the browser, written out as gates of a spec."""

from __future__ import annotations

import json
import math
from collections.abc import Sequence
from typing import Any

from testifai.errors import InputError
from testifai.support import checks

MOST_SAVED = 100


def add(saved: Any, name: Any, query: str, at_least: Any) -> list[dict[str, Any]]:
    """The saved queries with one more; the same name takes the older one's place.

    >>> add([], "mild fog", "fog <= 2", 0.9)
    [{'name': 'mild fog', 'query': 'fog <= 2', 'at_least': 0.9}]
    """
    words = str(name or "").strip()
    if not words:
        raise InputError("name: none was given; type one, such as mild weather")
    wanted = checks.number("at least", at_least, least=0, most=1)
    kept = [one for one in known(saved) if one["name"] != words]
    if len(kept) >= MOST_SAVED:
        raise InputError(f"saved queries: there are {MOST_SAVED} already; forget some first")
    return [*kept, {"name": words, "query": query, "at_least": wanted}]


def known(saved: Any) -> list[dict[str, Any]]:
    """Those of a browser's entries that are what they should be: anyone could have written them."""
    return [
        {"name": one["name"], "query": one["query"], "at_least": float(one["at_least"])}
        for one in (saved if isinstance(saved, list) else [])
        if isinstance(one, dict)
        and all(isinstance(one.get(key), str) for key in ("name", "query"))
        and isinstance(one.get("at_least"), int | float)
        and math.isfinite(one["at_least"])
    ]


def as_toml(saved: Sequence[dict[str, Any]]) -> str:
    """The saved queries as gates, to be pasted into a spec.

    >>> print(as_toml([{"name": "mild", "query": "fog <= 2", "at_least": 0.9}]))
    [[gate]]
    name = "mild"
    query = "fog <= 2"
    at_least = 0.9
    <BLANKLINE>
    """
    return "\n".join(
        f"[[gate]]\nname = {_text(one['name'])}\nquery = {_text(one['query'])}\nat_least = {one['at_least']!r}\n"
        for one in saved
    )


def _text(value: str) -> str:
    """TOML's basic strings take JSON's escapes, but for a character that JSON leaves alone."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")
