"""How often conditions are met in operation: stated probabilities of severities, through a context if need be.

A profile says for each property how probable its severities are. It may do so given other variables: a context such
as the weather, which is no property itself, or other properties.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError, suggest
from testifai.tomogram.statements import Domain, Floats, Stated, Variable, mappings

MOST_TURNS = 100  # at drawing what is given


class Profile:
    """Statements about how probable severities are, by the name of what they are about.

    A statement is a mapping of states to probabilities that add up to 1 (severities not named have none), or one of
    those for every state of what it depends on, named by `given`; for several, nested in that order. A name that is no
    property is a context. Properties without a statement are off. All of it can be written in TOML or JSON.

    >>> profile = Profile({
    ...     "weather": {"clear": 0.8, "foggy": 0.2},
    ...     "fog": {"given": "weather", "clear": {0: 1.0}, "foggy": {1: 0.5, 2: 0.5}},
    ... })
    >>> known = profile.over({"fog": (0, 1, 2), "noise": (0, 1)})
    >>> known.joint(["fog"]).tolist(), known.joint(["weather"], {"fog": 2}).tolist()
    ([0.8, 0.1, 0.1], [0.0, 0.1])
    """

    def __init__(self, statements: Mapping[str, Any] | Iterable[Mapping[str, Any]]) -> None:
        parts = [statements] if isinstance(statements, Mapping) else list(mappings(statements))
        self.statements: tuple[tuple[str, Mapping[str, Any]], ...] = tuple(
            (name, statement) for part in parts for name, statement in part.items()
        )
        for name, statement in self.statements:
            if not isinstance(name, str) or not name.isidentifier():
                raise InputError(f"profile: the name {name!r}; accepted: names made of letters, digits and _")
            if not isinstance(statement, Mapping) or not statement:
                raise InputError(
                    f"profile: {name} = {statement!r}; accepted: state -> probability, such as {{0: 0.9, 1: 0.1}}"
                )

    @classmethod
    def single(cls, properties: Mapping[str, Sequence[int]]) -> Profile:
        """Exactly one property at a time, all equally probable, and so are its severities: the published tests.

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
        statements: dict[str, Any] = {"property": {name: 1 / len(chosen) for name in chosen}}
        for name, severities in chosen.items():
            spread = {severity: 1 / len(severities) for severity in severities}
            statements[name] = {
                "given": "property",
                **{other: spread if other == name else {0: 1.0} for other in chosen},
            }
        return cls(statements)

    @classmethod
    def together(cls, properties: Sequence[str], probabilities: Mapping[tuple[int, ...], float]) -> Profile:
        """Severities of several properties stated together, whatever their dependence.

        >>> profile = Profile.together(["fog", "noise"], {(0, 0): 0.7, (2, 1): 0.3})
        >>> profile.over({"fog": (0, 1, 2), "noise": (0, 1)}).joint(["fog", "noise"]).tolist()
        [[0.7, 0.0], [0.0, 0.0], [0.0, 0.3]]
        """
        for sigma in probabilities:
            if not isinstance(sigma, tuple) or len(sigma) != len(properties):
                raise InputError(f"profile: {sigma!r}; accepted: one severity for each of {', '.join(properties)}")
        words = {sigma: ", ".join(map(str, sigma)) for sigma in probabilities}
        statements: dict[str, Any] = {"configuration": {words[sigma]: p for sigma, p in probabilities.items()}}
        for place, name in enumerate(properties):
            statements[name] = {"given": "configuration", **{words[sigma]: {sigma[place]: 1.0} for sigma in words}}
        return cls(statements)

    def over(
        self,
        severities: Mapping[str, Sequence[int]],
        words: Mapping[str, Mapping[str, int]] | None = None,
        classes: Sequence[str] | None = None,
    ) -> Known:
        """The profile of a space or system with these properties: checked, complete, in an order without cycles."""
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
    """A profile's variables, parents before children."""

    variables: tuple[Variable, ...]
    properties: tuple[str, ...]

    @cached_property
    def by_name(self) -> dict[str, Variable]:
        return {variable.name: variable for variable in self.variables}

    @property
    def context(self) -> tuple[str, ...]:
        """What is neither a property nor the class."""
        return tuple(v.name for v in self.variables if v.name not in {*self.properties, "class"})

    def variable(self, name: str) -> Variable:
        if name not in self.by_name:
            raise InputError(f"given: no variable {name!r}; {suggest(name, self.by_name)}")
        return self.by_name[name]

    def support(self, name: str) -> NDArray[np.intp]:
        """The positions of the states that have a probability."""
        return np.flatnonzero(self.joint([name]))

    def joint(
        self,
        names: Sequence[str],
        given: Mapping[str, Any] | None = None,
        among: Mapping[str, NDArray[np.intp]] | None = None,
    ) -> Floats:
        """The probability of every combination of these variables' states, and of what is given.

        `among` leaves only some positions of variables, in the result too.
        """
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
        product: Floats = np.einsum(*operands, [label[name] for name in names], optimize="greedy")
        return product

    def draw(
        self, names: Sequence[str], count: int, generator: np.random.Generator, given: Mapping[str, Any] | None = None
    ) -> NDArray[np.intp]:
        """So many draws of the states of these variables, a row each, as positions, from those with what is given.

        Draws without it are thrown away, so that what is given must not be too rare.
        """
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
    """A property without a statement is off; classes are equally probable."""
    if name == "class":
        return Variable(name, domain.states, (), np.full(len(domain.states), 1 / len(domain.states)))
    return Variable(name, domain.states, (), np.array([float(state == 0) for state in domain.states]))
