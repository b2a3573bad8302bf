"""Operational profiles: statements on how probable severities are, checked and read as a Bayesian network."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from graphlib import CycleError, TopologicalSorter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.support.types import Floats, Record, RecordLike

State = str | int

TOLERANCE = 1e-6  # within which stated probabilities must add up to 1
MOST_CELLS = 5_000_000  # numbers in one table


@dataclass(frozen=True)
class Domain:
    states: tuple[State, ...]
    words: Mapping[str, State]

    def index(self, key: Any, what: str) -> int:
        """Return the position of a state, given as itself, by one of its words, or as a number in text."""
        if key in self.states and not isinstance(key, bool):
            return self.states.index(key)
        text = str(key).strip()
        if text in self.words:
            return self.states.index(self.words[text])
        named = [str(state) for state in self.states]
        if text not in named or isinstance(key, float):
            raise InputError(f"{what}; accepted: {', '.join(named)}")
        return named.index(text)


@dataclass(frozen=True)
class Variable:
    """One node: its states and their probabilities given its parents' (table: parents in turn, then its own states)."""

    name: str
    states: tuple[State, ...]
    parents: tuple[str, ...]
    table: Floats

    def number(self, state: Any) -> int:
        return Domain(self.states, {}).index(state, f"given: {self.name} = {state!r}")


@dataclass(frozen=True)
class Stated:
    """Statements by name: parents, conditional statement, additional plain probabilities, and states."""

    parents: dict[str, tuple[str, ...]]
    rows: dict[str, RecordLike]
    overall: dict[str, RecordLike]
    domains: dict[str, Domain]

    @classmethod
    def of(cls, statements: Iterable[tuple[str, RecordLike]], domains: Mapping[str, Domain]) -> Stated:
        made = cls({}, {}, {}, {})
        for name, statement in statements:
            made._add(name, statement)
        for name, row in made.rows.items():
            states = dict.fromkeys(str(key) for one in _leaves(row, len(made.parents[name])) for key in one)
            made.domains[name] = domains.get(name) or Domain(tuple(states), {})
        made._check_names(domains)
        return made

    def _add(self, name: str, statement: RecordLike) -> None:
        parents = _parents(name, statement)
        row = {key: value for key, value in statement.items() if key != "given"}
        if name not in self.rows:
            self.parents[name], self.rows[name] = parents, row
        elif parents == self.parents[name] and row == self.rows[name]:
            return
        elif bool(parents) != bool(self.parents[name]) and name not in self.overall:
            # Overall probabilities in addition to conditional ones: compared once the rest is known.
            self.overall[name] = row if not parents else self.rows[name]
            if parents:
                self.parents[name], self.rows[name] = parents, row
        else:
            raise InputError(f"profile: {name} is stated twice, with different probabilities; accepted: one statement")

    def _check_names(self, domains: Mapping[str, Domain]) -> None:
        used = {parent for parents in self.parents.values() for parent in parents}
        for name, parents in self.parents.items():
            for parent in parents:
                if parent not in self.rows:
                    raise InputError(
                        f"profile: {name} depends on {parent!r}, about which nothing is stated; "
                        f"{suggest(parent, self.rows)}"
                    )
            if name not in domains and name not in used:
                raise InputError(
                    f"profile: {name!r} is no property, and no property depends on it; {suggest(name, domains)}"
                )

    def order(self) -> list[str]:
        sorter, names = TopologicalSorter(self.parents), list(self.parents)
        try:
            sorter.prepare()
        except CycleError as error:
            cycle = " -> ".join(error.args[1])
            raise InputError(f"profile: {cycle} depend on each other in a circle; accepted: no circle") from None
        done: list[str] = []
        while sorter.is_active():
            ready = sorted(sorter.get_ready(), key=names.index)
            done += ready
            sorter.done(*ready)
        return done

    def variable(self, name: str) -> Variable:
        """Return the table of one variable; NaN in rows without a statement, which `check` inspects."""
        parents = self.parents[name]
        domain, sizes = self.domains[name], [len(self.domains[parent].states) for parent in parents]
        cells = math.prod(sizes) * len(domain.states)
        if cells > MOST_CELLS:
            raise InputError(
                f"profile: the table of {name} given {', '.join(parents)} has {cells:,} numbers; "
                f"accepted: up to {MOST_CELLS:,}, with fewer variables in between"
            )
        table = np.full((*sizes, len(domain.states)), np.nan)
        self._fill(name, table, self.rows[name], (), ())
        return Variable(name, domain.states, parents, table)

    def _fill(self, name: str, table: Floats, row: Any, at: tuple[int, ...], where: tuple[str, ...]) -> None:
        parents = self.parents[name]
        what = name + (f" given {', '.join(where)}" if where else "")
        if not isinstance(row, Mapping):
            raise InputError(f"profile: {what} = {row!r}; accepted: state -> probability")
        if len(at) == len(parents):
            table[at] = _probabilities(what, row, self.domains[name])
            return
        parent = parents[len(at)]
        domain = self.domains[parent]
        for key, inner in row.items():
            place = domain.index(key, f"profile: {what} has no {parent} = {key!r}")
            self._fill(name, table, inner, (*at, place), (*where, f"{parent} = {domain.states[place]}"))

    def check(self, variables: Sequence[Variable], joint: Callable[[Sequence[str]], Floats]) -> None:
        """Raise InputError if a possible row has no statement, or if plain probabilities contradict the others."""
        states = {variable.name: variable.states for variable in variables}
        for variable in variables:
            unstated = np.isnan(variable.table).any(axis=-1)
            if unstated.any():
                met = np.broadcast_to(joint(variable.parents) if variable.parents else np.ones(()), unstated.shape)
                if (unstated & (met > 0)).any():
                    at = np.argwhere(unstated & (met > 0))[0]
                    where = [f"{p} = {states[p][i]}" for p, i in zip(variable.parents, at, strict=True)]
                    raise InputError(f"profile: nothing is stated about {variable.name} given {', '.join(where)}")
                variable.table[unstated] = 1 / len(variable.states)  # impossible: any numbers do
        for name, row in self.overall.items():
            stated, follows = _probabilities(name, row, self.domains[name]), joint([name])
            if np.abs(stated - follows).max() > TOLERANCE:
                state = int(np.abs(stated - follows).argmax())
                raise InputError(
                    f"profile: {name} = {self.domains[name].states[state]} has probability {stated[state]:g} by one "
                    f"statement and {follows[state]:g} by what it depends on; these contradict each other"
                )


