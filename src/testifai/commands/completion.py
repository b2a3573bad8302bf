"""Shell completions: files by their endings, names of components. Heavy imports are avoided."""

from __future__ import annotations

import os
import shlex
import tomllib
from collections.abc import Callable, Iterable
from pathlib import Path

import typer

Completer = Callable[[str], list[str]]


def files(*endings: str) -> Completer:
    """Complete files with these endings; if there are none, the shell completes its own."""

    def complete(incomplete: str) -> list[str]:
        folder = os.path.dirname(incomplete)
        try:
            found = sorted(one.name for one in Path(folder or ".").iterdir() if one.suffix in endings)
        except OSError:
            return []
        # A name that needs quotes would be taken for several by some shells.
        return _beginning(incomplete, [os.path.join(folder, name) for name in found if shlex.quote(name) == name])

    return complete


def among(*values: str) -> Completer:
    return lambda incomplete: _beginning(incomplete, values)


def techniques(incomplete: str) -> list[str]:
    from testifai.operational import TECHNIQUES

    return _beginning(incomplete, TECHNIQUES)


def suites(incomplete: str) -> list[str]:
    from testifai.perturb.registry import SUITES

    return _beginning(incomplete, SUITES)


def perturbations(context: typer.Context, incomplete: str) -> list[str]:
    """Complete axes of the spec, suites, and perturbations of the typed suite: all would take long."""
    from testifai.errors import InputError
    from testifai.perturb.registry import names

    suite, dot, _ = incomplete.partition(".")
    begun = [suite] if dot else suites(suite)
    try:
        found = names(begun[0]) if len(begun) == 1 else [f"{one}." for one in begun]
    except InputError:
        found = []
    # In an unfinished line the spec may be among the unparsed words.
    words = [str(context.params.get("spec")), *context.args]
    axes = [axis for word in words if word.endswith(".toml") for axis in _axes(Path(word))]
    return _beginning(incomplete, [*axes, *found])


def _axes(spec: Path) -> list[str]:
    try:
        space = tomllib.loads(spec.read_text("utf-8")).get("space")
    except (OSError, ValueError):
        return []
    return list(space) if isinstance(space, dict) else []


def _beginning(incomplete: str, values: Iterable[str]) -> list[str]:
    return [value for value in values if value.startswith(incomplete)]


runs = files(".db")
specs = files(".toml")
