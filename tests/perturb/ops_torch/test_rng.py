"""Draws on tensors: published vectors, the NumPy generator's numbers, independence of place, sane distributions."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb.rng import FEW, Rng

torch = pytest.importorskip("torch")

from testifai.perturb.ops_torch.rng import (  # noqa: E402
    TensorRng,
    philox4x32,
)

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
on_devices = pytest.mark.parametrize("device", DEVICES)

DRAWS = {
    "field": lambda rng, size: rng.field(size),
    "uniform": lambda rng, size: rng.uniform(size),
    "normal": lambda rng, size: rng.normal(size),
    "integers": lambda rng, size: rng.integers(-3, 1000, size),
    "poisson": lambda rng, size: rng.poisson(np.full((1, *size), 4.5)),
}


def rng(indices, device="cpu", seed=0, name="fade", severity=1, occurrence=0):
    return TensorRng(seed, name, severity, np.asarray(indices), occurrence, device=device)


def words(counter, key, rounds=10):
    return [word.item() % 2**32 for word in philox4x32(torch.tensor(counter).reshape(4, 1), key, rounds)]


# Known answers of the Random123 distribution (Salmon et al. 2011), philox4x32 with ten rounds.
@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        ([0xFFFFFFFF] * 4, (0xFFFFFFFF, 0xFFFFFFFF), [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD]),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, answer):
    assert words(counter, key) == answer


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4),
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)
@settings(max_examples=20, deadline=None)
def test_philox_equals_a_scalar_statement_of_it(counter, key):
    (a, b, c, d), (k0, k1) = counter, key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * a, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c, 2**32)
        a, b, c, d = high1 ^ b ^ k0, low1, high0 ^ d ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    assert words(counter, key) == [a, b, c, d]


@on_devices
@pytest.mark.parametrize("size", [(), (1,), (3,), (2, 4), (FEW,)])
def test_few_numbers_are_those_of_the_numpy_generator(device, size):
    indices = np.array([9, 0, 4, 2**40 + 1, 7])
    ours, theirs = rng(indices, device, seed=5, occurrence=2), Rng(5, "fade", 1, indices, 2)
    for _ in range(2):
        assert np.array_equal(ours.uniform(size).cpu(), theirs.uniform(size))
        assert np.array_equal(ours.uniform(size, -45, 45).cpu(), theirs.uniform(size, -45, 45))
        assert np.array_equal(ours.integers(-2, 900, size).cpu(), theirs.integers(-2, 900, size))
        np.testing.assert_allclose(ours.normal(size).cpu(), theirs.normal(size), rtol=1e-12, atol=1e-14)


@on_devices
@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("size", [(), (1,), (3,), (FEW,), (FEW + 1,), (5, 7)])
def test_an_input_gets_the_same_numbers_wherever_it_stands(device, draw, size):
    def twice(indices):
        stream = rng(indices, device)
        return draw(stream, size), draw(stream, size)

    indices = np.array([9, 0, 4, 2**40 + 1, 7])
    whole = twice(indices)
    assert whole[0].shape == (5, *size)
    assert whole[0].device.type == device
    for rows in ([0], [4, 3, 2, 1, 0], [2, 3]):
        part = twice(indices[rows])
        assert all(torch.equal(one[rows], other) for one, other in zip(whole, part, strict=True))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
def test_a_part_goes_on_where_the_whole_stands(draw):
    stream = rng(np.arange(6))
    draw(stream, (30,))
    part = stream.part(slice(2, 5))
    assert len(part) == 3
    assert torch.equal(draw(part, (30,)), draw(stream, (30,))[2:5])


@pytest.mark.parametrize("size", [2, 40])
@pytest.mark.parametrize(
    "other",
    [{"seed": 1}, {"name": "fade2"}, {"severity": 2}, {"occurrence": 1}, {"indices": [5, 6, 2**32, 2**33]}],
    ids=str,
)
def test_every_part_of_the_key_gives_another_stream(size, other):
    plain = {"indices": [0, 1, 2, 3]}
    one, two = rng(**plain), rng(**(plain | other))
    numbers = torch.stack([stream.uniform(size) for stream in (one, one, two, two)])
    assert len(numbers.unique()) == numbers.numel()


@pytest.mark.parametrize("size", [1, 7, 8, 9, (3, 5, 2)])
def test_fields_are_the_halves_of_philox_words(size):
    """Eight 16-bit words per block, of the counter (block, call, index) and the key of the few numbers."""
    stream = rng([3, 2**33 + 5])
    key = tuple(int.from_bytes(stream._digest[start : start + 4], "little") for start in (16, 20))
    field = stream.field(size)
    assert field.dtype == torch.int32
    assert field.shape == (2, *(size if isinstance(size, tuple) else (size,)))
    for row, (low, high) in zip(field.reshape(2, -1).tolist(), [(3, 0), (5, 2)], strict=True):
        blocks = [words([block, 1, low, high], key, rounds=7) for block in range(-(-len(row) // 8))]
        halves = [half for block in blocks for word in block for half in (word % 2**16, word // 2**16)]
        assert row == halves[: len(row)]


@on_devices
def test_words_of_a_field_are_uniform(device):
    field = rng(np.arange(100), device).field((20, 100)).cpu().numpy()
    assert field.min() >= 0
    assert field.max() < 65536
    # χ² with 255 degrees of freedom, of the upper and of the lower byte.
    for byte in (field >> 8, field & 255):
        observed = np.bincount(byte.ravel(), minlength=256)
        expected = field.size / 256
        assert abs(((observed - expected) ** 2 / expected).sum() - 255) < 5 * np.sqrt(510)


def test_neighbouring_words_inputs_and_calls_are_uncorrelated():
    stream = rng(np.arange(200))
    first, second = (stream.field(200).double() / 65536 - 0.5 for _ in range(2))
    for one, other in ((first[1:], first[:-1]), (first[:, 1:], first[:, :-1]), (first, second)):
        assert abs((one * other).mean() * 12) < 5 / np.sqrt(one.numel())


@pytest.mark.parametrize("size", [4, 64])
def test_normal_numbers_are_standard_normal(size):
    numbers = rng(np.arange(40_000 // size)).normal(size)
    # The variances of the first four sample moments of a standard normal are 1, 2, 15 and 96 over the count.
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((numbers**power).mean() - moment) < 5 * np.sqrt(variance / numbers.numel())


@pytest.mark.parametrize("size", [1, 30])
def test_integers_are_spread_evenly_over_the_half_open_range(size):
    numbers = rng(np.arange(30_000 // size)).integers(-2, 3, size)
    values, counts = numbers.unique(return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert ((counts - 6_000).abs() < 5 * np.sqrt(30_000 * 0.2 * 0.8)).all()


@on_devices
@pytest.mark.parametrize("size", [5, 40])
def test_poisson_counts_are_the_quantiles_of_the_uniform_numbers(device, size):
    poisson = pytest.importorskip("scipy.stats").poisson
    rates = np.geomspace(0.01, 1e5, 300 * size).reshape(300, size)
    rates[0] = 0
    counts = rng(np.arange(300), device).poisson(rates)
    chances = rng(np.arange(300), device).uniform(size).cpu().numpy()
    assert np.array_equal(counts.cpu(), poisson.ppf(chances, rates))


def test_poisson_takes_a_tensor_a_single_rate_and_one_row_of_rates():
    assert rng([3, 1, 2]).poisson(4.0).shape == (3,)
    row = rng([3, 1, 2]).poisson(torch.full((1, 20), 4.0))
    assert torch.equal(row, rng([3, 1, 2]).poisson(np.full((3, 20), 4.0)))


@pytest.mark.parametrize("rate", [np.ones((2, 4)), -1.0, np.nan], ids=str)
def test_a_bad_rate_is_refused(rate):
    with pytest.raises(InputError, match="rate"):
        rng([3, 1, 2]).poisson(rate)


def test_an_empty_range_is_refused():
    with pytest.raises(InputError, match="low must be less than high"):
        rng([0]).integers(3, 3)
