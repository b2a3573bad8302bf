"""Tokenizers, batches of texts of equal length, and a cache of scores."""

from __future__ import annotations

import sys
import threading
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import first_line
from testifai.support import optional_imports, validation
from testifai.support.batches import Pair
from testifai.support.types import Array

# Larger batches are not quicker (MiniLM on a CPU); 128 tokens are 10 % slower.
BATCH_TOKENS = 1024


class Tokens(NamedTuple):
    ids: list[int]
    types: list[int]  # 0 or 1: first or second text of a pair


class Tokenizer:
    """A tokenizer of the library `tokenizers`, without padding; texts are truncated to `max_length` tokens."""

    def __init__(self, tokenizer: Any, *, max_length: int | None = None) -> None:
        tokenizer.no_padding()
        if max_length is not None:
            tokenizer.enable_truncation(max_length)
        padding = [tokenizer.token_to_id(name) for name in ("[PAD]", "<pad>", "<|endoftext|>")]
        self.pad = next((number for number in padding if number is not None), 0)
        self._tokenizer = tokenizer

    @classmethod
    def read(cls, path: Path, *, max_length: int | None = None) -> Tokenizer:
        library = optional_imports.load("tokenizers", extra="text")
        if not path.is_file():
            raise InputError(f"model.tokenizer: {path} does not exist; give the model's tokenizer.json")
        try:
            return cls(library.Tokenizer.from_file(str(path)), max_length=max_length)
        except Exception as error:  # the library raises plain exceptions
            raise InputError(
                f"model.tokenizer: {path} is not a usable tokenizer.json ({first_line(error, 120)})"
            ) from None

    def __call__(self, batch: Sequence[Text]) -> list[Tokens]:
        """Return the tokens of each text; a text without any gets one of padding."""
        try:
            encodings = self._tokenizer.encode_batch_fast(batch)
        except (TypeError, UnicodeEncodeError):  # bytes that were not UTF-8
            readable = [_readable(text) if isinstance(text, str) else tuple(map(_readable, text)) for text in batch]
            encodings = self._tokenizer.encode_batch_fast(readable)
        return [Tokens(one.ids, one.type_ids) if one.ids else Tokens([self.pad], [0]) for one in encodings]


def of_equal_length(lengths: Sequence[int], tokens: int = BATCH_TOKENS) -> Iterator[NDArray[np.intp]]:
    """Return indices of texts with the same number of tokens, about `tokens` in total at a time, shortest first."""
    sizes = np.asarray(lengths, np.intp)
    for length in np.unique(sizes).tolist():
        places = np.flatnonzero(sizes == length)
        size = max(1, tokens // length)
        for start in range(0, len(places), size):
            yield places[start : start + size]


def _readable(text: str) -> str:
    return text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")


Text = str | Pair

LIMIT_MB = 256
ENTRY_BYTES = 320  # of the dictionary and the array, in addition to text and numbers


class RowCache:
    """A thread-safe cache of one row of numbers per text or pair; the least recently used are dropped."""

    def __init__(self, limit_mb: float = LIMIT_MB) -> None:
        self.limit = int(validation.number("model: cache_mb", limit_mb, least=0) * 2**20)
        self.bytes = 0
        self._rows: OrderedDict[Text, Array] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return RowCache, (self.limit / 2**20,)  # another process starts with an empty one

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[Any], compute: Callable[[list[Any]], Array]) -> Array:
        """Return a row for each key; `compute` is called once, with the distinct keys that are missing."""
        distinct = list(dict.fromkeys(keys))
        with self._lock:
            found = {key: self._rows[key] for key in distinct if key in self._rows}
            for key in found:
                self._rows.move_to_end(key)
        missing = [key for key in distinct if key not in found]
        # Without keys one call is needed, for the shape of a row.
        if missing or not distinct:
            made = compute(missing)
            self._put(missing, made)
            if not distinct:
                return made
            found |= zip(missing, made, strict=True)
        return np.stack([found[key] for key in keys])

    def _put(self, keys: list[Text], rows: Array) -> None:
        if not self.limit:
            return
        with self._lock:
            for key, row in zip(keys, rows, strict=True):
                if key not in self._rows:
                    self._rows[key] = row.copy()  # a view would keep the whole batch
                    self.bytes += _size(key, row)
            while self.bytes > self.limit:
                self.bytes -= _size(*self._rows.popitem(last=False))


def _size(key: Text, row: Array) -> int:
    texts = (key,) if isinstance(key, str) else key
    return ENTRY_BYTES + row.nbytes + sum(map(sys.getsizeof, texts))
