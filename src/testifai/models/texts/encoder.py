"""Sentence encoders in the folder format of sentence-transformers, with a linear head (needs the extra `text`)."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Unpack

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.models.base import Model, first_line
from testifai.models.texts.base import LIMIT_MB, NetworkPart, RowCache, Text, TextModel, check_texts
from testifai.models.texts.network import NetworkOptions, TextNetwork, check_name, fingerprint, read_config, read_json
from testifai.support import optional_imports
from testifai.support.batches import Batch, are_pairs
from testifai.support.options_base import File
from testifai.support.types import Array, Floats


@dataclass(frozen=True, eq=False)
class Head:
    """Class scores that are linear in the features."""

    coef: Floats  # rows x features
    intercept: Floats  # rows
    classes: Array | None = None

    def __post_init__(self) -> None:
        numbers = self.coef.dtype.kind == self.intercept.dtype.kind == "f"
        if not numbers or self.coef.ndim != 2 or self.intercept.shape != self.coef.shape[:1] or not self.coef.size:
            raise InputError(
                f"head: coef {self.coef.dtype} {self.coef.shape} and intercept {self.intercept.dtype} "
                f"{self.intercept.shape} do not fit; (rows, features) and (rows,) of floats do"
            )
        if not (np.isfinite(self.coef).all() and np.isfinite(self.intercept).all()):
            raise InputError("head: coef or intercept holds NaN or infinity")
        if self.classes is not None and self.classes.shape != (self.count,):
            raise InputError(f"head: classes {self.classes.shape} do not fit; {self.count} names or numbers do")

    @property
    def count(self) -> int:
        return max(2, len(self.coef))

    @property
    def columns(self) -> int:
        return int(self.coef.shape[1])

    def scores(self, features: Array) -> Floats:
        """Return scores whose softmax are the probabilities; of two classes the first has score 0."""
        # Row by row: a matrix product may add up a row differently in another batch.
        pairs = zip(self.coef, self.intercept, strict=True)
        parts = [(features * row).sum(axis=1) + constant for row, constant in pairs]
        return np.stack(parts if len(parts) > 1 else [np.zeros(len(features)), *parts], axis=1)

    @property
    def fingerprint(self) -> str:
        named = [] if self.classes is None else [str(value) for value in self.classes.tolist()]
        digest = hashlib.sha256(repr((self.coef.shape, named)).encode())
        for array in (self.coef, self.intercept):
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return digest.hexdigest()

    def write(self, path: str | os.PathLike[str]) -> None:
        named = {} if self.classes is None else {"classes": self.classes}
        with Path(path).open("wb") as file:  # NumPy would add an ending to a name
            np.savez(file, allow_pickle=False, coef=self.coef, intercept=self.intercept, **named)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Head:
        if not Path(path).is_file():
            raise InputError(
                f"model.head: {path} does not exist; "
                "make one with testifai.models.texts.encoder.fit_head(…).write(path)"
            )
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
        except Exception as error:
            raise InputError(f"model.head: {path} is not an npz file of numbers ({first_line(error, 80)})") from None
        missing = [name for name in ("coef", "intercept") if name not in found]
        if missing:
            raise InputError(f"model.head: {path} has no array {missing[0]!r}; coef and intercept are needed")
        try:
            return cls(found["coef"].astype(np.float64), found["intercept"].astype(np.float64), found.get("classes"))
        except (InputError, ValueError) as error:
            raise InputError(f"model.head: {error} (in {path})") from None


def pair_features(first: Array, second: Array) -> Array:
    """Return the features of two embeddings, [|u - v|, u * v], the same for both orders."""
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def fit_head(
    encode: Any, inputs: Sequence[str] | Sequence[tuple[str, str]], labels: ArrayLike, *, strength: float = 0.01
) -> Head:
    """Fit scikit-learn's logistic regression on the embeddings of texts or of pairs.

    `encode` is an `Encoder`, or any function from texts to rows of numbers. `strength` is the inverse weight of the
    penalty on standardised features (C).

    >>> encode = lambda texts: np.array([[len(text), 1.0] for text in texts])
    >>> head = fit_head(encode, ["a", "b", "ccc", "dddd"], [0, 0, 1, 1])
    >>> head.scores(np.array([[1.0, 1.0], [4.0, 1.0]])).argmax(axis=1).tolist()
    [0, 1]
    """
    from sklearn.linear_model import LogisticRegression

    targets = np.asarray(labels)
    if targets.shape != (len(inputs),) or len(np.unique(targets)) < 2:
        raise InputError(
            f"labels: shape {targets.shape} with {len(np.unique(targets))} classes is not accepted; one label for each "
            f"of the {len(inputs)} inputs and two classes or more are"
        )
    features = features_of(encode, list(inputs), are_pairs(list(inputs))).astype(np.float64)
    centre, spread = features.mean(axis=0), features.std(axis=0)
    spread[spread <= 1e-6 * spread.max()] = 1.0  # constant columns up to rounding
    fitted = LogisticRegression(C=strength, max_iter=1000).fit((features - centre) / spread, targets)
    coef = fitted.coef_ / spread
    classes = fitted.classes_ if not np.array_equal(fitted.classes_, np.arange(len(fitted.classes_))) else None
    return Head(coef, fitted.intercept_ - coef @ centre, classes)


def features_of(encode: Any, inputs: Sequence[Any], pairs: bool) -> Array:
    """Return the features of texts (their embeddings) or of pairs (`pair_features`)."""
    if pairs:
        texts = [text for pair in inputs for text in pair]
        rows = np.asarray(encode(texts))
        return pair_features(rows[0::2], rows[1::2])
    return np.asarray(encode(list(inputs)))


# From vectors of tokens (texts x tokens x columns) to one per text, by the names of sentence-transformers.
_POOLINGS = {
    "cls_token": lambda states: states[:, 0],
    "lasttoken": lambda states: states[:, -1],
    "max_tokens": lambda states: states.amax(dim=1),
    "mean_sqrt_len_tokens": lambda states: states.sum(dim=1) / states.shape[1] ** 0.5,
    "mean_tokens": lambda states: states.mean(dim=1),
}


class Encoder:
    """From texts to embeddings; that of a repeated text is computed once."""

    def __init__(self, folder: str | Path, *, cache_mb: float = LIMIT_MB, **options: Unpack[NetworkOptions]) -> None:
        self.folder = Path(folder)
        self._parts = _modules(self.folder)
        self._poolings, self._normalise = _poolings(self.folder, self._parts)
        longest = (read_json(self.folder / "sentence_bert_config.json") or {}).get("max_seq_length")
        options["max_length"] = options.get("max_length") or longest
        self.network = TextNetwork(_network_folder(self.folder), "AutoModel", optional="pooler.", **options)
        self._known = RowCache(cache_mb)

    @cached_property
    def columns(self) -> int:
        return int(self([""]).shape[1])

    @cached_property
    def fingerprint(self) -> str:
        return fingerprint(self.folder, sorted({"", *(part["path"] for part in self._parts)}))

    def __call__(self, texts: list[str]) -> NDArray[np.float32]:
        checked = check_texts(texts, self.folder.resolve().name, pairs=False)
        return self._known.rows(checked, lambda some: self.network.rows(some, self._pool))

    def _pool(self, outputs: Any) -> Any:
        states = outputs.last_hidden_state.float()
        torch = optional_imports.load("torch", extra="text")
        pooled = torch.cat([_POOLINGS[name](states) for name in self._poolings], dim=1)
        if self._normalise:
            pooled = pooled / pooled.norm(dim=1, keepdim=True).clamp_min(1e-12)
        return pooled


class EncoderModel(TextModel):
    """A classifier of texts or of pairs: an encoder and a head, by default head.npz in the encoder's folder."""

    outputs = "scores"
    features_output = "features"
    pairs: bool

    def __init__(
        self,
        folder: str | Path,
        *,
        head: Head | str | Path | None = None,
        cache_mb: float = LIMIT_MB,
        batch_size: int | None = None,
        **options: Unpack[NetworkOptions],
    ) -> None:
        # Embeddings are expensive and cached; scores are a sum.
        super().__init__(cache_mb=0, batch_size=batch_size)
        self.name = Path(folder).resolve().name
        read_config(_network_folder(Path(folder)))  # first: a wrong folder is more likely than a missing head
        self.head = head if isinstance(head, Head) else Head.read(Path(folder, "head.npz") if head is None else head)
        self.encoder = Encoder(folder, cache_mb=cache_mb, **options)
        columns = self.encoder.columns
        if self.head.columns not in (columns, 2 * columns):
            raise InputError(
                f"model.head: has {self.head.columns} columns; the encoder's embeddings have {columns}: "
                f"{columns} (texts) or {2 * columns} (pairs) are accepted"
            )
        self.pairs = self.head.columns == 2 * columns
        self.classes, self.class_values = self.head.count, self.head.classes
        self.preprocessing = {} if options.get("max_length") is None else {"max_length": options["max_length"]}

    @cached_property
    def fingerprint(self) -> str:
        return f"{self.encoder.fingerprint}-{self.head.fingerprint}"

    def scores(self, texts: list[Text]) -> Array:
        return self.head.scores(features_of(self.encoder, texts, self.pairs))

    def features(self, batch: Batch) -> Array:
        return features_of(self.encoder, self._texts(batch), self.pairs)

    def traced(self, batch: Batch, layer: str | None = None) -> tuple[Array, Array]:
        if layer is not None:
            raise InputError(f"layer: {layer!r}: {self.name} has features only; leave layer out")
        features = self.features(batch)
        return self.head.scores(features), features