def _parents(name: str, statement: RecordLike) -> tuple[str, ...]:
    given = statement.get("given", ())
    parents = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if any(not isinstance(parent, str) for parent in parents) or len(set(parents)) < len(parents):
        raise InputError(f"profile: {name} given {given!r}; accepted: a name, or a list of different names")
    return parents


def _leaves(row: Any, depth: int) -> Iterator[Mapping[Any, Any]]:
    if not isinstance(row, Mapping):
        return
    if depth == 0:
        yield row
        return
    for inner in row.values():
        yield from _leaves(inner, depth - 1)


def _probabilities(what: str, row: Mapping[Any, Any], domain: Domain) -> Floats:
    values = np.full(len(domain.states), np.nan)
    for key, value in row.items():
        place = domain.index(key, f"profile: {what} has no state {key!r}")
        if not np.isnan(values[place]):
            raise InputError(f"profile: {what} states {domain.states[place]} twice")
        number = isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:  # NaN fails here too
            raise InputError(f"profile: {what}: {key} = {value!r}; accepted: a probability from 0 to 1")
        values[place] = value
    total = np.nansum(values)
    if abs(total - 1) > TOLERANCE:
        raise InputError(f"profile: the probabilities of {what} add up to {total:g}; accepted: 1")
    return np.asarray(np.nan_to_num(values) / total)


MOST_TURNS = 100  # attempts to draw states with the given evidence


