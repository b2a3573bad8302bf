"""Random numbers that belong to an input, not to its position in a batch.

Every draw is a function of (seed, perturbation, occurrence, severity, input index, call number) and of nothing else, so
results do not depend on batch size, order of work or number of workers. Both generators are of the counter-based Philox
family (Salmon et al., "Parallel random numbers: as easy as 1, 2, 3", SC 2011): a few numbers per input come from one
vectorised Philox4x32-10, whole fields from NumPy's native Philox, whose state is set for each input.
"""

from __future__ import annotations

import copy
import hashlib
import json
import math
from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray
from scipy.special import gammaln, ndtri

from testifai.errors import InputError, suggest
from testifai.support.types import Floats

Size = int | tuple[int, ...]

DRAWS = ("field", "integers", "normal", "poisson", "uniform")

FEW = 16  # more numbers per input are a field: the choice depends on the size alone, never on the batch

_MASK = np.uint64(0xFFFFFFFF)
_HALF = np.uint64(32)
_MULTIPLIERS = (np.uint64(0xD2511F53), np.uint64(0xCD9E8D57))
_WEYL = (0x9E3779B9, 0xBB67AE85)


def philox4x32(counter: NDArray[np.uint64], key: tuple[int, int], rounds: int = 10) -> NDArray[np.uint64]:
    """Philox4x32: 32-bit words in uint64, four words along the first axis in and out."""
    a, b, c, d = counter
    first, second = key
    for _ in range(rounds):
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        a = (right >> _HALF) ^ b ^ np.uint64(first)
        b = right & _MASK
        c = (left >> _HALF) ^ d ^ np.uint64(second)
        d = left & _MASK
        first, second = (first + _WEYL[0]) & 0xFFFFFFFF, (second + _WEYL[1]) & 0xFFFFFFFF
    return np.stack([a, b, c, d])


class MissingDrawError(InputError, AttributeError):
    """A perturbation used a draw that does not exist."""


