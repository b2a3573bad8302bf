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
        """Where a state stands."""
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
        """The combinations that can be, most probable first."""
        flat = self.probabilities.reshape(-1)
        order = np.argsort(-flat, kind="stable")[:most]
        found = []
        for place in order[flat[order] > 0].tolist():
            at = np.unravel_index(place, self.probabilities.shape)
            words = {name: states[i] for name, states, i in zip(self.names, self.states, at, strict=True)}
            found.append((words, float(flat[place])))
        return found

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        ranked = self.ranked()
        return {"names": list(self.names), "probabilities": [{"states": words, "p": p} for words, p in ranked]}


class Inference:
    """A network as its variables, parents before children.

    >>> fog = NetworkNode("fog", (0, 1), (), np.array([0.75, 0.25]))
    >>> wet = NetworkNode("wet", (True, False), ("fog",), np.array([[0.1, 0.9], [0.7, 0.3]]))
    >>> Inference([fog, wet]).posterior(["fog"], {"wet": True}).probabilities.round(2).tolist()
    [0.3, 0.7]
    """

    def __init__(self, nodes: Sequence[NetworkNode]) -> None:
        self.nodes = {node.name: node for node in nodes}

    def node(self, name: str) -> NetworkNode:
        """A variable by its name."""
        if name not in self.nodes:
            raise InputError(f"given: no variable {name!r}; {suggest(name, self.nodes)}")
        return self.nodes[name]

    def posterior(self, names: Sequence[str], given: RecordLike | None = None) -> Posterior:
        """The joint probability of some variables given the states of others; a list of states leaves these open."""
        if not names or len(set(names)) < len(names):
            raise InputError(f"names: {', '.join(names) or 'none'}; accepted: one or more different variables")
        targets = [self.node(name) for name in names]
        evidence = {name: self._likelihood(name, state) for name, state in (given or {}).items()}
        cells = math.prod(len(node.states) for node in targets)
        if cells > MOST_CELLS:
            raise InputError(f"names: {cells:,} combinations of {', '.join(names)}; accepted: up to {MOST_CELLS:,}")
        probabilities = self._infer(targets, evidence)
        if probabilities is None:
            said = ", ".join(f"{name} = {state}" for name, state in (given or {}).items())
            raise InputError(f"given: {said} has probability 0 under the profile; accepted: what it allows to happen")
        return Posterior(tuple(names), tuple(node.states for node in targets), probabilities)

    def marginals(self, names: Sequence[str], given: RecordLike | None = None) -> list[Floats] | None:
        """The probabilities of each variable's states by itself; None where what is given cannot be."""
        targets = [self.node(name) for name in names]
        evidence = {name: self._likelihood(name, state) for name, state in (given or {}).items()}
        engine = self._propagated(evidence, names)
        if engine is None:
            return None
        return [engine.posterior(node.name).toarray()[: len(node.states)] for node in targets]

    def with_tables(self, tables: Mapping[str, Floats]) -> Inference:
        """The same network but for the tables of some variables."""
        changed = [
            replace(node, table=tables[node.name]) if node.name in tables else node for node in self.nodes.values()
        ]
        made = Inference(changed)
        made.graph = _pyagrum().BayesNet(self.graph)
        for name in tables:
            _fill(made.graph, made.nodes[name])
        return made

    @cached_property
    def graph(self) -> Any:
        """The network as a pyAgrum.BayesNet, for its own tools; names and states are called as here."""
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

    def _infer(self, targets: Sequence[NetworkNode], evidence: Mapping[str, list[float]]) -> Floats | None:
        """The posterior of the targets together; None where the evidence cannot be."""
        names = {node.name for node in targets}
        engine = self._propagated(evidence, [targets[0].name] if len(names) == 1 else [names])
        if engine is None:
            return None
        found = engine.posterior(targets[0].name) if len(names) == 1 else engine.jointPosterior(names)
        axes = list(reversed(found.names))
        array = found.toarray().transpose([axes.index(node.name) for node in targets])
        return np.ascontiguousarray(array[tuple(slice(0, len(node.states)) for node in targets)])

    def _propagated(self, evidence: Mapping[str, list[float]], targets: Sequence[str | set[str]]) -> Any:
        """An engine that knows the posterior of every target, a variable or several together; None as above."""
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
    """Hand a variable's table to pyAgrum."""
    names = [*node.parents, node.name]
    table = np.zeros([graph.variable(name).domainSize() for name in names])
    table[..., 0] = 1  # of states that are there only to make two
    table[tuple(slice(0, size) for size in node.table.shape)] = node.table
    # pyAgrum's axes are a table's names from last to first.
    order = [names.index(name) for name in reversed(graph.cpt(node.name).names)]
    graph.cpt(node.name)[:] = np.ascontiguousarray(table.transpose(order))


def _meant(word: str, states: Sequence[str]) -> str:
    """The states there are, the first of very many, and which of them was probably meant."""
    listed = "accepted: " + ", ".join(states[:MOST_LISTED]) + (", ..." if len(states) > MOST_LISTED else "")
    close = difflib.get_close_matches(word, states, n=1, cutoff=0.6)
    return f"did you mean {close[0]!r}? ({listed})" if close else listed


def _labels(states: Sequence[Any]) -> list[str]:
    """What pyAgrum may call states: all different, and never a single one."""
    labels = [str(state) for state in states]
    if len(set(labels)) < len(labels):
        labels = [f"{label} ({place})" for place, label in enumerate(labels)]
    return [*labels, "nothing else"] if len(labels) == 1 else labels


def _pyagrum() -> Any:
    try:
        return importlib.import_module("pyagrum")
    except ImportError:
        raise InputError("network: needs pyAgrum; install it with: pip install 'testifai[bayes]'") from None