class Profile:
    """Statements about how probable severities are, by name of a property or context.

    A statement is a mapping of states to probabilities that add up to 1 (severities not named have none), or one such
    mapping for every state of its parents, named by `given`; for several, nested in that order. A name that is not a
    property is a context. Properties without a statement are off. All of it can be written in TOML or JSON.

    >>> profile = Profile({
    ...     "weather": {"clear": 0.8, "foggy": 0.2},
    ...     "fog": {"given": "weather", "clear": {0: 1.0}, "foggy": {1: 0.5, 2: 0.5}},
    ... })
    >>> known = profile.over({"fog": (0, 1, 2), "noise": (0, 1)})
    >>> known.joint(["fog"]).tolist(), known.joint(["weather"], {"fog": 2}).tolist()
    ([0.8, 0.1, 0.1], [0.0, 0.1])
    """

    def __init__(self, statements: RecordLike | Iterable[RecordLike]) -> None:
        parts: object = [statements] if isinstance(statements, Mapping) else statements
        if isinstance(parts, str | bytes) or not isinstance(parts, Iterable):
            raise InputError(f"profile: {parts!r}; accepted: name -> state -> probability")
        named: list[tuple[str, RecordLike]] = []
        for part in parts:
            if not isinstance(part, Mapping):
                raise InputError(f"profile: {part!r}; accepted: name -> state -> probability")
            named += part.items()
        self.statements = tuple(named)
        for name, statement in self.statements:
            if not isinstance(name, str) or not name.isidentifier():
                raise InputError(f"profile: the name {name!r}; accepted: names made of letters, digits and _")
            if not isinstance(statement, Mapping) or not statement:
                raise InputError(
                    f"profile: {name} = {statement!r}; accepted: state -> probability, such as {{0: 0.9, 1: 0.1}}"
                )

    @classmethod
    def single(cls, properties: Mapping[str, Sequence[int]]) -> Profile:
        """Return the profile with exactly one property at a time, all equally probable, as are its severities.

        >>> known = Profile.single({"noise": (1, 2), "rotation": (1,)}).over({"noise": (0, 1, 2), "rotation": (0, 1)})
        >>> known.joint(["noise", "rotation"]).tolist()
        [[0.0, 0.5], [0.25, 0.0], [0.25, 0.0]]
        """
        chosen = {name: [s for s in severities if s] for name, severities in properties.items()}
        empty = [name for name, severities in chosen.items() if not severities]
        if empty or not chosen:
            raise InputError(
                f"profile: {' '.join(empty) or 'no property'} has no severity but 0; accepted: at least one"
            )
        statements: Record = {"property": {name: 1 / len(chosen) for name in chosen}}
        for name, severities in chosen.items():
            spread = {severity: 1 / len(severities) for severity in severities}
            statements[name] = {
                "given": "property",
                **{other: spread if other == name else {0: 1.0} for other in chosen},
            }
        return cls(statements)

    @classmethod
    def together(cls, properties: Sequence[str], probabilities: Mapping[tuple[int, ...], float]) -> Profile:
        """Return the profile with these joint probabilities of the severities of several properties.

        >>> profile = Profile.together(["fog", "noise"], {(0, 0): 0.7, (2, 1): 0.3})
        >>> profile.over({"fog": (0, 1, 2), "noise": (0, 1)}).joint(["fog", "noise"]).tolist()
        [[0.7, 0.0], [0.0, 0.0], [0.0, 0.3]]
        """
        for sigma in probabilities:
            if not isinstance(sigma, tuple) or len(sigma) != len(properties):
                raise InputError(f"profile: {sigma!r}; accepted: one severity for each of {', '.join(properties)}")
        words = {sigma: ", ".join(map(str, sigma)) for sigma in probabilities}
        statements: Record = {"configuration": {words[sigma]: p for sigma, p in probabilities.items()}}
        for place, name in enumerate(properties):
            statements[name] = {"given": "configuration", **{words[sigma]: {sigma[place]: 1.0} for sigma in words}}
        return cls(statements)

    def over(
        self,
        severities: Mapping[str, Sequence[int]],
        words: Mapping[str, Mapping[str, int]] | None = None,
        classes: Sequence[str] | None = None,
    ) -> Known:
        """Return the profile of a space or system with these properties: checked, complete, parents first."""
        domains = {name: Domain(tuple(known), (words or {}).get(name, {})) for name, known in severities.items()}
        if classes is not None:
            domains["class"] = Domain(tuple(map(str, classes)), {})
        stated = Stated.of(self.statements, domains)
        missing = {name: Domain(domain.states, {}) for name, domain in domains.items() if name not in stated.domains}
        variables = [stated.variable(name) for name in stated.order()]
        variables += [_default(name, domain) for name, domain in missing.items()]
        known = Known(tuple(variables), tuple(severities))
        stated.check(known.variables, known.joint)
        return known


