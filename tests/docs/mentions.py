"""Whether a command that a sentence names exists: the command and its options, the file, the target, the extra."""

from __future__ import annotations

import re
import tomllib
from functools import cache
from typing import Any

from tests.docs.blocks import ROOT

OPTION = re.compile(r"(?<!\S)--?[a-z][\w-]*")


def unknown_in(command: str) -> str | None:
    """What of a command does not exist, if anything."""
    program, *rest = re.split(r"\s+", command)
    return CHECKS[program](rest, OPTION.findall(command))


def _testifai(rest: list[str], options: list[str]) -> str | None:
    commands = _commands()
    name = rest[0]
    if name.startswith("-"):
        return None
    if len(rest) > 1 and f"{name} {rest[1]}" in commands:
        name = f"{name} {rest[1]}"
    if name not in commands:
        return f"there is no command {name!r}"
    strange = set(options) - commands[name]
    return f"testifai {name} has no {', '.join(sorted(strange))}" if strange else None


def _python(rest: list[str], options: list[str]) -> str | None:
    path = ROOT / rest[0]
    if not path.is_file():
        return f"there is no {rest[0]}"
    strange = [option for option in options if f'"{option}"' not in path.read_text(encoding="utf-8")]
    return f"{rest[0]} has no {', '.join(strange)}" if strange else None


def _make(rest: list[str], options: list[str]) -> str | None:
    targets = re.findall(r"^([\w-]+):", (ROOT / "Makefile").read_text(encoding="utf-8"), re.MULTILINE)
    return None if rest[0] in targets else f"the Makefile has no {rest[0]}"


def _pip(rest: list[str], options: list[str]) -> str | None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    named = re.findall(r"testifai\[([\w,]+)\]", " ".join(rest))
    strange = {extra for one in named for extra in one.split(",")} - project["optional-dependencies"].keys()
    return f"there is no extra {', '.join(sorted(strange))}" if strange else None


@cache
def _commands() -> dict[str, set[str]]:
    """The options of every command."""
    from typer.main import get_command

    from testifai.cli import app

    group: Any = get_command(app)
    found = {name: group.get_command(None, name) for name in group.list_commands(None)}
    for name, command in list(found.items()):
        found |= {f"{name} {inner}": one for inner, one in getattr(command, "commands", {}).items()}
    return {
        name: {option for one in command.params for option in (*one.opts, *one.secondary_opts) if option[0] == "-"}
        | {"-h", "--help"}
        for name, command in found.items()
    }


CHECKS = {"testifai": _testifai, "python": _python, "make": _make, "pip": _pip}
