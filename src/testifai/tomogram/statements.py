"""Reading the statements of a profile: names, states, tables, and what is wrong with them."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest

Floats = NDArray[np.float64]
State = str | int

TOLERANCE = 1e-6  # within which stated probabilities must add up to 1
MOST_CELLS = 5_000_000  # numbers in one table


@dataclass(frozen=True)
class Domain:
    """The states a named variable can take, and other words for them."""

    states: tuple[State, ...]
    words: Mapping[str, State]

    def state(self, key: Any) -> State | None:
        """The state a key stands for: itself, one of its words, or a number written as text."""
        if key in self.states and not isinstance(key, bool):
            return self.states[self.states.index(key)]
        text = str(key).strip()
        if text in self.words:
            return self.words[text]
        return next((state for state in self.states if str(state) == text and not isinstance(key, float)), None)


@dataclass(frozen=True)
class Variable:
    """One node: its states and their probabilities given its parents' (table: parents in turn, then its own states)."""

    name: str
    states: tuple[State, ...]
    parents: tuple[str, ...]
    table: Floats

    def number(self, state: Any) -> int:
        """Where a state stands; InputError for one that it has not."""
        found = Domain(self.states, {}).state(state)
        if found is None:
            raise InputError(f"given: {self.name} = {state!r}; accepted: {', '.join(map(str, self.states))}")
        return self.states.index(found)


@dataclass(frozen=True)
class Stated:
    """What was stated: by name the parents and the statement, plain probabilities stated beside it, and the states."""

    parents: dict[str, tuple[str, ...]]
    rows: dict[str, Mapping[str, Any]]
    beside: dict[str, Mapping[str, Any]]
    domains: dict[str, Domain]

    @classmethod
    def of(cls, statements: Iterable[tuple[str, Mapping[str, Any]]], domains: Mapping[str, Domain]) -> Stated:
        made = cls({}, {}, {}, {})
        for name, statement in statements:
            made._add(name, statement)
        for name, row in made.rows.items():
            states = dict.fromkeys(str(key) for one in _leaves(row, len(made.parents[name])) for key in one)
            made.domains[name] = domains.get(name) or Domain(tuple(states), {})
        made._check_names(domains)
        return made

    def _add(self, name: str, statement: Mapping[str, Any]) -> None:
        parents = _parents(name, statement)
        row = {key: value for key, value in statement.items() if key != "given"}
        if name not in self.rows:
            self.parents[name], self.rows[name] = parents, row
        elif parents == self.parents[name] and row == self.rows[name]:
            return
        elif bool(parents) != bool(self.parents[name]) and name not in self.beside:
            # How probable it is overall, beside how it depends on others: to be compared once the rest is known.
            self.beside[name] = row if not parents else self.rows[name]
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
        """Names such that parents come before children."""
        done: list[str] = []
        left = dict(self.parents)
        while left:
            ready = [name for name, parents in left.items() if not set(parents) & left.keys()]
            if not ready:
                raise InputError(f"profile: {_cycle(left)} depend on each other in a circle; accepted: no circle")
            done += ready
            left = {name: parents for name, parents in left.items() if name not in ready}
        return done

    def variable(self, name: str) -> Variable:
        """The table of one variable; NaN in rows that were not stated, for `check` to judge."""
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
            state = domain.state(key)
            if state is None:
                accepted = ", ".join(map(str, domain.states))
                raise InputError(f"profile: {what} has no {parent} = {key!r}; accepted: {accepted}")
            self._fill(name, table, inner, (*at, domain.states.index(state)), (*where, f"{parent} = {state}"))

    def check(self, variables: Sequence[Variable], joint: Callable[[Sequence[str]], Floats]) -> None:
        """Refuse a row that was not stated but can be met, and plain probabilities that do not follow."""
        states = {variable.name: variable.states for variable in variables}
        for variable in variables:
            unstated = np.isnan(variable.table).any(axis=-1)
            if unstated.any():
                met = np.broadcast_to(joint(variable.parents) if variable.parents else np.ones(()), unstated.shape)
                if (unstated & (met > 0)).any():
                    at = np.argwhere(unstated & (met > 0))[0]
                    where = [f"{p} = {states[p][i]}" for p, i in zip(variable.parents, at, strict=True)]
                    raise InputError(f"profile: nothing is stated about {variable.name} given {', '.join(where)}")
                variable.table[unstated] = 1 / len(variable.states)  # never met: any numbers will do
        for name, row in self.beside.items():
            stated, follows = _probabilities(name, row, self.domains[name]), joint([name])
            if np.abs(stated - follows).max() > TOLERANCE:
                state = int(np.abs(stated - follows).argmax())
                raise InputError(
                    f"profile: {name} = {self.domains[name].states[state]} has probability {stated[state]:g} by one "
                    f"statement and {follows[state]:g} by what it depends on; these contradict each other"
                )


def mappings(statements: Any) -> Iterator[Mapping[str, Any]]:
    if isinstance(statements, str | bytes) or not isinstance(statements, Iterable):
        raise InputError(f"profile: {statements!r}; accepted: name -> state -> probability")
    for part in statements:
        if not isinstance(part, Mapping):
            raise InputError(f"profile: {part!r}; accepted: name -> state -> probability")
        yield part


def _parents(name: str, statement: Mapping[str, Any]) -> tuple[str, ...]:
    given = statement.get("given", ())
    parents = (given,) if isinstance(given, str) else tuple(given) if isinstance(given, Iterable) else (given,)
    if any(not isinstance(parent, str) for parent in parents) or len(set(parents)) < len(parents):
        raise InputError(f"profile: {name} given {given!r}; accepted: a name, or a list of different names")
    return parents


def _leaves(row: Any, depth: int) -> Iterator[Mapping[Any, Any]]:
    """The innermost mappings, of state to probability; what is none is found out when the table is filled."""
    if not isinstance(row, Mapping):
        return
    if depth == 0:
        yield row
        return
    for inner in row.values():
        yield from _leaves(inner, depth - 1)


def _probabilities(what: str, row: Mapping[Any, Any], domain: Domain) -> Floats:
    values = np.zeros(len(domain.states))
    seen: set[State] = set()
    for key, value in row.items():
        state = domain.state(key)
        if state is None:
            raise InputError(f"profile: {what} has no state {key!r}; accepted: {', '.join(map(str, domain.states))}")
        if state in seen:
            raise InputError(f"profile: {what} states {state} twice")
        number = isinstance(value, int | float | np.floating | np.integer) and not isinstance(value, bool)
        if not number or not 0 <= value <= 1:  # NaN fails here too
            raise InputError(f"profile: {what}: {key} = {value!r}; accepted: a probability from 0 to 1")
        seen.add(state)
        values[domain.states.index(state)] = value
    if abs(values.sum() - 1) > TOLERANCE:
        raise InputError(f"profile: the probabilities of {what} add up to {values.sum():g}; accepted: 1")
    return np.asarray(values / values.sum())


def _cycle(left: Mapping[str, tuple[str, ...]]) -> str:
    """Some names that depend on each other in a circle, in that sequence."""
    name, seen = next(iter(left)), []
    while name not in seen:
        seen.append(name)
        name = next(parent for parent in left[name] if parent in left)
    return " -> ".join(reversed([*seen[seen.index(name) :], name]))
