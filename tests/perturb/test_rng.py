"""Philox streams: published vectors, independence of place, sane distributions, no shared streams."""

from __future__ import annotations

import copy
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb.base import Perturbation
from testifai.perturb.rng import FEW, Rng, philox4x32

DRAWS = {
    "uniform": lambda rng, size: rng.uniform(size),
    "normal": lambda rng, size: rng.normal(size),
    "integers": lambda rng, size: rng.integers(-3, 1000, size),
    "poisson": lambda rng, size: rng.poisson(np.full((1, *size), 4.5)),
    "field": lambda rng, size: rng.field(size),
}


def rng(indices, seed=0, name="fade", severity=1, occurrence=0):
    return Rng(seed, name, severity, np.asarray(indices), occurrence)


# Known answers of the Random123 distribution (Salmon et al. 2011), philox4x32 with ten rounds.
@pytest.mark.parametrize(
    ("counter", "key", "answer"),
    [
        ([0] * 4, (0, 0), [0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8]),
        (
            [0xFFFFFFFF] * 4,
            (0xFFFFFFFF, 0xFFFFFFFF),
            [0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD],
        ),
        (
            [0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344],
            (0xA4093822, 0x299F31D0),
            [0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1],
        ),
    ],
)
def test_philox_gives_the_published_answers(counter, key, answer):
    assert philox4x32(np.array(counter, dtype=np.uint64), key).tolist() == answer


@given(
    st.lists(st.integers(0, 2**32 - 1), min_size=4, max_size=4),
    st.tuples(st.integers(0, 2**32 - 1), st.integers(0, 2**32 - 1)),
)
@settings(max_examples=20, deadline=None)
def test_philox_over_arrays_equals_a_scalar_statement_of_it(counter, key):
    a, b, c, d = counter
    k0, k1 = key
    for _ in range(10):
        high0, low0 = divmod(0xD2511F53 * a, 2**32)
        high1, low1 = divmod(0xCD9E8D57 * c, 2**32)
        a, b, c, d = high1 ^ b ^ k0, low1, high0 ^ d ^ k1, low0
        k0, k1 = (k0 + 0x9E3779B9) % 2**32, (k1 + 0xBB67AE85) % 2**32
    block = np.array(counter, dtype=np.uint64)[:, None, None] * np.ones((1, 2, 3), dtype=np.uint64)
    words = philox4x32(block, key)
    assert np.array_equal(words, np.array([a, b, c, d])[:, None, None] * np.ones((1, 2, 3), dtype=np.uint64))


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("size", [(), (1,), (3,), (FEW,), (FEW + 1,), (5, 7)])
def test_an_input_gets_the_same_numbers_wherever_it_stands(draw, size):
    def twice(indices):
        stream = rng(indices)
        return draw(stream, size), draw(stream, size)

    indices = np.array([9, 0, 4, 2**40 + 1, 7])
    whole = twice(indices)
    assert whole[0].shape == (5, *size)
    for rows in ([0], [4, 3, 2, 1, 0], [2, 3]):
        part = twice(indices[rows])
        assert all(np.array_equal(one[rows], other) for one, other in zip(whole, part, strict=True))


@pytest.mark.parametrize("size", [2, FEW + 4])
@pytest.mark.parametrize(
    "other",
    [{"seed": 1}, {"name": "fade2"}, {"severity": 2}, {"occurrence": 1}, {"indices": [5, 6, 2**32, 2**33]}],
    ids=str,
)
def test_every_part_of_the_key_gives_another_stream(size, other):
    plain = {"indices": [0, 1, 2, 3]}
    one, two = rng(**plain), rng(**(plain | other))
    numbers = [stream.uniform(size) for stream in (one, one, two, two)]
    assert len(np.unique(numbers)) == np.size(numbers)


def test_a_name_cannot_imitate_another_key():
    assert rng([0], name='a", 1, 1', severity=1).uniform() != rng([0], name="a", severity=1).uniform()


