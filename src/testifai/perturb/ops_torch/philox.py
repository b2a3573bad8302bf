"""Random words for tensors: Philox4x32 at the counter (block, call number, input index), for all inputs at once.

On an NVIDIA card one Triton kernel makes them, elsewhere whole-tensor operations of torch do: the same words.
"""

from __future__ import annotations

from typing import Any

import torch

from testifai.perturb.ops_torch.cards import kernels_for

_MASK = 0xFFFFFFFF
_MULTIPLIERS = (0xD2511F53, 0xCD9E8D57)
_WEYL = (0x9E3779B9, 0xBB67AE85)


def words(indices: Any, key: tuple[int, int], call: int, count: int, rounds: int) -> Any:
    """The bits of 32-bit words as int32 of shape (inputs, count)."""
    kernels = kernels_for(indices)
    if kernels is not None:
        return kernels.draw(indices, key, call, count, rounds, halves=False)
    return _plain(indices, key, call, (count + 3) // 4, rounds)[:, :count]


def halves(indices: Any, key: tuple[int, int], call: int, count: int, rounds: int) -> Any:
    """16-bit words as int32 of shape (inputs, count): the lower and then the upper half of each 32-bit word."""
    kernels = kernels_for(indices)
    if kernels is not None:
        return kernels.draw(indices, key, call, count, rounds, halves=True)
    pairs = _plain(indices, key, call, (count + 7) // 8, rounds).view(torch.int16)[:, :count]
    return pairs.to(torch.int32).bitwise_and_(0xFFFF)


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


def _plain(indices: Any, key: tuple[int, int], call: int, blocks: int, rounds: int) -> Any:
    """The bits of 32-bit words as int32 of shape (inputs, 4 · blocks)."""
    counter = torch.empty((4, len(indices), blocks), dtype=torch.int64, device=indices.device)
    counter[0] = torch.arange(blocks, device=indices.device)
    counter[1] = call
    counter[2] = (indices & _MASK)[:, None]
    counter[3] = (indices >> 32)[:, None]
    return torch.stack(philox4x32(counter, key, rounds), dim=-1).reshape(len(indices), 4 * blocks)


def _low(words: Any) -> Any:
    """The lower halves of int64 numbers, as int32 (little-endian, as every machine torch runs on)."""
    return words.view(torch.int32)[..., 0::2]


def _high(words: Any) -> Any:
    return words.view(torch.int32)[..., 1::2]


def _signed(word: int) -> int:
    """The int32 number with the bits of a 32-bit word."""
    return word - 2**32 if word >= 2**31 else word
