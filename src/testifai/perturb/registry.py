"""Registered perturbations by name: of built-in suites, other packages and users."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Sequence
from functools import cache
from typing import Unpack

from testifai.errors import InputError, suggest
from testifai.perturb.base import Function, Options, Parameter, Perturbation
from testifai.support.registry import Registry
from testifai.support.serialization import plain
from testifai.support.types import Record

# A built-in suite is a module, which is imported when a name with its prefix is used.
BUILT_IN = {
    suite: f"testifai.perturb.{suite}"
    for suite in ("classic", "cifar_c", "cure", "deeptest", "imagenet_c", "mnist_c", "tabular", "text")
}
ALIASES = {"classic.noise": "classic.gaussian_noise", "classic.darken": "classic.brightness"}
# Other packages have entry points in this group: the suite's name, and the module that registers it.
SUITES = Registry("suite", "testifai.perturbations", BUILT_IN)

_registered: dict[str, Perturbation] = {}


def perturbation(
    name: str, severities: Sequence[Parameter], summary: str = "", **options: Unpack[Options]
) -> Callable[[Function], Perturbation]:
    """Register a function f(batch, parameter, rng) as a perturbation; with `table`, f(rows, parameter, rng) of `Rows`.

    Args:
        name: under which it can be named in a space
        severities: the parameter of each severity, the first of them "off"
        summary: one line for people
        options: further fields of `Perturbation`, by name: boxes, shows, growing, levels, tensors, table, smooth

    >>> @perturbation("doc_fade", severities=[1.0, 0.8, 0.6])
    ... def doc_fade(batch, factor, rng):
    ...     return batch * factor
    >>> get("doc_fade") is doc_fade
    True
    """

    def register(function: Function) -> Perturbation:
        made = Perturbation(name, function, severities, summary or _first_line(function), **options)
        suite = suite_of(name)
        if suite in BUILT_IN and not str(getattr(function, "__module__", None)).startswith("testifai.perturb."):
            raise InputError(f"perturbation name '{name}': the prefix '{suite}.' belongs to a built-in suite")
        taken = _registered.get(name)
        if taken is not None and not _same_source(taken.function, function):
            raise InputError(f"perturbation name '{name}' is taken by another function; choose another name")
        _registered[name] = made
        return made

    return register


def get(name: str) -> Perturbation:
    """The perturbation registered under a name.

    Args:
        name: such as "mnist_c.zoom"

    >>> get("mnist_c.zoom").severities
    (1.0, 0.9, 0.8, 0.7, 0.6, 0.5)
    """
    name = ALIASES.get(name, name) if isinstance(name, str) else name
    if isinstance(name, str) and name not in _registered:
        problem = _load(suite_of(name))
        if problem is not None:
            raise InputError(problem)
    if not isinstance(name, str) or name not in _registered:
        raise InputError(f"perturbation {name!r} is not known; {_near(name)}")
    return _registered[name]


def names(suite: str | None = None) -> list[str]:
    """All registered names, or those of one suite, in alphabetical order.

    Args:
        suite: its name; None: all

    >>> "mnist_c.zoom" in names("mnist_c")
    True
    """
    if suite is None:
        for known in SUITES:
            _load(known)
        return sorted(_registered)
    problem = _load(suite)
    if problem is not None:
        raise InputError(problem)
    found = sorted(name for name in _registered if suite_of(name) == suite)
    if not found:
        raise InputError(f"suite {suite!r} is not known; {suggest(suite, _suites())}")
    return found


def main_names(suite: str) -> list[str]:
    """Those of a suite as its module lists them, without what it names in EXTRA: held back for tuning by its paper.

    Args:
        suite: its name

    >>> len(names("imagenet_c")), len(main_names("imagenet_c")), main_names("imagenet_c")[0]
    (19, 15, 'imagenet_c.gaussian_noise')
    """
    known = set(names(suite))
    extra = getattr(SUITES[suite], "EXTRA", ()) if suite in SUITES else ()
    return [name for name in _registered if name in known and name.partition(".")[2] not in extra]


def suite_of(name: str) -> str:
    return name.partition(".")[0] if "." in name else ""


def suite_summary(suite: str) -> str:
    """The first line of the docstring of a suite's module; "" if there is none."""
    return _first_line(SUITES[suite]) if suite in SUITES and _load(suite) is None else ""


def suite_problems() -> list[str]:
    """One line for every suite of another package that cannot be used."""
    for suite in SUITES:
        _load(suite)
    return [f"suite {entry.problem}" for entry in SUITES.entries() if entry.problem is not None]


def resolve(given: str | Perturbation) -> Perturbation:
    """A perturbation from its name or from itself.

    Args:
        given: what was asked for
    """
    return given if isinstance(given, Perturbation) else get(given)


def describe(given: Perturbation) -> Record:
    """A perturbation as JSON-able data: enough to find it again and to notice that it has changed.

    Args:
        given: the perturbation

    >>> describe(get("mnist_c.rotate"))
    {'name': 'mnist_c.rotate', 'severities': [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]}
    """
    described = {"name": given.name, "severities": plain(given.severities)}
    return described if given.columns is None else {**described, "columns": list(given.columns)}


def rebuild(description: Record) -> Perturbation:
    """The registered perturbation that `describe` wrote down; an InputError where its table has changed.

    Args:
        description: what `describe` made
    """
    found = get(description["name"])
    stored, current = description.get("severities"), describe(found)["severities"]
    if stored is not None and stored != current:
        raise InputError(f"perturbation '{found.name}': severities were {stored} and are {current} now")
    columns = description.get("columns")
    return found if columns is None else found.on(*columns)


def _load(suite: str) -> str | None:
    """Import the module of a suite; a problem of another package's is returned, not raised."""
    if suite not in SUITES:
        return None
    problem = _problem(suite)
    if problem is None:
        _ = SUITES[suite]
    return problem


@cache
def _problem(suite: str) -> str | None:
    problem = SUITES.problem(suite)
    if problem is None:
        return None
    # Remove what the module registered before it failed.
    for name in [name for name in _registered if suite_of(name) == suite]:
        del _registered[name]
    return f"suite {problem}"


def _near(name: object) -> str:
    suite = suite_of(str(name))
    same_suite = [known for known in names() if suite and suite_of(known) == suite]
    if same_suite:
        return suggest(name, same_suite)
    without_suite = [known for known in names() if known.partition(".")[2] == name]
    close = without_suite or difflib.get_close_matches(str(name), names(), n=1, cutoff=0.6)
    meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    own = [known for known in names() if not suite_of(known)]
    return f"{meant}known: {', '.join([*own, *(f'{suite}.…' for suite in _suites())])}; see testifai list perturbations"


def _suites() -> list[str]:
    return sorted({*map(suite_of, names()), *SUITES} - {""})


def _same_source(one: Function, other: Function) -> bool:
    """Return True if the same source was run again, as in a notebook."""
    place = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (one, other)]
    unnamed = place[0][1] is None or place[0][1].endswith("<lambda>")
    return one is other or (place[0] == place[1] and not unnamed)


def _first_line(documented: object) -> str:
    return next(iter((getattr(documented, "__doc__", None) or "").strip().splitlines()), "")
