"""The names under which perturbations are found: built-in suites, those of other packages, and users' own."""

from __future__ import annotations

import difflib
import importlib
import sys
from collections.abc import Callable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

from testifai.errors import InputError, suggest
from testifai.perturb.base import Boxes, Function, Perturbation
from testifai.support.plain import plain

if TYPE_CHECKING:
    from importlib.metadata import EntryPoint

# A built-in suite is one file and one name here; it is imported when a name with its prefix is asked for.
SUITES = {
    suite: f"testifai.perturb.{suite}"
    for suite in ("classic", "cifar_c", "cure", "deeptest", "imagenet_c", "mnist_c", "text")
}
# Second names of built-in perturbations.
ALIASES = {"classic.noise": "classic.gaussian_noise"}
# Other packages announce theirs under this entry-point group: the suite's name, and the module that registers it.
ENTRY_POINTS = "testifai.perturbations"

_registered: dict[str, Perturbation] = {}


def perturbation(
    name: str,
    severities: Sequence[Any],
    summary: str = "",
    *,
    boxes: Boxes | None = None,
    growing: bool = True,
    levels: tuple[float, float] | None = None,
) -> Callable[[Function], Perturbation]:
    """Register a function f(batch, parameter, rng) as a perturbation.

    >>> @perturbation("doc_fade", severities=[1.0, 0.8, 0.6])
    ... def doc_fade(batch, factor, rng):
    ...     return batch * factor
    >>> get("doc_fade") is doc_fade
    True
    """

    def register(function: Function) -> Perturbation:
        made = Perturbation(name, function, severities, summary or _first_line(function), boxes, growing, levels)
        suite = suite_of(name)
        if suite in SUITES and not str(getattr(function, "__module__", None)).startswith("testifai.perturb."):
            raise InputError(f"perturbation name '{name}': the prefix '{suite}.' belongs to a built-in suite")
        taken = _registered.get(name)
        if taken is not None and not _same_source(taken.function, function):
            raise InputError(f"perturbation name '{name}' is taken by another function; choose another name")
        _registered[name] = made
        return made

    return register


def get(name: str) -> Perturbation:
    """The perturbation registered under a name.

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

    >>> "mnist_c.zoom" in names("mnist_c")
    True
    """
    if suite is None:
        for known in {*SUITES, *_installed()}:
            _load(known)
        return sorted(_registered)
    problem = _load(suite)
    if problem is not None:
        raise InputError(problem)
    found = sorted(name for name in _registered if suite_of(name) == suite)
    if not found:
        raise InputError(f"suite {suite!r} is not known; {suggest(suite, _suites())}")
    return found


def suite_of(name: str) -> str:
    """The suite that a name belongs to; "" for a name without one.

    >>> suite_of("mnist_c.zoom")
    'mnist_c'
    """
    prefix, dot, _ = name.partition(".")
    return prefix if dot else ""


def suite_summary(suite: str) -> str:
    """What a suite is: the first line of the docstring of the module that registers it; "" where there is none."""
    _load(suite)
    home = SUITES.get(suite) or (_installed()[suite].module if suite in _installed() else "")
    return _first_line(sys.modules.get(home))


def suite_problems() -> list[str]:
    """One line for every suite of another package that cannot be used.

    >>> suite_problems()
    []
    """
    found = []
    for point in _announced():
        used = _installed().get(point.name)
        if used is point:
            found.append(_load_installed(point.name))
        else:
            owner = f"package {_package(used)}" if used else "a built-in suite"
            found.append(f"suite {_origin(point)} is not used: the prefix belongs to {owner}")
    return [problem for problem in found if problem is not None]


def resolve(given: str | Perturbation) -> Perturbation:
    """A perturbation from its name or from itself."""
    return given if isinstance(given, Perturbation) else get(given)


def describe(given: Perturbation) -> dict[str, Any]:
    """A perturbation as JSON-able data: enough to find it again and to notice that it has changed.

    >>> describe(get("mnist_c.rotate"))
    {'name': 'mnist_c.rotate', 'severities': [0.0, 0.2, 0.4, 0.6, 0.8, 1.0]}
    """
    return {"name": given.name, "severities": plain(given.severities)}


def rebuild(description: dict[str, Any]) -> Perturbation:
    """The registered perturbation that `describe` wrote down; an InputError where its table has changed."""
    found = get(description["name"])
    stored, current = description.get("severities"), describe(found)["severities"]
    if stored is not None and stored != current:
        raise InputError(f"perturbation '{found.name}': severities were {stored} and are {current} now")
    return found


def _load(suite: str) -> str | None:
    """Import the module that registers a suite; what went wrong in another package's is returned, not raised."""
    if suite in SUITES:
        importlib.import_module(SUITES[suite])
        return None
    return _load_installed(suite) if suite in _installed() else None


@cache
def _load_installed(suite: str) -> str | None:
    point = _installed()[suite]
    try:
        point.load()
    except (Exception, SystemExit) as error:
        # What it had registered before it failed is half a suite.
        for name in [name for name in _registered if suite_of(name) == suite]:
            del _registered[name]
        reason = " ".join(f"{type(error).__name__}: {error}".split())
        return f"suite {_origin(point)} could not be imported: {reason}"
    return None


@cache
def _installed() -> dict[str, EntryPoint]:
    """The suites of other packages by name; of two with one name the first on the path counts."""
    return {point.name: point for point in reversed(_announced()) if point.name not in SUITES}


@cache
def _announced() -> tuple[EntryPoint, ...]:
    from importlib.metadata import entry_points

    return tuple(entry_points(group=ENTRY_POINTS))


def _origin(point: EntryPoint) -> str:
    return f"'{point.name}' (package {_package(point)})"


def _package(point: EntryPoint) -> str:
    return point.dist.name if point.dist else point.module


def _near(name: object) -> str:
    """Words for an unknown name: those that may be meant, and the suites; there are too many names to list."""
    suite = suite_of(str(name))
    same_suite = [known for known in names() if suite and suite_of(known) == suite]
    if same_suite:
        return suggest(name, same_suite)
    without_suite = [known for known in names() if known.partition(".")[2] == name]
    close = without_suite or difflib.get_close_matches(str(name), names(), n=1, cutoff=0.6)
    meant = f"did you mean {' or '.join(map(repr, close))}? " if close else ""
    own = [known for known in names() if not suite_of(known)]
    return f"{meant}known: {', '.join([*own, *(f'{suite}.…' for suite in _suites())])}; see testifai perturbations"


def _suites() -> list[str]:
    return sorted({*map(suite_of, names()), *SUITES} - {""})


def _same_source(one: Function, other: Function) -> bool:
    """Whether this is one piece of source run again, as in a notebook."""
    place = [(getattr(f, "__module__", None), getattr(f, "__qualname__", None)) for f in (one, other)]
    unnamed = place[0][1] is None or place[0][1].endswith("<lambda>")
    return one is other or (place[0] == place[1] and not unnamed)


def _first_line(documented: Any) -> str:
    return next(iter((getattr(documented, "__doc__", None) or "").strip().splitlines()), "")