class EncoderPart(NetworkPart):
    """A sentence encoder in a folder, and the head on its embeddings."""

    encoder: File
    """The folder, as sentence-transformers writes it."""
    head: File | None = None
    """An `.npz` file with the head on the embeddings; default: `head.npz` in the folder."""

    FILES: ClassVar = ("encoder", "head")

    @classmethod
    def recognises(cls, path: Path) -> bool:
        return (path / "modules.json").is_file()

    @classmethod
    def companions(cls, path: Path, inputs: str) -> dict[str, Path]:
        heads = [head for head in (path / "head.npz", path.parent / "head.npz") if head.is_file()]
        if not heads:
            raise InputError(f"model: {path} is a sentence encoder; put its head next to it as head.npz")
        return {"head": heads[0]}

    def load(self, folder: Path) -> Model:
        options = self.told(folder)
        return EncoderModel(options.pop("encoder"), **options)


def _modules(folder: Path) -> list[dict[str, str]]:
    listed = read_json(folder / "modules.json")
    if listed is None:
        return []
    try:
        parts = [{"path": str(part["path"]), "kind": str(part["type"]).rpartition(".")[2]} for part in listed]
    except (TypeError, KeyError):
        raise InputError(f"model: {folder / 'modules.json'} is not a list of modules with a type and a path") from None
    for part in parts:
        check_name(folder / "modules.json", part["path"])
    return parts


