"""Vectors of the tokens of texts, from an encoder in a local folder or from any function."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from testifai.engine.inference import attempt
from testifai.errors import InputError
from testifai.support import libraries
from testifai.support.checks import whole

Vectors = NDArray[np.float32]


class TokenEncoder(Protocol):
    """Texts in, a table for each out: a row per token, scaled to length 1."""

    fingerprint: str

    def __call__(self, texts: Sequence[str]) -> list[Vectors]: ...


class FolderEncoder:
    """A network of transformers in a local folder; `layer` counts from 0, the embeddings, or back from the last.

    Marks that a tokenizer adds to every text, such as [CLS] and [SEP], are left out. Texts longer than `max_length`
    tokens, by default all that the network reads, are cut off.
    """

    def __init__(self, folder: Path, *, layer: int = -1, max_length: int | None = None) -> None:
        from testifai.models.texts.encoder import Encoder

        try:
            encoder = Encoder(folder, max_length=max_length)
        except InputError as problem:
            raise InputError(f"quality: encoder: {str(problem).removeprefix('model: ')}") from None
        self._network, self.fingerprint, self._layer = encoder.network, encoder.fingerprint, layer
        # What is left of a text of nothing.
        self._marks = sorted(set(self._network.tokenizer([""])[0].ids))
        layers = int(getattr(self._network.module.config, "num_hidden_layers", 0))
        if layers and not -layers - 1 <= layer <= layers:
            raise InputError(f"quality: layer = {layer} is not accepted; the encoder's are 0 to {layers} (or -1, …)")

    def __call__(self, texts: Sequence[str]) -> list[Vectors]:
        from testifai.models.texts.tokens import of_equal_length

        torch: Any = libraries.load("torch", extra="text")
        ids = [one.ids for one in self._network.tokenizer(texts)]
        found: list[Vectors] = [np.empty((0, 0), np.float32)] * len(ids)
        with torch.inference_mode():
            for places in of_equal_length([len(one) for one in ids]):
                tokens = np.array([ids[place] for place in places.tolist()])
                inputs = torch.from_numpy(tokens).to(self._network.device)
                states = self._network.module(input_ids=inputs, output_hidden_states=True).hidden_states[self._layer]
                counted = ~np.isin(tokens, self._marks)
                for place, vectors, kept in zip(places.tolist(), states.float().cpu().numpy(), counted, strict=True):
                    found[place] = unit_rows(vectors[kept])
        return found


class FunctionEncoder:
    """Any function texts → a table for each, a row per token."""

    def __init__(self, function: Callable[[list[str]], Any]) -> None:
        from testifai.models.python import PythonModel

        self.function, self.fingerprint = function, PythonModel(function).fingerprint

    def __call__(self, texts: Sequence[str]) -> list[Vectors]:
        tables = [np.asarray(table, np.float32) for table in attempt(self.function, list(texts))]
        if len(tables) != len(texts) or any(table.ndim != 2 for table in tables):
            raise InputError("quality: encoder: its function must give a table (tokens, numbers) for each text")
        return [unit_rows(table) for table in tables]


def load_encoder(
    given: Any, *, layer: int = -1, max_length: int | None = None, folder: str | Path = "."
) -> TokenEncoder:
    """An encoder by the path of its folder, or a function."""
    whole("quality: layer", layer)
    if isinstance(given, str | Path):
        return FolderEncoder(Path(folder, given), layer=layer, max_length=max_length)
    if isinstance(given, type) or not callable(given):
        raise InputError(f"quality: encoder = {given!r} is not accepted; the path of a folder of transformers is")
    return FunctionEncoder(given)


def unit_rows(table: NDArray[Any]) -> Vectors:
    """Rows scaled to length 1; rows of zeros stay.

    >>> unit_rows(np.array([[3.0, 4.0], [0.0, 0.0]])).round(1).tolist()
    [[0.6000000238418579, 0.800000011920929], [0.0, 0.0]]
    """
    lengths = np.linalg.norm(table, axis=1, keepdims=True)
    rows: Vectors = (table / np.where(lengths > 0, lengths, 1)).astype(np.float32)
    return rows
