"""Exact inference in a network of named variables, by pyAgrum."""

from __future__ import annotations

import difflib
import importlib
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property
from typing import Any

import numpy as np

from testifai.errors import InputError, suggest
from testifai.support.types import Floats, Record, RecordLike

SHOWN = 3  # states, the most probable
MOST_LISTED = 12  # states in an error
MOST_CELLS = 5_000_000  # numbers in one table


@dataclass(frozen=True, eq=False)
class NetworkNode:
    """A variable: its states, its parents and its table (parents in turn, then its own states)."""

    name: str
    states: tuple[Any, ...]
    parents: tuple[str, ...]
    table: Floats = field(repr=False)

    def number(self, state: Any) -> int:
        for words, word in ((self.states, state), (tuple(map(str, self.states)), str(state))):
            if word in words:
                return words.index(word)
        raise InputError(f"given: {self.name} = {state!r}; {_meant(str(state), [str(one) for one in self.states])}")


@dataclass(frozen=True, eq=False)
class Posterior:
    """The joint probability of some variables: an array with one axis for each, and their states."""

    names: tuple[str, ...]
    states: tuple[tuple[Any, ...], ...]
    probabilities: Floats

    def __repr__(self) -> str:
        first = "; ".join(f"{words}: {p:.3f}" for words, p in self.ranked(SHOWN))
        return f"<Posterior of {', '.join(self.names)}: {first}>"

    def ranked(self, most: int | None = None) -> list[tuple[Record, float]]:
        flat = self.probabilities.reshape(-1)
        order = np.argsort(-flat, kind="stable")[:most]
        found = []
        for place in order[flat[order] > 0].tolist():
            at = np.unravel_index(place, self.probabilities.shape)
            words = {name: states[i] for name, states, i in zip(self.names, self.states, at, strict=True)}
            found.append((words, float(flat[place])))
        return found

    def as_dict(self) -> Record:
        probabilities = [{"states": words, "p": p} for words, p in self.ranked()]
        return {"names": list(self.names), "probabilities": probabilities}


class Inference:
    """A network as its variables, parents before children."""

    def __init__(self, nodes: Sequence[NetworkNode]) -> None:
        self.nodes = {node.name: node for node in nodes}

    def node(self, name: str) -> NetworkNode:
        if name not in self.nodes:
            raise InputError(f"given: no variable {name!r}; {suggest(name, self.nodes)}")
        return self.nodes[name]

    def posterior(self, names: Sequence[str], given: RecordLike | None = None) -> Posterior:
        """Return the joint probability of some variables given states of others; a list allows several states."""
        if not names or len(set(names)) < len(names):
            raise InputError(f"names: {', '.join(names) or 'none'}; accepted: one or more different variables")
        targets = [self.node(name) for name in names]
        evidence = {name: self._likelihood(name, state) for name, state in (given or {}).items()}
        cells = math.prod(len(node.states) for node in targets)
        if cells > MOST_CELLS:
            raise InputError(f"names: {cells:,} combinations of {', '.join(names)}; accepted: up to {MOST_CELLS:,}")
        engine = self._propagated(evidence, [names[0]] if len(names) == 1 else [set(names)])
        if engine is None:
            said = ", ".join(f"{name} = {state}" for name, state in (given or {}).items())
            raise InputError(f"given: {said} has probability 0 under the profile; accepted: what it allows to happen")
        found = engine.posterior(names[0]) if len(names) == 1 else engine.jointPosterior(set(names))
        axes = list(reversed(found.names))
        array = found.toarray().transpose([axes.index(name) for name in names])
        probabilities = np.ascontiguousarray(array[tuple(slice(0, len(node.states)) for node in targets)])
        return Posterior(tuple(names), tuple(node.states for node in targets), probabilities)

    def marginals(self, names: Sequence[str], given: RecordLike | None = None) -> list[Floats] | None:
        """Return the probabilities of each variable's states; None if what is given is impossible."""
        targets = [self.node(name) for name in names]
        evidence = {name: self._likelihood(name, state) for name, state in (given or {}).items()}
        engine = self._propagated(evidence, names)
        if engine is None:
            return None
        return [engine.posterior(node.name).toarray()[: len(node.states)] for node in targets]

    def with_tables(self, tables: Mapping[str, Floats]) -> Inference:
        made = Inference([replace(node, table=tables.get(name, node.table)) for name, node in self.nodes.items()])
        made.graph = _pyagrum().BayesNet(self.graph)
        for name in tables:
            _fill(made.graph, made.nodes[name])
        return made

    @cached_property
    def graph(self) -> Any:
        """The network as a pyAgrum.BayesNet, with the same names and states."""
        gum = _pyagrum()
        graph = gum.BayesNet("testifai")
        for node in self.nodes.values():
            graph.add(gum.LabelizedVariable(node.name, node.name, _labels(node.states)))
        for node in self.nodes.values():
            for parent in node.parents:
                graph.addArc(parent, node.name)
            _fill(graph, node)
        return graph

    def _likelihood(self, name: str, state: Any) -> list[float]:
        node = self.node(name)
        several = isinstance(state, list | set | frozenset | range)
        chosen = {node.number(one) for one in (state if several else [state])}
        if not chosen:
            raise InputError(f"given: {name} has no state left; accepted: at least one")
        return [float(n in chosen) for n in range(self.graph.variable(name).domainSize())]

    def _propagated(self, evidence: Mapping[str, list[float]], targets: Sequence[str | set[str]]) -> Any:
        """Return an engine with the posterior of every target, a variable or several; None if impossible."""
        gum = _pyagrum()
        engine = gum.LazyPropagation(self.graph)
        engine.setNumberOfThreads(1)  # sums in one order: the same bits each time
        for name, likelihood in evidence.items():
            engine.addEvidence(name, likelihood)
        for target in targets:
            if isinstance(target, str):
                engine.addTarget(target)
            else:
                engine.addJointTarget(target)
        try:
            engine.makeInference()
            return engine if not evidence or engine.evidenceProbability() > 0 else None
        except gum.IncompatibleEvidence:
            return None


def _fill(graph: Any, node: NetworkNode) -> None:
    names = [*node.parents, node.name]
    table = np.zeros([graph.variable(name).domainSize() for name in names])
    table[..., 0] = 1  # of the state added to a single one
    table[tuple(slice(0, size) for size in node.table.shape)] = node.table
    # pyAgrum's axes are a table's names from last to first.
    order = [names.index(name) for name in reversed(graph.cpt(node.name).names)]
    graph.cpt(node.name)[:] = np.ascontiguousarray(table.transpose(order))


def _meant(word: str, states: Sequence[str]) -> str:
    listed = "accepted: " + ", ".join(states[:MOST_LISTED]) + (", ..." if len(states) > MOST_LISTED else "")
    close = difflib.get_close_matches(word, states, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}? ({listed})" if close else listed


def _labels(states: Sequence[Any]) -> list[str]:
    """Return labels for pyAgrum: all different, and at least two."""
    labels = [str(state) for state in states]
    if len(set(labels)) < len(labels):
        labels = [f"{label} ({place})" for place, label in enumerate(labels)]
    return [*labels, "nothing else"] if len(labels) == 1 else labels


def _pyagrum() -> Any:
    try:
        return importlib.import_module("pyagrum")
    except ImportError:
        raise InputError("network: needs pyAgrum; install it with: pip install 'testifai[bayes]'") from None
