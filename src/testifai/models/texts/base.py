"""Shared code of text models: tokenizers, batches of texts of equal length, a cache of scores, base classes."""

from __future__ import annotations

import sys
import threading
from abc import abstractmethod
from collections import OrderedDict
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart, first_line
from testifai.support import optional_imports, validation
from testifai.support.batches import Batch, Pair, are_pairs
from testifai.support.options_base import Count, Megabytes
from testifai.support.types import Array

Text = str | Pair

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


# The adapter removes duplicates, sorts texts by length and makes batches: it needs many at a time.
BATCH_SIZE = 4096


class NetworkPart(ModelPart):
    max_length: Count | None = None
    """Tokens after which a text is cut off."""
    device: str | None = None
    """Where it runs, such as `cuda`; default: `cpu`."""
    threads: Count | None = None
    """Threads of one inference; default: 1."""
    cache_mb: Megabytes | None = None
    """Memory for the scores of texts that come again; default: 256."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""


class TextModel(Model):
    """A model of texts, or of pairs if `pairs` (None: either), that computes the scores of repeated inputs once."""

    thread_safe = True
    spares_batch = True
    repeatable = True
    pairs: bool | None = None

    def __init__(self, *, cache_mb: float = LIMIT_MB, batch_size: int | None = None) -> None:
        self.batch_size = batch_size or BATCH_SIZE
        self._known = RowCache(cache_mb)

    @abstractmethod
    def scores(self, texts: list[Text]) -> Array:
        """Return one row per text or pair, which are distinct."""

    def __call__(self, batch: Batch) -> Array:
        return self._known.rows(self._texts(batch), self.scores)

    def _texts(self, batch: Batch) -> list[Text]:
        return check_texts(batch, self.name, self.pairs)


def check_texts(batch: object, name: str, pairs: bool | None) -> list[Text]:
    wanted = {None: "texts or pairs of texts", False: "texts", True: "pairs of texts"}[pairs]
    if isinstance(batch, np.ndarray) and batch.dtype.kind == "O" and batch.ndim == 1:
        batch = batch.tolist()
    if not isinstance(batch, list):
        found = f"{batch.dtype} of shape {batch.shape}" if isinstance(batch, np.ndarray) else type(batch).__name__
        raise InputError(f"{name}: inputs are {found}; the model takes {wanted}")
    given = are_pairs(batch)
    if given:
        known = all(isinstance(one, tuple) and [*map(type, one)] == [str, str] for one in batch)
    else:
        known = all(isinstance(one, str) for one in batch)
    if not known:
        raise InputError(f"{name}: inputs are neither all texts nor all pairs of texts; the model takes {wanted}")
    if pairs is not None and batch and given != pairs:
        raise InputError(f"{name}: inputs are {'pairs of texts' if given else 'texts'}; the model takes {wanted}")
    return batch