class Rng:
    """Draws for a batch of inputs: shape (number of inputs, *size), the same for an input in any batch."""

    def __init__(self, seed: int, name: str, severity: int, indices: NDArray[np.integer], occurrence: int = 0) -> None:
        self.indices = np.asarray(indices).astype(np.uint64)
        # hashlib, not hash(): the key must be the same in every process and on every platform.
        identity = json.dumps([int(seed), name, int(occurrence), int(severity)])
        self._digest = hashlib.blake2b(identity.encode(), digest_size=24).digest()
        self._calls = 0

    def __len__(self) -> int:
        return len(self.indices)

    def __getattr__(self, name: str) -> Any:
        raise MissingDrawError(f"rng.{name} does not exist; {suggest(name, DRAWS)}")

    def part(self, rows: slice) -> Rng:
        """Return the generator of some of the inputs, which continues with the same draws."""
        made = copy.copy(self)
        made.indices = self.indices[rows]
        return made

    def of_part(self, part: int, parts: int) -> Rng:
        """Return a generator with separate draws for one of several parts of each input."""
        made = copy.copy(self)
        made.indices = self.indices * np.uint64(parts) + np.uint64(part)
        return made

    def field(self, size: Size) -> NDArray[np.uint16]:
        """Uniform 16-bit words, the cheapest field, which tables convert to other distributions."""
        shape, count = self._shape(size)
        words = np.empty((len(self), count), dtype=np.uint16)
        for row, generator in zip(words, self._generators(), strict=True):
            raw = generator.bit_generator.random_raw((count + 3) // 4)
            row[:] = raw.astype("<u8", copy=False).view("<u2")[:count]
        return words.reshape(shape)

    def uniform(self, size: Size = (), low: float = 0.0, high: float = 1.0) -> Floats:
        """Uniform numbers between low and high."""
        shape, count = self._shape(size)
        numbers = self._numbers(count)
        if (low, high) != (0.0, 1.0):
            numbers = low + (high - low) * numbers
        return numbers.reshape(shape)

    def normal(self, size: Size = ()) -> Floats:
        """Standard normal numbers."""
        shape, count = self._shape(size)
        if count > FEW:
            return self._field(count, lambda generator, row: generator.standard_normal(out=row)).reshape(shape)
        # The quantile function works element by element, unlike a vectorised log or cosine, whose last bit may
        # depend on the position in the array.
        numbers: Floats = ndtri(self._numbers(count))
        return numbers.reshape(shape)

    def integers(self, low: int, high: int, size: Size = ()) -> NDArray[np.int64]:
        """Whole numbers from low up to, but not including, high."""
        if not low < high:
            raise InputError(f"integers(low={low}, high={high}): low must be less than high")
        shape, count = self._shape(size)
        return (self._floored(self._numbers(count) * (high - low)) + low).reshape(shape)

    def poisson(self, rate: ArrayLike) -> NDArray[np.int64]:
        """Poisson counts; the first axis of rate is the input (length 1: the same for all), a number gives one each."""
        rates = np.atleast_1d(np.asarray(rate, dtype=np.float64))
        check_rates(rates, len(self))
        rates = np.broadcast_to(rates, (len(self), *rates.shape[1:]))
        counts = np.empty(rates.shape, dtype=np.int64)
        for row, generator in enumerate(self._generators()):
            counts[row] = generator.poisson(rates[row])
        return counts

    def _shape(self, size: Size) -> tuple[tuple[int, ...], int]:
        per_input = (size,) if isinstance(size, int | np.integer) else tuple(size)
        return (len(self), *per_input), math.prod(per_input)

    @property
    def _key(self) -> tuple[int, int]:
        return int.from_bytes(self._digest[16:20], "little"), int.from_bytes(self._digest[20:24], "little")

    def _numbers(self, count: int) -> Floats:
        """Numbers strictly between 0 and 1, of shape (inputs, count): two per Philox block, or a field."""
        if count > FEW:
            return self._field(count, lambda generator, row: generator.random(out=row))
        blocks = (count + 1) // 2
        counter = np.empty((4, len(self), blocks), dtype=np.uint64)
        counter[0] = np.arange(blocks, dtype=np.uint64)
        counter[1] = self._next_call()
        counter[2] = (self.indices & _MASK)[:, None]
        counter[3] = (self.indices >> _HALF)[:, None]
        words = philox4x32(counter, self._key)
        pairs = np.stack([words[0] << _HALF | words[1], words[2] << _HALF | words[3]], axis=-1)
        # 52 bits and a half: neither 0 nor 1 can come out.
        numbers = ((pairs >> np.uint64(12)).astype(np.float64) + 0.5) * 2.0**-52
        return np.ascontiguousarray(numbers.reshape(len(self), 2 * blocks)[:, :count])

    def _floored(self, numbers: Floats) -> NDArray[np.int64]:
        return np.floor(numbers).astype(np.int64)

    def _field(self, count: int, fill: Callable[[np.random.Generator, Floats], object]) -> Floats:
        numbers = np.empty((len(self), count), dtype=np.float64)
        for row, generator in zip(numbers, self._generators(), strict=True):
            fill(generator, row)
        return numbers

    def _generators(self) -> Iterator[np.random.Generator]:
        """Yield a generator for each input, at the start of its stream for this call."""
        key = np.frombuffer(self._digest[:16], dtype="<u8").astype(np.uint64)
        bits = np.random.Philox(key=key)
        generator = np.random.Generator(bits)
        state = bits.state
        # NumPy counts blocks in the first word; the others name the stream.
        counter = np.array([0, self._next_call(), 0, 0], dtype=np.uint64)
        state["state"]["counter"] = counter
        for index in self.indices:
            counter[2] = index
            bits.state = state
            yield generator

    def _next_call(self) -> int:
        self._calls += 1
        return self._calls


def check_rates(rates: Any, inputs: int) -> None:
    """Raise InputError unless rates, an array or a tensor, are ≥ 0 and fit the number of inputs."""
    if rates.shape[0] not in (1, inputs):
        raise InputError(
            f"poisson(rate): the first axis of rate has length {rates.shape[0]}; "
            f"it must be the number of inputs, {inputs}, or 1"
        )
    if not (rates >= 0).all():
        raise InputError("poisson(rate): every rate must be a number ≥ 0")


WORDS = 2**16
QUANTILES = (np.arange(WORDS) + 0.5) / WORDS  # the middle of each word's share of 0..1


@lru_cache(maxsize=128)
def normal(mean: float = 0.0, deviation: float = 1.0) -> NDArray[np.float32]:
    return np.asarray(mean + deviation * ndtri(QUANTILES), np.float32)


@lru_cache(maxsize=64)
def chosen(share: float) -> NDArray[np.float32]:
    """1 for a share of the words, 0 for the others."""
    return (share > QUANTILES).astype(np.float32)


@lru_cache(maxsize=5)  # 16 MB each: enough for the severities of one suite
def photon_levels(photons: float) -> NDArray[np.uint8]:
    """For each of the 256 grey levels and each word, the level after counting photons, of which white expects n."""
    counts = np.arange(int(np.ceil(photons)) + 1)
    rates = np.maximum(np.arange(256)[:, None] / 255 * photons, 1e-300)
    chances = np.exp(counts * np.log(rates) - rates - gammaln(counts + 1))
    steps = np.rint(np.cumsum(chances, axis=1) * WORDS).astype(np.int64)
    # Counts of at least as many photons as white expects are white.
    steps[:, -1] = WORDS
    levels = np.floor(np.minimum(counts / photons, 1) * 255 + 0.5).astype(np.uint8)
    return np.repeat(np.tile(levels, 256), np.diff(steps, axis=1, prepend=0).ravel()).reshape(256, WORDS)