def _network_folder(folder: Path) -> Path:
    """Return the folder of the network: that of the first Transformer, or the folder itself."""
    return next((folder / part["path"] for part in _modules(folder) if part["kind"] == "Transformer"), folder)


def _poolings(folder: Path, parts: list[dict[str, str]]) -> tuple[list[str], bool]:
    """Return the poolings that the folder's modules name, and whether embeddings are scaled to length 1."""
    kinds = [part["kind"] for part in parts]
    if kinds not in ([], ["Transformer", "Pooling"], ["Transformer", "Pooling", "Normalize"]):
        raise InputError(
            f"model: {folder} is made of {', '.join(kinds)}; Transformer, Pooling and perhaps Normalize are accepted"
        )
    if not parts:
        return ["mean_tokens"], False
    path = folder / parts[1]["path"] / "config.json"
    config = read_json(path)
    if not isinstance(config, dict):
        raise InputError(f"model: {path} is missing or no table; it says how tokens become one embedding")
    chosen = [name for name, on in config.items() if "pooling_mode_" in name and on is True]
    wanted = [name.removeprefix("pooling_mode_") for name in chosen]
    if not wanted or not set(wanted) <= set(_POOLINGS):
        raise InputError(f"model: {path}: pooling {', '.join(wanted) or 'none'}; accepted: {', '.join(_POOLINGS)}")
    return wanted, len(kinds) == 3
