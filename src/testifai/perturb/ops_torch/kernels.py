"""Triton kernels: in one pass what `rng.py`, `geometry.py` and `filters.py` do in many whole-tensor operations.

Triton comes with torch for NVIDIA cards. Its interpreter (TRITON_INTERPRET=1) runs this on any computer.
"""

from __future__ import annotations

from typing import Any

import torch
import triton
import triton.language as tl

# What one program of a kernel works on: counters of Philox, pixels of a blur, pixels that swap at once.
_COUNTERS = 512
_PIXELS = 256
_SWAPS = 32


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
    """Words of the counters (block, call, index), int32 of shape (inputs, count); see `rng.words` and `halves`."""
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


@triton.jit
def _shuffle(state, words, pixels, starts, width, size, RADIUS: tl.constexpr, SWAP: tl.constexpr,
             GROUPS: tl.constexpr, PARTS: tl.constexpr, SWAPS: tl.constexpr):  # fmt: skip
    """One image a program: group after group of pixels swap with neighbours, those of a group at once."""
    own_state = state + tl.program_id(0).to(tl.int64) * size
    own_words = words + tl.program_id(0).to(tl.int64) * size
    for group in range(GROUPS):
        first, last = tl.load(starts + group), tl.load(starts + group + 1)
        for part in range(PARTS):
            member = first + part * SWAPS + tl.arange(0, SWAPS)
            there = member < last
            pixel = tl.load(pixels + member, mask=there, other=0)
            drawn = (tl.load(own_words + pixel, mask=there, other=0) * (4 * RADIUS * RADIUS)) >> 16
            partner = pixel + (drawn // (2 * RADIUS) - RADIUS) * width + drawn % (2 * RADIUS) - RADIUS
            taken = tl.load(own_state + partner, mask=there, other=0)
            if SWAP:
                tl.store(own_state + partner, tl.load(own_state + pixel, mask=there, other=0), mask=there)
            tl.store(own_state + pixel, taken, mask=there)
        tl.debug_barrier()


def shuffle(
    state: Any, words: Any, pixels: Any, starts: Any, most: int, width: int, radius: int, *, swap: bool
) -> None:
    """Swap pixels (N, P) in place, each as its word says; groups of at most `most` of `pixels` begin at `starts`."""
    count, size = state.shape
    _shuffle[(count,)](
        state, words, pixels, starts, width, size,
        RADIUS=radius, SWAP=swap, GROUPS=len(starts) - 1, PARTS=-(-most // _SWAPS), SWAPS=_SWAPS, num_warps=1,
    )  # fmt: skip


@triton.jit
def _bilateral(padded, out, tables, tops, lefts, height, width, margin, total, CHANNELS: tl.constexpr,
               COLOURS: tl.constexpr, PLACES: tl.constexpr, PIXELS: tl.constexpr):  # fmt: skip
    """Means of the pixels around each, weighted by place and by distance in colour; see `filters.bilateral_blur`."""
    flat = tl.program_id(0).to(tl.int64) * PIXELS + tl.arange(0, PIXELS)
    there = flat < total
    image, rest = flat // (height * width), flat % (height * width)
    wide = width + 2 * margin
    corner = (image * (height + 2 * margin) + rest // width) * wide + rest % width
    centre = padded + (corner + margin * wide + margin) * CHANNELS
    red = tl.load(centre, mask=there, other=0).to(tl.int32)
    green = tl.load(centre + CHANNELS // 2, mask=there, other=0).to(tl.int32)
    blue = tl.load(centre + CHANNELS - 1, mask=there, other=0).to(tl.int32)
    weights = tl.zeros([PIXELS], tl.float32)
    reds = tl.zeros([PIXELS], tl.float32)
    greens = tl.zeros([PIXELS], tl.float32)
    blues = tl.zeros([PIXELS], tl.float32)
    for place in range(PLACES):
        beside = padded + (corner + tl.load(tops + place) * wide + tl.load(lefts + place)) * CHANNELS
        r = tl.load(beside, mask=there, other=0).to(tl.int32)
        distance = tl.abs(r - red)
        if CHANNELS == 3:
            g = tl.load(beside + 1, mask=there, other=0).to(tl.int32)
            b = tl.load(beside + 2, mask=there, other=0).to(tl.int32)
            distance += tl.abs(g - green) + tl.abs(b - blue)
        weight = tl.load(tables + place * COLOURS + distance, mask=there, other=0.0)
        weights += weight
        reds += weight * r.to(tl.float32)
        if CHANNELS == 3:
            greens += weight * g.to(tl.float32)
            blues += weight * b.to(tl.float32)
    made = out + flat * CHANNELS
    tl.store(made, (tl.div_rn(reds, weights) + 0.5).to(tl.uint8), mask=there)
    if CHANNELS == 3:
        tl.store(made + 1, (tl.div_rn(greens, weights) + 0.5).to(tl.uint8), mask=there)
        tl.store(made + 2, (tl.div_rn(blues, weights) + 0.5).to(tl.uint8), mask=there)


def bilateral(images: Any, padded: Any, margin: int, tops: Any, lefts: Any, tables: Any) -> Any:
    """Bilateral blur of images (N, H, W, C) whose padded uint8 form has so wide a margin; a table for each place."""
    count, height, width, channels = images.shape
    out, total = torch.empty_like(images), count * height * width
    # A product and a sum are rounded one after the other, as in whole-tensor operations.
    _bilateral[(-(-total // _PIXELS),)](
        padded, out, tables, tops, lefts, height, width, margin, total,
        CHANNELS=channels, COLOURS=tables.shape[1], PLACES=len(tables), PIXELS=_PIXELS, enable_fp_fusion=False,
    )  # fmt: skip
    return out
