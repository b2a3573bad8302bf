"""The reference of the command line, made from the commands themselves."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, get_args, get_type_hints

import typer

from testifai.cli import app
from testifai.commands import PANELS

TYPES = {Path: "PATH", int: "NUMBER", float: "NUMBER", str: "TEXT"}

Command = Any  # click's, or typer's own copy of it
Parameter = Any


def commands() -> dict[str, Command]:
    """Every command of the program, by name; those of a group by both names, such as `label select`."""
    found: dict[str, Command] = {}
    group = program()
    for name in (name for names in PANELS.values() for name in names):
        command = group.get_command(None, name)
        inner = getattr(command, "commands", None)
        found |= {name: command} if inner is None else {f"{name} {one}": inner[one] for one in inner}
    return found


def program() -> Command:
    """The program itself, which has options too."""
    return typer.main.get_command(app)


def page() -> str:
    """The page, as Markdown."""
    return "\n".join(_lines())


def _lines() -> Iterator[str]:
    group, found = program(), commands()
    yield "# Command line\n"
    yield "Every command prints its own help: `testifai COMMAND --help`. A mistake is one line on standard error and"
    yield "exit code 2; exit code 1 says that a gate did not hold.\n"
    yield "| of the program itself | |\n|---|---|"
    for option in group.params:
        yield f"| {', '.join(f'`{name}`' for name in option.opts)} | {_cell(option.help or '')} |"
    yield ""
    for title, members in PANELS.items():
        names = [name for member in members for name in found if name.split()[0] == member]
        yield f"## {title}\n"
        yield "| command | what it does |\n|---|---|"
        for name in names:
            yield f"| [`{name}`](#{anchor(name)}) | {_cell(_help(found[name]).splitlines()[0])} |"
        yield ""
        for name in names:
            yield from _command(name, found[name])


def anchor(name: str) -> str:
    """Where on the page a command is."""
    return f"testifai-{name.replace(' ', '-')}"


def _command(name: str, command: Command) -> Iterator[str]:
    arguments = [one for one in command.params if one.param_type_name == "argument"]
    options = [one for one in command.params if one.param_type_name == "option" and not getattr(one, "hidden", False)]
    yield f"### testifai {name} {{ #{anchor(name)} }}\n"
    usage = [_argument(one) for one in arguments]
    yield f"```text\n{' '.join(['testifai', name, '[OPTIONS]', *usage])}\n```\n"
    yield f"{_help(command)}\n"
    rows = [*(_row(f"`{_argument(one)}`", one, command) for one in arguments)]
    rows += [_row(_names(one, command.callback), one, command) for one in options]
    if rows:
        yield "| | what it is | default |\n|---|---|---|"
        yield from rows
        yield ""


def _help(command: Command) -> str:
    return inspect.cleandoc(command.help or "")


def _row(name: str, parameter: Parameter, command: Command) -> str:
    default = inspect.signature(command.callback).parameters[parameter.name].default
    shown = "needed" if parameter.required else _default(default)
    return f"| {name} | {_cell(parameter.help or '')} | {shown} |"


def _default(value: Any) -> str:
    return "" if value in (None, False, inspect.Parameter.empty) else f"`{value}`"


def _argument(parameter: Parameter) -> str:
    shown = (parameter.metavar or str(parameter.name).upper()).strip("[]")
    return shown if parameter.required else f"[{shown}]"


def _names(parameter: Parameter, callback: Callable[..., Any]) -> str:
    """How an option is written, and of which type its value is; "may be repeated" where it may."""
    names = ", ".join(f"`{name}`" for name in [*parameter.opts, *parameter.secondary_opts])
    if parameter.is_flag:
        return names
    told = get_type_hints(callback)[parameter.name]
    kinds = [kind for kind in (told, *get_args(told)) if kind in TYPES]
    value = (parameter.metavar or (TYPES[kinds[0]] if kinds else "TEXT")).replace("|", "\\|")
    return f"{names} `{value}`" + (" …" if parameter.multiple else "")


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|")
