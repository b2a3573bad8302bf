"""`testifai plugins`: every part that can be named, ours and other packages', and where it comes from."""

from __future__ import annotations

import importlib
from dataclasses import asdict

from testifai.commands.common import Json, print_json, say
from testifai.support.registry import Registry

# The registries of all kinds of parts, under what they are called here.
REGISTRIES = {
    "perturbation suites": "testifai.perturb.registry:SUITES",
    "models": "testifai.models:ADAPTERS",
    "data": "testifai.data:LOADERS",
    "oracles": "testifai.oracles:ORACLES",
    "surrogates": "testifai.surrogates:SURROGATES",
    "strategies": "testifai.strategies:STRATEGIES",
    "stopping rules": "testifai.engine.stopping:RULES",
    "quality measures": "testifai.quality:MEASURES",
    "operational techniques": "testifai.operational:TECHNIQUES",
    "executors": "testifai.engine:EXECUTORS",
}


def plugins(as_json: Json = False) -> None:
    """List everything that can be used by name, with the package it comes from, and what cannot be used and why."""
    listed = {title: registry.entries() for title, registry in _registries().items()}
    if as_json:
        print_json([asdict(entry) for entries in listed.values() for entry in entries])
        return
    width = max(len(entry.name) for entries in listed.values() for entry in entries)
    for title, entries in listed.items():
        say(f"{title} [{len(entries)}]")
        for entry in entries:
            problem = f"  NOT USABLE: {entry.problem}" if entry.problem else ""
            say(f"  {entry.name:{width}}  {entry.package} {entry.version}{problem}".rstrip())


def _registries() -> dict[str, Registry]:
    places = {title: place.split(":") for title, place in REGISTRIES.items()}
    return {title: getattr(importlib.import_module(module), name) for title, (module, name) in places.items()}
