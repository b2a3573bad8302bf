"""From texts to token numbers, and batches of texts of equal length."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support import libraries
from testifai.support.batches import Pair

# A batch of so many tokens is as quick as a larger one (MiniLM on a CPU); a smaller one wastes a tenth at 128.
BATCH_TOKENS = 1024


class Tokens(NamedTuple):
    """One text, or one pair of texts, as a model reads it."""

    ids: list[int]
    types: list[int]  # which text of a pair each token belongs to


class Tokenizer:
    """A tokenizer of the library `tokenizers`, without padding; texts longer than `max_length` tokens are cut off."""

    def __init__(self, tokenizer: Any, *, max_length: int | None = None) -> None:
        tokenizer.no_padding()
        if max_length is not None:
            tokenizer.enable_truncation(max_length)
        padding = [tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>", "<|endoftext|>")]
        self.pad = next((number for number in padding if number is not None), 0)
        self._tokenizer = tokenizer

    @classmethod
    def read(cls, path: Path, *, max_length: int | None = None) -> Tokenizer:
        """The tokenizer in a tokenizer.json."""
        library = libraries.load("tokenizers", extra="text")
        if not path.is_file():
            raise InputError(f"model.tokenizer: {path} does not exist; give the model's tokenizer.json")
        try:
            return cls(library.Tokenizer.from_file(str(path)), max_length=max_length)
        except Exception as error:  # the library raises plain exceptions
            reason = " ".join(str(error).split())[:120]
            raise InputError(f"model.tokenizer: {path} is not a usable tokenizer.json ({reason})") from None

    def __call__(self, batch: Sequence[str] | Sequence[Pair]) -> list[Tokens]:
        """The tokens of each; a text without any gets one of padding, as a model needs something to read."""
        try:
            encodings = self._tokenizer.encode_batch_fast(batch)
        except (TypeError, UnicodeEncodeError):  # bytes that were no UTF-8
            encodings = self._tokenizer.encode_batch_fast([_readable(text) for text in batch])
        return [Tokens(one.ids, one.type_ids) if one.ids else Tokens([self.pad], [0]) for one in encodings]


def of_equal_length(lengths: Sequence[int], tokens: int = BATCH_TOKENS) -> Iterator[NDArray[np.intp]]:
    """Places of texts that have the same number of tokens, about `tokens` in all at a time; the shortest first.

    >>> [places.tolist() for places in of_equal_length([3, 2, 3, 3], tokens=6)]
    [[1], [0, 2], [3]]
    """
    sizes = np.asarray(lengths, np.intp)
    for length in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == length)
        size = max(1, tokens // length)
        for start in range(0, len(places), size):
            yield places[start : start + size]


def _readable(text: str | Pair) -> str | Pair:
    """The text with a replacement character for each half of a surrogate pair that stands alone."""
    if isinstance(text, tuple):
        return _replaced(text[0]), _replaced(text[1])
    return _replaced(text)


def _replaced(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