@dataclass(frozen=True)
class Known:
    variables: tuple[Variable, ...]
    properties: tuple[str, ...]

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        return {variable.name: variable for variable in self.variables}

    @property
    def context(self) -> tuple[str, ...]:
        return tuple(v.name for v in self.variables if v.name not in {*self.properties, "class"})

    def variable(self, name: str) -> Variable:
        if name not in self.by_name:
            raise InputError(f"given: no variable {name!r}; {suggest(name, self.by_name)}")
        return self.by_name[name]

    def support(self, name: str) -> NDArray[np.intp]:
        return np.flatnonzero(self.joint([name]))

    def joint(
        self, names: Sequence[str], given: RecordLike | None = None, among: Mapping[str, NDArray[np.intp]] | None = None
    ) -> Floats:
        """Return the joint probability of states and the evidence; `among` limits variables to some positions."""
        among = among or {}
        evidence = {name: self.variable(name).number(state) for name, state in (given or {}).items()}
        needed = self._ancestors([*names, *evidence])
        label = {name: place for place, name in enumerate(needed)}
        operands: list[Any] = []
        for name in needed:
            variable = self.by_name[name]
            table = variable.table
            for axis, member in enumerate((*variable.parents, name)):
                if member in among:
                    table = table.take(among[member], axis=axis)
            operands += [table, [label[member] for member in (*variable.parents, name)]]
        for name, place in evidence.items():
            chosen = np.zeros(len(self.by_name[name].states))
            chosen[place] = 1
            operands += [chosen[among[name]] if name in among else chosen, [label[name]]]
        return np.asarray(np.einsum(*operands, [label[name] for name in names], optimize="greedy"))

    def draw(
        self, names: Sequence[str], count: int, generator: np.random.Generator, given: RecordLike | None = None
    ) -> NDArray[np.intp]:
        """Return draws of these variables' states as positions; those that contradict the evidence are rejected."""
        evidence = {name: self.variable(name).number(state) for name, state in (given or {}).items()}
        kept: list[NDArray[np.intp]] = []
        for _ in range(MOST_TURNS):
            states: dict[str, NDArray[np.intp]] = {}
            for variable in self.variables:
                upto = variable.table.cumsum(axis=-1)[tuple(states[parent] for parent in variable.parents)]
                below = generator.random((count, 1)) * upto[..., -1:]
                states[variable.name] = np.count_nonzero(upto <= below, axis=-1)
            fits = np.logical_and.reduce([states[name] == place for name, place in evidence.items()], axis=0)
            kept.append(np.stack([states[name] for name in names], axis=1)[np.broadcast_to(fits, count)])
            if sum(map(len, kept)) >= count:
                return np.concatenate(kept)[:count]
        raise InputError(f"given: {dict(given or {})} is too improbable under the profile to draw configurations by it")

    def _ancestors(self, names: Iterable[str]) -> list[str]:
        found, open_names = set(), list(names)
        while open_names:
            name = open_names.pop()
            if name not in found:
                found.add(name)
                open_names += self.variable(name).parents
        return [variable.name for variable in self.variables if variable.name in found]


def _default(name: str, domain: Domain) -> Variable:
    if name == "class":
        return Variable(name, domain.states, (), np.full(len(domain.states), 1 / len(domain.states)))
    return Variable(name, domain.states, (), np.array([float(state == 0) for state in domain.states]))
