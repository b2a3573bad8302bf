"""How mkdocstrings reads our docstrings: doctests as code, and what decorators add when the package runs."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^|(?<=\n))(?P<block>[ ]*>>> .*?)(?=\n[ ]*\n|\Z)", re.DOTALL)
OPTIONS = re.compile(r"^Args:\n(?P<lines>(?:    .*\n?)+)", re.MULTILINE)
OPTION = re.compile(r"    (?P<name>\w+) \((?P<takes>.*?)\): (?P<meaning>.*)")
QUOTED = re.compile(r"(?<!\w)'([^']+)'(?!\w)")


class Docstrings(griffe.Extension):  # type: ignore[misc]
    """Changes docstrings as they are collected; nothing in the sources has to know of the site."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Doctests become blocks of code; in Markdown they would be quotes in quotes."""
        if obj.docstring is None:
            return
        if isinstance(obj, griffe.Function) and any("with_options" in str(one.value) for one in obj.decorators):
            _dress(obj, obj.docstring)
        obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """A docstring with its doctests as blocks of code.

    >>> fenced(">" + ">> 1 + 1\\n2").splitlines()
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    return DOCTEST.sub(lambda found: f"```pycon\n{inspect.cleandoc(found['block'])}\n```", docstring)


def _dress(function: griffe.Function, docstring: griffe.Docstring) -> None:
    """A function whose options a decorator lists, with these."""
    made = getattr(importlib.import_module(function.module.path), function.name)
    docstring.value = OPTIONS.sub(_tabled, inspect.getdoc(made) or "")
    function.parameters = griffe.Parameters(*map(_parameter, inspect.signature(made).parameters.values()))


def _tabled(options: re.Match[str]) -> str:
    found = [f"| `{one['name']}` | {one['takes']} | {one['meaning']} |" for one in OPTION.finditer(options["lines"])]
    rows = [QUOTED.sub(r"`\1`", row) for row in found]
    return "\n".join(["| parameter | takes | what it means |\n|---|---|---|", *rows, ""])


def _parameter(one: inspect.Parameter) -> griffe.Parameter:
    keyword = one.kind is inspect.Parameter.KEYWORD_ONLY
    kind = griffe.ParameterKind.keyword_only if keyword else griffe.ParameterKind.positional_or_keyword
    default = None if one.default is inspect.Parameter.empty else repr(one.default)
    return griffe.Parameter(one.name, kind=kind, default=default)
