"""ONNX text models: a graph that takes token ids, and its tokenizer.json."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.models import onnx_session as graphs
from testifai.models.outputs import as_rows
from testifai.models.texts.base import LIMIT_MB, Text, TextModel, Tokenizer, Tokens, of_equal_length
from testifai.support.batches import Batch
from testifai.support.fingerprints import fingerprint_files
from testifai.support.types import Array, Record

_INTEGERS = {"tensor(int64)": np.int64, "tensor(int32)": np.int32}
_INPUTS = ("input_ids", "attention_mask", "token_type_ids")


class OnnxTextModel(TextModel):
    """From texts, or pairs of texts, to a graph's output; its inputs are identified by name, or the only one."""

    def __init__(
        self,
        path: str | Path,
        *,
        tokenizer: str | Path,
        output: str | None = None,
        features: str | None = None,
        cache_mb: float = LIMIT_MB,
        max_length: int | None = None,
        threads: int = 1,
        batch_size: int | None = None,
    ) -> None:
        super().__init__(cache_mb=cache_mb, batch_size=batch_size)
        self.path, self.name = Path(path), Path(path).name
        self._session = graphs.open_session(self.path, threads)
        self.repeatable = not graphs.draws(self.path)
        self._inputs = _named_inputs(self.name, self._session.get_inputs())
        self._rows, self._length = graphs.sizes(self._inputs["input_ids"])  # None if the graph leaves them open
        if self._length is not None and "attention_mask" not in self._inputs:
            raise InputError(
                f"model: {self.name} takes {self._length} tokens and no attention_mask: it cannot tell text from "
                "padding"
            )
        self._tokenizer_path = Path(tokenizer)
        shortest = min((size for size in (max_length, self._length) if size is not None), default=None)
        self.tokenizer = Tokenizer.read(self._tokenizer_path, max_length=shortest)
        self._found = found = graphs.GraphOutputs.find(self.name, self._session, output, features)
        self.output, self.features_output = found.output, found.features
        self.outputs, self.classes = found.kind, found.classes
        told = {"output": output, "max_length": max_length}
        self.preprocessing = {option: value for option, value in told.items() if value is not None}

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint_files({"tokenizer": self._tokenizer_path, **graphs.model_files(self.path)})

    def __call__(self, batch: Batch) -> Array:
        return self._found.flat(super().__call__(batch))

    def scores(self, texts: list[Text]) -> Array:
        (rows,) = self._run(texts, [self.output])
        return rows

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        """Return outputs and, from the same pass, another output of the graph; by default the features output."""
        layer = self.features_output if layer is None else layer
        known = ", ".join(node.name for node in self._session.get_outputs())
        if layer is None:
            raise InputError(f"{self.name}: has no features output; name one with features = (its outputs: {known})")
        if layer not in known.split(", "):
            raise InputError(f"layer: {self.name} has no output {layer!r}; known: {known}")
        outputs, activations = self._run(self._texts(batch), [self.output, layer])
        return self._found.flat(outputs), activations

    def _run(self, texts: list[Text], names: list[str]) -> list[Array]:
        tokens = self.tokenizer(texts or [""])
        lengths = [self._length or len(one.ids) for one in tokens]
        parts: list[list[Array]] = [[] for _ in names]
        order = []
        for group in of_equal_length(lengths):
            size = self._rows or len(group)
            for start in range(0, len(group), size):
                places = group[start : start + size]
                made = self._infer([tokens[place] for place in places], lengths[places[0]], names)
                for kept, name, rows in zip(parts, names, made, strict=True):
                    rows = rows[: len(places)]
                    # A layer is reduced to one row per text, the output stays as it is.
                    kept.append(rows if name == names[0] else as_rows(rows, len(places), name))
                order.append(places)
        back = np.argsort(np.concatenate(order))
        return [np.concatenate(kept)[back][: len(texts)] for kept in parts]

    def _infer(self, tokens: list[Tokens], length: int, names: list[str]) -> list[Array]:
        shape = (self._rows or len(tokens), length)
        filled = {name: np.zeros(shape, _INTEGERS[node.type]) for name, node in self._inputs.items()}
        filled["input_ids"][:] = self.tokenizer.pad
        for row, one in enumerate(tokens):
            for name, values in (("input_ids", one.ids), ("attention_mask", 1), ("token_type_ids", one.types)):
                if name in filled:
                    filled[name][row, : len(one.ids)] = values
        inputs = {self._inputs[name].name: values for name, values in filled.items()}
        failed = f"{self.name}: the model failed on {shape[0]} texts of {length} tokens"
        return graphs.run(self._session, names, inputs, failed)


def _named_inputs(name: str, inputs: list[Any]) -> Record:
    named = {"input_ids": inputs[0]} if len(inputs) == 1 else {node.name: node for node in inputs}
    unknown = [node for node in named if node not in _INPUTS]
    if unknown or "input_ids" not in named:
        found = ", ".join(node.name for node in inputs)
        raise InputError(f"model: {name} takes {found}; a text model takes {', '.join(_INPUTS)} or some of them")
    for node in named.values():
        if node.type not in _INTEGERS or len(node.shape) != 2:
            raise InputError(
                f"model: {name}: input {node.name} is {node.type} {node.shape}; whole numbers (N, tokens) are accepted"
            )
    return named
