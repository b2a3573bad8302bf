"""The network of the surrogate `bayes_net` as one of pyAgrum, to be asked and drawn there."""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.surrogates.base import Floats
from testifai.surrogates.bayes_net.structure import Group, Structure


def build(structure: Structure, survival: Floats, names: Sequence[str]) -> Any:
    """Nodes: severities by name, survives_NAME and survives_NAME_NAME, passes_1, passes_2, ... and correct."""
    try:
        gum: Any = importlib.import_module("pyagrum")
    except ImportError:
        raise InputError("graph: needs pyAgrum; install it with: pip install 'testifai[bayes]'") from None
    graph = gum.BayesNet("bayes_net")
    for name, levels in zip(names, structure.levels, strict=True):
        labels = list(map(str, levels.tolist()))
        node = graph.add(gum.LabelizedVariable(name, name, labels if len(labels) > 1 else [*labels, "nothing else"]))
        graph.cpt(node)[:] = np.full(max(len(labels), 2), 1 / max(len(labels), 2))
    last = _add(gum, graph, "survives", [], np.array([1 - survival[0], survival[0]]))
    for number, group in enumerate(structure.groups, start=1):
        axes = [names[j] for j in group.axes]
        own = _add(gum, graph, "_".join(["survives", *axes]), axes, _table(structure, survival, group))
        name = "correct" if number == len(structure.groups) else f"passes_{number}"
        both = np.zeros((2, 2, 2))
        both[..., 0] = 1
        both[1, 1] = 0, 1
        last = _add(gum, graph, name, [last, own], both)
    return graph


def _table(structure: Structure, survival: Floats, group: Group) -> Floats:
    """(severities of the axes, survived): certain where all are off."""
    at = np.ix_(*(structure.bins[j] for j in group.axes))
    known = np.append(survival[: structure.size], 1.0)[group.cells[at]]
    known[(0,) * len(group.axes)] = 1
    table = np.ones([max(size, 2) for size in known.shape])
    table[tuple(slice(0, size) for size in known.shape)] = known
    return np.stack([1 - table, table], axis=-1)


def _add(gum: Any, graph: Any, name: str, parents: Sequence[str], table: Floats) -> str:
    graph.add(gum.LabelizedVariable(name, name, ["no", "yes"]))
    for parent in parents:
        graph.addArc(parent, name)
    names = [*parents, name]
    # pyAgrum's axes are a table's names from last to first.
    order = [names.index(one) for one in reversed(graph.cpt(name).names)]
    graph.cpt(name)[:] = np.ascontiguousarray(table.transpose(order))
    return name
