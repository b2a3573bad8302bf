"""Commands of the command line, one module each; `testifai.cli` puts them on one help screen."""

from __future__ import annotations

from testifai.support.registry import Registry

# Panels of the help screen, in the order people work.
PANELS = {
    "Start": ("demo", "init", "check", "run"),
    "Results": ("query", "show", "compare", "report", "explore", "export"),
    "Methods": ("sweep", "label", "errors", "list"),
}
PLUGINS = "Plug-ins"

# A command is a function or a Typer app. Other packages add theirs under the entry-point group.
COMMANDS = Registry(
    "command",
    "testifai.commands",
    {
        name: f"testifai.commands.{name}:{'app' if name in ('label', 'list') else name}"
        for names in PANELS.values()
        for name in names
    },
)
