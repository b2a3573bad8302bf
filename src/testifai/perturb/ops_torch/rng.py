"""Random numbers for tensors, drawn on their device: each belongs to an input, as in `testifai.perturb.rng`.

A `torch.Generator` would draw for a batch, not for an input. Here all numbers come from Philox4x32 at the counter
(block, call number, input index), computed for all inputs together. At most `FEW` numbers per input equal those of the
NumPy generator with the same key; fields differ, because NumPy fills them from another member of the Philox family.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from testifai.perturb.ops_torch.values import kernels_for
from testifai.perturb.rng import FEW, Rng, Size, check_rates

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def words(indices: Tensor, key: tuple[int, int], call: int, count: int, rounds: int, *, halves: bool = False) -> Tensor:
    """Random words as int32 of shape (inputs, count): the bits of 32-bit words, or their lower and upper halves."""
    kernels = kernels_for(indices)
    if kernels is not None:
        return kernels.draw(indices, key, call, count, rounds, halves=halves)
    blocks = -(-count // (8 if halves else 4))
    counter = torch.empty((4, len(indices), blocks), dtype=torch.int64, device=indices.device)
    counter[0] = torch.arange(blocks, device=indices.device)
    counter[1] = call
    counter[2] = (indices & _MASK)[:, None]
    counter[3] = (indices >> 32)[:, None]
    drawn = torch.stack(philox4x32(counter, key, rounds), dim=-1).reshape(len(indices), 4 * blocks)
    if halves:
        return drawn.view(torch.int16)[:, :count].to(torch.int32).bitwise_and_(0xFFFF)
    return drawn[:, :count]


def philox4x32(counter: Tensor, key: tuple[int, int], rounds: int = 10) -> list[Tensor]:
    """Philox4x32: 32-bit words in int64, four along the first axis; the bits of four words come back as int32.

    The halves of a product are read as int32 numbers in memory, and a word is written to the lower half of an int64
    whose upper half stays zero, without passes to shift and mask. The counter is overwritten.
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


def _low(words: Tensor) -> Tensor:
    """The lower halves of int64 numbers, as int32 (little-endian, as every machine torch runs on)."""
    return words.view(torch.int32)[..., 0::2]


def _high(words: Tensor) -> Tensor:
    return words.view(torch.int32)[..., 1::2]


def _signed(word: int) -> int:
    return word - 2**32 if word >= 2**31 else word


_FIELD_ROUNDS = 7  # enough for the BigCrush tests (Salmon et al., SC 2011, table 2)
_FEW_ROUNDS = 10  # as in the NumPy generator


class TensorRng(Rng):
    """Draws for a batch of inputs as tensors on a device, the same for an input in any batch."""

    def __init__(
        self,
        seed: int,
        name: str,
        severity: int,
        indices: Tensor,
        occurrence: int = 0,
        *,
        device: torch.device | str = "cpu",
    ) -> None:
        there = isinstance(indices, torch.Tensor)  # on the device already
        super().__init__(seed, name, severity, np.zeros(0, np.int64) if there else indices, occurrence)
        self.device = torch.device(device)
        self.indices = indices if there else _sent(self.indices.view(np.int64), self.device)

    def field(self, size: Size) -> Tensor:
        shape, count = self._shape(size)
        return words(self.indices, self._key, self._next_call(), count, _FIELD_ROUNDS, halves=True).reshape(shape)

    def normal(self, size: Size = ()) -> Tensor:
        shape, count = self._shape(size)
        return torch.special.ndtri(self._numbers(count)).reshape(shape)

    def poisson(self, rate: Tensor) -> Tensor:
        """Poisson counts: quantiles of uniform numbers, found by bisection."""
        rates = torch.atleast_1d(torch.as_tensor(rate, dtype=torch.float64, device=self.device))
        check_rates(rates, len(self))
        rates = rates.expand(len(self), *rates.shape[1:])
        chance = self._numbers(math.prod(rates.shape[1:])).reshape(rates.shape)
        # Uniform numbers are at least 2⁻⁵³ away from 0 and 1: no count is further out than this.
        spread = 10 * rates.sqrt() + 30
        below, enough = (rates - spread).clamp_(min=0).floor_() - 1, (rates + spread).ceil_()
        # Halvings that leave one count of the widest interval.
        most = float(rates.max()) if rates.numel() else 0.0
        for _ in range(math.ceil(math.log2(2 * (10 * math.sqrt(most) + 30) + 4))):
            middle = ((below + enough) / 2).floor_()
            # P(count ≤ k) is the regularised upper incomplete gamma function at (k + 1, rate).
            reached = torch.special.gammaincc((middle + 1).clamp_(min=1), rates) >= chance
            reached &= middle >= 0
            enough, below = torch.where(reached, middle, enough), torch.where(reached, below, middle)
        return enough.to(torch.int64)

    def _numbers(self, count: int) -> Tensor:
        if count > FEW:
            drawn = words(self.indices, self._key, self._next_call(), count, _FIELD_ROUNDS)
            return (drawn.to(torch.float64) + (2.0**31 + 0.5)).mul_(2.0**-32)
        blocks = (count + 1) // 2
        drawn = words(self.indices, self._key, self._next_call(), 4 * blocks, _FEW_ROUNDS)
        quads = (drawn.to(torch.int64) & _MASK).reshape(len(self), blocks, 2, 2)
        pairs = quads[..., 0] << 20 | quads[..., 1] >> 12
        return ((pairs.to(torch.float64) + 0.5) * 2.0**-52).reshape(len(self), 2 * blocks)[:, :count]

    def _floored(self, numbers: Tensor) -> Tensor:
        return numbers.floor_().to(torch.int64)


def _sent(indices: NDArray[np.int64], device: torch.device) -> Tensor:
    """Indices on a device, without waiting for it: pinned memory is copied in the background."""
    ours = torch.from_numpy(indices)
    if device.type != "cuda":
        return ours.to(device)
    if len(indices) > 1 and (np.diff(indices) == 1).all():
        return torch.arange(int(indices[0]), int(indices[-1]) + 1, device=device)
    return ours.pin_memory().to(device, non_blocking=True)