@pytest.mark.parametrize("size", [4, 64])
def test_uniform_numbers_are_uniform(size):
    numbers = rng(np.arange(40_000 // size)).uniform(size)
    count = numbers.size
    assert numbers.min() > 0
    assert numbers.max() < 1
    assert abs(numbers.mean() - 0.5) < 5 * np.sqrt(1 / 12 / count)
    # χ² with 99 degrees of freedom: mean 99, standard deviation √198.
    observed = np.bincount((numbers.ravel() * 100).astype(int), minlength=100)
    assert abs(((observed - count / 100) ** 2 / (count / 100)).sum() - 99) < 5 * np.sqrt(198)


@pytest.mark.parametrize("size", [4, 64])
def test_normal_numbers_are_standard_normal(size):
    numbers = rng(np.arange(40_000 // size)).normal(size)
    count = numbers.size
    # The variances of the first four sample moments of a standard normal are 1, 2, 15 and 96 over the count.
    for power, moment, variance in ((1, 0, 1), (2, 1, 2), (3, 0, 15), (4, 3, 96)):
        assert abs((numbers**power).mean() - moment) < 5 * np.sqrt(variance / count)


@pytest.mark.parametrize("size", [4, 64])
def test_neighbouring_inputs_calls_and_severities_are_uncorrelated(size):
    indices = np.arange(20_000 // size)
    stream = rng(indices)
    first, second = stream.normal(size), stream.normal(size)
    stronger = rng(indices, severity=2).normal(size)
    for one, other in (
        (first[1:], first[:-1]),
        (first[:, 1:], first[:, :-1]),
        (first, second),
        (first, stronger),
    ):
        assert abs((one * other).mean()) < 5 / np.sqrt(one.size)


@pytest.mark.parametrize("size", [1, 30])
def test_integers_are_spread_evenly_over_the_half_open_range(size):
    numbers = rng(np.arange(30_000 // size)).integers(-2, 3, size)
    values, counts = np.unique(numbers, return_counts=True)
    assert values.tolist() == [-2, -1, 0, 1, 2]
    assert (np.abs(counts - 6_000) < 5 * np.sqrt(30_000 * 0.2 * 0.8)).all()


def test_poisson_counts_have_the_mean_and_variance_of_their_rate():
    rates = np.array([0.0, 0.3, 5.0, 60.0])
    counts = rng(np.arange(5_000)).poisson(np.broadcast_to(rates, (5_000, 4)))
    assert (counts[:, 0] == 0).all()
    assert (np.abs(counts.mean(axis=0) - rates) <= 5 * np.sqrt(rates / 5_000)).all()
    # Var(s²) ≈ (rate + 2 rate²) / n
    assert (np.abs(counts.var(axis=0) - rates) <= 5 * np.sqrt((rates + 2 * rates**2) / 5_000)).all()


def test_a_single_rate_gives_one_count_per_input():
    assert rng([3, 1, 2]).poisson(4.0).shape == (3,)


@pytest.mark.parametrize("rate", [np.ones((2, 4)), -1.0, np.nan], ids=str)
def test_a_bad_rate_is_refused(rate):
    with pytest.raises(InputError, match="rate"):
        rng([3, 1, 2]).poisson(rate)


def test_an_empty_range_is_refused():
    with pytest.raises(InputError, match="low must be less than high"):
        rng([0]).integers(3, 3)


def test_uniform_takes_bounds():
    numbers = rng(np.arange(1000)).uniform(low=-45, high=45)
    assert -45 < numbers.min() < -40
    assert 40 < numbers.max() < 45


def test_a_field_is_words_of_16_bits_spread_evenly():
    words = rng(np.arange(50)).field((31, 33))
    assert words.dtype == np.uint16
    assert words.shape == (50, 31, 33)
    count = words.size
    for bits in (words >> 8, words & 255):
        # χ² with 255 degrees of freedom: mean 255, standard deviation √510.
        observed = np.bincount(bits.ravel(), minlength=256)
        assert abs(((observed - count / 256) ** 2 / (count / 256)).sum() - 255) < 5 * np.sqrt(510)
    centred = words.reshape(50, -1) / 65536 - 0.5
    for one, other in ((centred[:, 1:], centred[:, :-1]), (centred[1:], centred[:-1])):
        assert abs((one * other).mean() * 12) < 5 / np.sqrt(one.size)


@pytest.mark.parametrize("size", [0, 1, 3, 4, 5, (2, 3)])
def test_a_field_of_any_size_is_the_start_of_a_longer_one(size):
    count = int(np.prod(size))
    whole = rng([4, 9]).field(64)
    assert np.array_equal(rng([4, 9]).field(size).reshape(2, -1), whole[:, :count])


def test_a_field_is_the_raw_output_of_numpys_philox():
    stream = rng([7])
    key = np.frombuffer(stream._digest[:16], dtype="<u8").astype(np.uint64)
    raw = np.random.Philox(key=key, counter=[0, 1, 7, 0]).random_raw(3)
    expected = [int(word) >> shift & 0xFFFF for word in raw for shift in (0, 16, 32, 48)]
    assert stream.field(12).tolist() == [expected]


@pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
@pytest.mark.parametrize("size", [(), (3,), (5, 7)])
def test_a_part_draws_what_the_whole_would_have_drawn_from_there_on(draw, size):
    def after_one_call():
        stream = rng([9, 0, 4, 2**40 + 1, 7])
        stream.uniform()
        return stream

    whole = after_one_call()
    expected = [draw(whole, size), draw(whole, size)]
    parent = after_one_call()
    for rows in (slice(0, 2), slice(2, 5), slice(4, None)):
        part = parent.part(rows)
        assert len(part) == len(expected[0][rows])
        for numbers in expected:
            assert np.array_equal(draw(part, size), numbers[rows])
    assert np.array_equal(draw(parent, size), expected[0]), "a part leaves the whole where it was"


def test_numbers_are_the_same_in_another_process():
    code = (
        "import numpy as np; from testifai.perturb.rng import Rng\n"
        "r = Rng(3, 'fäde', 2, np.arange(3)); print(r.uniform().tolist(), r.normal(40).sum().hex())"
    )
    printed = {
        subprocess.run(
            [sys.executable, "-c", code],
            env=os.environ | {"PYTHONHASHSEED": seed},
            capture_output=True,
            text=True,
            check=True,
        ).stdout
        for seed in ("1", "2")
    }
    here = Rng(3, "fäde", 2, np.arange(3))
    assert printed == {f"{here.uniform().tolist()} {here.normal(40).sum().hex()}\n"}


def test_threads_do_not_disturb_each_other():
    def draw(severity):
        stream = rng(np.arange(50), severity=severity)
        return [stream.normal(300), stream.uniform(2), stream.poisson(np.full((50, 30), 3.0))]

    expected = [draw(severity) for severity in range(8)]
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(draw, range(8)))
    for one, other in zip(expected, found, strict=True):
        assert all(np.array_equal(a, b) for a, b in zip(one, other, strict=True))


@pytest.mark.parametrize("name", ["random", "choice", "normall"])
def test_what_numpy_has_and_this_has_not_is_one_line_that_says_what_exists(name):
    fade = Perturbation("fade", lambda batch, parameter, rng: getattr(rng, name)(3), [0, 1])
    with pytest.raises(InputError) as caught:
        fade.apply(np.zeros((2, 3)), 1)
    said = str(caught.value)
    assert said.startswith(f"perturbation 'fade': rng.{name} does not exist; ")
    assert "known: field, integers, normal, poisson, uniform" in said
    assert "\n" not in said


def test_to_python_it_is_an_attribute_that_is_not_there():
    assert not hasattr(rng([0]), "choice")
    again = pickle.loads(pickle.dumps(rng([3])))
    assert again.uniform() == copy.deepcopy(rng([3])).uniform() == rng([3]).uniform()
