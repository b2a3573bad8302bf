"""From texts to token numbers, and batches of texts of equal length."""

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
from testifai.support import optional_imports, validation
from testifai.support.batches import Pair
from testifai.support.types import Array

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
        library = optional_imports.load("tokenizers", extra="text")
        if not path.is_file():
            raise InputError(f"model.tokenizer: {path} does not exist; give the model's tokenizer.json")
        try:
            return cls(library.Tokenizer.from_file(str(path)), max_length=max_length)
        except Exception as error:  # the library raises plain exceptions
            reason = " ".join(str(error).split())[:120]
            raise InputError(f"model.tokenizer: {path} is not a usable tokenizer.json ({reason})") from None

    def __call__(self, batch: Sequence[Text]) -> list[Tokens]:
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


Text = str | Pair

LIMIT_MB = 256
# Besides its text and its numbers an entry takes the dictionary's slot and link and the array's header.
ENTRY_BYTES = 320


class RowCache:
    """One row of numbers per text or pair of texts; those not asked for the longest go first.

    Several threads may ask at once. What two of them miss at the same moment is worked out twice.

    >>> cache = RowCache()
    >>> cache.rows(["a", "bb", "a"], lambda texts: np.array([[len(text)] for text in texts])).tolist()
    [[1], [2], [1]]
    >>> cache.rows(["bb"], lambda texts: 1 / 0).tolist()
    [[2]]
    """

    def __init__(self, limit_mb: float = LIMIT_MB) -> None:
        self.limit = int(validation.number("model: cache_mb", limit_mb, least=0) * 2**20)
        self.bytes = 0
        self._rows: OrderedDict[Text, Array] = OrderedDict()
        self._lock = threading.Lock()

    def __reduce__(self) -> tuple[Any, ...]:
        return RowCache, (self.limit / 2**20,)  # in another process it begins empty

    def __len__(self) -> int:
        return len(self._rows)

    def rows(self, keys: Sequence[Any], compute: Callable[[list[Any]], Array]) -> Array:
        """A row for each key; `compute` is asked once, for the distinct ones that are not known."""
        places: dict[Text, int] = {}
        inverse = np.fromiter((places.setdefault(key, len(places)) for key in keys), np.intp, len(keys))
        distinct = list(places)
        known = self._look_up(distinct)
        missing = [key for key, row in zip(distinct, known, strict=True) if row is None]
        # Nothing at all still needs one call, to see the shape of a row.
        if missing or not distinct:
            made = compute(missing)
            self._put(missing, made)
            if len(missing) == len(distinct):
                return made[inverse]
            fresh = iter(made)
            known = [next(fresh) if row is None else row for row in known]
        return np.stack([row for row in known if row is not None])[inverse]

    def _look_up(self, keys: list[Text]) -> list[Array | None]:
        with self._lock:
            found = [self._rows.get(key) for key in keys]
            for key, row in zip(keys, found, strict=True):
                if row is not None:
                    self._rows.move_to_end(key)
            return found

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
