"""Random numbers for tensors, drawn on their device: each belongs to an input, as in `testifai.perturb.rng`.

Why not torch's own generator: a `torch.Generator` draws for a batch, not for an input, so what an image gets would
depend on the images before it. Here all numbers come from Philox4x32 at the counter (block, call number, input
index), computed for all inputs at once with whole-tensor integer operations. A few numbers per input (at most `FEW`)
are those of the NumPy generator with the same key; fields are not, because that one fills them from another member
of the Philox family.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import torch

from testifai.errors import InputError
from testifai.perturb.rng import FEW, Rng, Size, check_rates

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)
# Seven rounds already pass the BigCrush tests (Salmon et al., SC 2011, table 2); a field is mostly rounds.
_FIELD_ROUNDS = 7
# Halvings of an interval of counts: enough for any rate whose counts are whole numbers in float64.
_HALVINGS = 32


def philox4x32(counter: Any, key: tuple[int, int], rounds: int = 10) -> list[Any]:
    """Philox4x32: 32-bit words in int64, four along the first axis; the bits of four words come back as int32.

    The two halves of a product are read as the int32 numbers they are in memory, and a word is written to the lower
    half of an int64 whose upper half stays zero: no passes to shift and mask. The counter serves as working memory.
    """
    a, c = counter[0], counter[2]
    b, d = _low(counter[1]), _low(counter[3])
    first, second = key
    for _ in range(rounds):
        left, right = a * _MULTIPLIERS[0], c * _MULTIPLIERS[1]
        torch.bitwise_xor(_high(right) ^ b, _signed(first), out=_low(a))
        torch.bitwise_xor(_high(left) ^ d, _signed(second), out=_low(c))
        b, d = _low(right), _low(left)
        first, second = (first + _WEYL[0]) & _MASK, (second + _WEYL[1]) & _MASK
    return [_low(a), b, _low(c), d]


class TensorRng(Rng):
    """Draws for a batch of inputs as tensors on a device, the same for an input wherever it stands.

    >>> whole = TensorRng(0, "fade", 2, np.arange(4), device="cpu").field(100)
    >>> alone = TensorRng(0, "fade", 2, np.array([3]), device="cpu").field(100)
    >>> bool((whole[3] == alone[0]).all())
    True
    """

    def __init__(
        self, seed: int, name: str, severity: int, indices: Any, occurrence: int = 0, *, device: Any = "cpu"
    ) -> None:
        there = isinstance(indices, torch.Tensor)  # on the device already, as whole numbers
        super().__init__(seed, name, severity, np.zeros(0, np.int64) if there else indices, occurrence)
        self.device = torch.device(device)
        self.indices = indices if there else torch.from_numpy(self.indices.view(np.int64)).to(self.device)

    def field(self, size: Size) -> Any:
        """Uniform 16-bit words as int32, eight per block: tables turn them into other distributions."""
        shape, count = self._shape(size)
        words = self._words((count + 7) // 8, _FIELD_ROUNDS).view(torch.int16)[:, :count]
        return words.to(torch.int32).bitwise_and_(0xFFFF).reshape(shape)

    def uniform(self, size: Size = (), low: float = 0.0, high: float = 1.0) -> Any:
        """Uniform float64 numbers between low and high."""
        shape, count = self._shape(size)
        numbers = self._numbers(count)
        if (low, high) != (0.0, 1.0):
            numbers = low + (high - low) * numbers
        return numbers.reshape(shape)

    def normal(self, size: Size = ()) -> Any:
        """Standard normal numbers (float64)."""
        shape, count = self._shape(size)
        return torch.special.ndtri(self._numbers(count)).reshape(shape)

    def integers(self, low: int, high: int, size: Size = ()) -> Any:
        """Whole numbers from low up to, but not including, high."""
        if not low < high:
            raise InputError(f"integers(low={low}, high={high}): low must be less than high")
        shape, count = self._shape(size)
        return ((self._numbers(count) * (high - low)).floor_().to(torch.int64) + low).reshape(shape)

    def poisson(self, rate: Any) -> Any:
        """Poisson counts. The first axis of rate is the input (length 1: the same rates for every input).

        A count is the quantile of a uniform number, found by halving an interval that is sure to hold it.
        """
        rates = torch.atleast_1d(torch.as_tensor(rate, dtype=torch.float64, device=self.device))
        check_rates(rates, len(self))
        rates = rates.expand(len(self), *rates.shape[1:])
        chance = self._numbers(math.prod(rates.shape[1:])).reshape(rates.shape)
        # Uniform numbers are at least 2⁻⁵³ away from 0 and 1: no count is further out than this.
        spread = 10 * rates.sqrt() + 30
        below, enough = (rates - spread).clamp_(min=0).floor_() - 1, (rates + spread).ceil_()
        for _ in range(_HALVINGS):
            middle = ((below + enough) / 2).floor_()
            # P(count ≤ k) is the regularised upper incomplete gamma function at (k + 1, rate).
            reached = torch.special.gammaincc((middle + 1).clamp_(min=1), rates) >= chance
            reached &= middle >= 0
            enough, below = torch.where(reached, middle, enough), torch.where(reached, below, middle)
        return enough.to(torch.int64)

    def _numbers(self, count: int) -> Any:
        """Float64 numbers strictly between 0 and 1, of shape (inputs, count): of 52 bits if few, else of 32."""
        if count > FEW:
            words = self._words((count + 3) // 4, _FIELD_ROUNDS)[:, :count]
            return (words.to(torch.float64) + (2.0**31 + 0.5)).mul_(2.0**-32)
        blocks = (count + 1) // 2
        words = (self._words(blocks).to(torch.int64) & _MASK).reshape(len(self), blocks, 2, 2)
        pairs = words[..., 0] << 20 | words[..., 1] >> 12
        return ((pairs.to(torch.float64) + 0.5) * 2.0**-52).reshape(len(self), 2 * blocks)[:, :count]

    def _words(self, blocks: int, rounds: int = 10) -> Any:
        """The bits of 32-bit words as int32 of shape (inputs, 4 · blocks), for the next call."""
        counter = torch.empty((4, len(self), blocks), dtype=torch.int64, device=self.device)
        counter[0] = torch.arange(blocks, device=self.device)
        counter[1] = self._next_call()
        counter[2] = (self.indices & _MASK)[:, None]
        counter[3] = (self.indices >> 32)[:, None]
        key = (int.from_bytes(self._digest[16:20], "little"), int.from_bytes(self._digest[20:24], "little"))
        return torch.stack(philox4x32(counter, key, rounds), dim=-1).reshape(len(self), 4 * blocks)


def _low(words: Any) -> Any:
    """The lower halves of int64 numbers, as int32 (little-endian, as every machine torch runs on)."""
    return words.view(torch.int32)[..., 0::2]


def _high(words: Any) -> Any:
    return words.view(torch.int32)[..., 1::2]


def _signed(word: int) -> int:
    """The int32 number with the bits of a 32-bit word."""
    return word - 2**32 if word >= 2**31 else word
