"""Linear heads on sentence embeddings, kept as plain numbers in an npz file.

`coef` has a row per class, or one row where there are two classes, `intercept` a number per row; `classes`, if there,
says what the classes are called. As many columns as the embedding u has: a head for texts. Twice as many: a head for
pairs, which sees [|u - v|, u * v].
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from testifai.errors import InputError
from testifai.support.batches import are_pairs

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Head:
    """Scores of classes that are linear in the features.

    >>> head = Head(np.array([[1.0, -1.0]]), np.array([0.5]))
    >>> head.scores(np.array([[2.0, 0.0]])).tolist()
    [[0.0, 2.5]]
    """

    coef: Floats  # rows x features
    intercept: Floats  # rows
    classes: NDArray[Any] | None = None

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
        """The number of classes."""
        return max(2, len(self.coef))

    @property
    def columns(self) -> int:
        """The number of features."""
        return int(self.coef.shape[1])

    def scores(self, features: NDArray[Any]) -> Floats:
        """Scores whose softmax are the probabilities; of two classes the first has score 0."""
        # Row by row: a matrix product may add up a row differently in another batch.
        parts = [
            (features * row).sum(axis=1) + constant for row, constant in zip(self.coef, self.intercept, strict=True)
        ]
        scores: Floats = np.stack(parts if len(parts) > 1 else [np.zeros(len(features)), *parts], axis=1)
        return scores

    @property
    def fingerprint(self) -> str:
        """A hash of the numbers."""
        named = [] if self.classes is None else [str(value) for value in self.classes.tolist()]
        digest = hashlib.sha256(repr((self.coef.shape, named)).encode())
        for array in (self.coef, self.intercept):
            digest.update(np.ascontiguousarray(array, "<f8").tobytes())
        return digest.hexdigest()

    def write(self, path: str | os.PathLike[str]) -> None:
        """Save as an npz file."""
        named = {} if self.classes is None else {"classes": self.classes}
        with Path(path).open("wb") as file:  # NumPy would add an ending to a name
            np.savez(file, allow_pickle=False, coef=self.coef, intercept=self.intercept, **named)

    @classmethod
    def read(cls, path: str | os.PathLike[str]) -> Head:
        """The head in an npz file."""
        if not Path(path).is_file():
            raise InputError(
                f"model.head: {path} does not exist; make one with testifai.models.texts.heads.fit_head(…).write(path)"
            )
        try:
            with np.load(path, allow_pickle=False) as arrays:
                found = {name: arrays[name] for name in arrays.files}
        except Exception as error:
            reason = " ".join(str(error).split())[:80]
            raise InputError(f"model.head: {path} is not an npz file of numbers ({reason})") from None
        missing = [name for name in ("coef", "intercept") if name not in found]
        if missing:
            raise InputError(f"model.head: {path} has no array {missing[0]!r}; coef and intercept are needed")
        try:
            return cls(found["coef"].astype(np.float64), found["intercept"].astype(np.float64), found.get("classes"))
        except (InputError, ValueError) as error:
            raise InputError(f"model.head: {error} (in {path})") from None


def pair_features(first: NDArray[Any], second: NDArray[Any]) -> NDArray[Any]:
    """What a head sees of two embeddings; the same for both orders.

    >>> pair_features(np.array([[1.0, 2.0]]), np.array([[3.0, 1.0]])).tolist()
    [[2.0, 1.0, 3.0, 2.0]]
    """
    return np.concatenate([np.abs(first - second), first * second], axis=1)


def fit_head(
    encode: Any, inputs: Sequence[str] | Sequence[tuple[str, str]], labels: ArrayLike, *, strength: float = 0.01
) -> Head:
    """A logistic regression on the embeddings of texts or of pairs, by scikit-learn.

    `encode` is an `Encoder`, or any function from texts to rows of numbers. `strength` is the inverse weight of the
    penalty on standardised features (scikit-learn's C).

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
    spread[spread <= 1e-6 * spread.max()] = 1.0  # dead columns: rounding is no signal
    fitted = LogisticRegression(C=strength, max_iter=1000).fit((features - centre) / spread, targets)
    coef = fitted.coef_ / spread
    classes = fitted.classes_ if not np.array_equal(fitted.classes_, np.arange(len(fitted.classes_))) else None
    return Head(coef, fitted.intercept_ - coef @ centre, classes)


def features_of(encode: Any, inputs: Sequence[Any], pairs: bool) -> NDArray[Any]:
    """The features of texts (their embeddings) or of pairs (`pair_features`)."""
    if pairs:
        texts = [text for pair in inputs for text in pair]
        rows = np.asarray(encode(texts))
        return pair_features(rows[0::2], rows[1::2])
    return np.asarray(encode(list(inputs)))
