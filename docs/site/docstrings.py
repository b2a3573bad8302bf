"""How mkdocstrings reads our docstrings: doctests as code, and what decorators add when the package runs."""

from __future__ import annotations

import importlib
import inspect
import re
from typing import Any

import griffe

DOCTEST = re.compile(r"(?:^|(?<=\n))(?P<block>[ ]*>>> .*?)(?=\n[ ]*\n|\Z)", re.DOTALL)
OPTIONS = re.compile(r"^Options \(.*\):$", re.MULTILINE)


class Docstrings(griffe.Extension):
    """Changes docstrings as they are collected; nothing in the sources has to know of the site."""

    def on_function(self, *, func: griffe.Function, **_: Any) -> None:
        """A function whose options are listed by a decorator, as that lists them."""
        if any("with_options" in str(decorator.value) for decorator in func.decorators):
            made = getattr(importlib.import_module(func.module.path), func.name)
            told = OPTIONS.sub("Parameters:", inspect.getdoc(made) or "")
            func.docstring = griffe.Docstring(told, parent=func)
            func.parameters = griffe.Parameters(*map(_parameter, inspect.signature(made).parameters.values()))

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Doctests become blocks of code; in Markdown they would be quotes in quotes."""
        if obj.docstring is not None:
            obj.docstring.value = fenced(obj.docstring.value)


def fenced(docstring: str) -> str:
    """A docstring with its doctests as blocks of code.

    >>> fenced(">" + ">> 1 + 1\\n2").splitlines()
    ['```pycon', '>>> 1 + 1', '2', '```']
    """
    return DOCTEST.sub(lambda found: f"```pycon\n{inspect.cleandoc(found['block'])}\n```", docstring)


def _parameter(one: inspect.Parameter) -> griffe.Parameter:
    kind = {
        inspect.Parameter.KEYWORD_ONLY: griffe.ParameterKind.keyword_only,
        inspect.Parameter.POSITIONAL_OR_KEYWORD: griffe.ParameterKind.positional_or_keyword,
    }[one.kind]
    default = None if one.default is inspect.Parameter.empty else repr(one.default)
    return griffe.Parameter(one.name, kind=kind, default=default)
