"""Philox4x32 as one Triton kernel: the words that `philox.py` works out in whole-tensor operations, in one pass.

Triton comes with torch for NVIDIA cards. Its interpreter (TRITON_INTERPRET=1) runs this on any computer.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# Counters that one program of the kernel works on.
_COUNTERS = 512


@triton.jit(do_not_specialize=["first", "second", "call"])
def _philox(indices, out, first, second, call, rows, blocks, count, ROUNDS: tl.constexpr, HALVES: tl.constexpr,
            COUNTERS: tl.constexpr):  # fmt: skip
    """Words of Philox4x32 for rows × blocks counters, of each row the first `count`; with HALVES 16 bits at a time."""
    start = tl.program_id(0).to(tl.int64) * COUNTERS
    counter = start + tl.arange(0, COUNTERS)
    row = counter // blocks
    index = tl.load(indices + row, mask=row < rows, other=0)
    a = (counter % blocks).to(tl.uint32)
    b = tl.zeros([COUNTERS], tl.uint32) + call.to(tl.uint32)
    c = index.to(tl.uint32)
    d = (index >> 32).to(tl.uint32)
    key0 = first.to(tl.uint32)
    key1 = second.to(tl.uint32)
    m0 = tl.full([COUNTERS], 0xD2511F53, tl.uint32)
    m1 = tl.full([COUNTERS], 0xCD9E8D57, tl.uint32)
    for _ in tl.static_range(ROUNDS):
        high0, low0 = tl.umulhi(a, m0), a * m0
        high1, low1 = tl.umulhi(c, m1), c * m1
        a = high1 ^ b ^ key0
        c = high0 ^ d ^ key1
        b = low1
        d = low0
        key0 += 0x9E3779B9
        key1 += 0xBB67AE85
    # Side by side, as they lie in memory: a thread's words are written together.
    words = tl.interleave(tl.interleave(a, c), tl.interleave(b, d))
    if HALVES:
        words = tl.interleave(words & 0xFFFF, words >> 16)
    EACH: tl.constexpr = 8 if HALVES else 4
    place = start * EACH + tl.arange(0, COUNTERS * EACH)
    owner = place // EACH // blocks
    column = place - owner * blocks * EACH
    tl.store(out + owner * count + column, words.to(tl.int32), mask=(owner < rows) & (column < count))


def draw(indices: Any, key: tuple[int, int], call: int, count: int, rounds: int, *, halves: bool) -> Any:
    """Words of the counters (block, call, index), int32 of shape (inputs, count); see `philox.words` and `halves`."""
    each = 8 if halves else 4
    rows, blocks = len(indices), -(-count // each)
    out = torch.empty((rows, count), dtype=torch.int32, device=indices.device)
    first, second = (word - 2**32 if word >= 2**31 else word for word in key)
    programs = -(-rows * blocks // _COUNTERS)
    if programs:
        _philox[(programs,)](
            indices, out, first, second, call, rows, blocks, count,
            ROUNDS=rounds, HALVES=halves, COUNTERS=_COUNTERS,
        )  # fmt: skip
    return out
