from __future__ import annotations

import numpy as np
import pytest

from testifai import data
from testifai.data.lazy import LazyInputs
from testifai.errors import InputError

DIGITS = np.arange(4 * 6, dtype=np.uint8).reshape(4, 2, 3)
FROZEN = "a00177c8bd2e0e4d3f6da3567adf39d6"  # of [0, 1, 2] labelled 1, 0, 1


class Doubled(LazyInputs):
    """A stack that exists only when asked for."""

    def __init__(self, base: np.ndarray) -> None:
        self.base, self.shape, self.dtype = base, base.shape, base.dtype

    def read(self, rows):
        return self.base[rows]


def test_arrays_stay_as_they_are():
    made = data.from_arrays(DIGITS, [0, 1, 2, 1])
    assert made.inputs is DIGITS
    assert made.labels.tolist() == [0, 1, 2, 1]
    assert made.classes is None
    assert len(made) == 4


def test_texts_of_any_kind_become_a_list():
    words = ["good", "bad", "ünïcode"]
    for texts in (words, tuple(words), np.array(words), np.array(words, dtype=object), np.char.encode(words, "utf-8")):
        assert data.from_arrays(texts).inputs == words


def test_pairs_of_texts_of_any_kind_become_a_list_of_tuples():
    pairs = [("good", "bad"), ("", "ünïcode")]
    ragged = np.empty(2, dtype=object)
    ragged[:] = pairs
    forms = (pairs, tuple(pairs), [list(pair) for pair in pairs], np.array(pairs), np.array(pairs, object), ragged)
    for texts in (*forms, np.char.encode(np.array(pairs), "utf-8")):
        made = data.from_arrays(texts, [1, 0])
        assert made.inputs == pairs
        assert all(type(pair) is tuple for pair in made.inputs)
        assert made.side == "both"


def test_fingerprints_know_pairs_and_sides():
    pairs = [("a", "b"), ("c", "d")]
    prints = {data.from_arrays(pairs, side=side).fingerprint for side in ("first", "second", "both")}
    prints |= {data.from_arrays(other).fingerprint for other in (["a", "b", "c", "d"], [("b", "a"), ("c", "d")])}
    assert len(prints) == 5
    assert data.from_arrays(pairs).fingerprint == data.from_arrays([list(pair) for pair in pairs]).fingerprint


@pytest.mark.parametrize(
    ("inputs", "side", "message"),
    [
        ([("a", "b")], "left", "data: side: must be one of first, second, both, got 'left'"),
        (["a", "b"], "first", "data: side 'first' is for pairs of texts; these inputs are none"),
        (DIGITS, "second", "data: side 'second' is for pairs of texts; these inputs are none"),
    ],
)
def test_sides_that_are_refused(inputs, side, message):
    with pytest.raises(InputError) as caught:
        data.from_arrays(inputs, side=side)
    assert str(caught.value) == message


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        ([("a", "b"), ("c",)], "row 1 holds str; a pair of strings"),
        ([("a", "b", "c")], "row 0 holds str, str, str; a pair"),
        ([("a", "b"), ("c", None)], "row 1 holds str, NoneType; a pair"),
        ([("a", "b"), ("c", float("nan"))], "row 1 holds str, float; a pair"),
        ([("a", "b"), "c"], "row 1 holds str; a pair"),
        ([("a", "b"), ()], "row 1 holds nothing; a pair"),
        ([("a", 2)], "row 0 holds str, int; a pair"),
        (np.array([["a", "b"], ["c", 2]], dtype=object), "row 1 holds str, int; a pair"),
        (["a", float("nan")], "row 1 is a float; a string"),
        (["a", ("b", "c")], "row 1 is a tuple; a string"),
        (np.empty((0, 3)), "has no rows"),
        ([], "has no rows"),
        (np.array([[0.0, np.nan], [1.0, 2.0], [np.inf, 0.0]]), r"2 of 3 hold NaN or infinity \(the first is row 0\)"),
        (np.float64(3), "a single value"),
        (np.array(["a", 3], dtype=object), "row 1 is a int"),
        (np.zeros(3, dtype=complex), "dtype complex128"),
        (np.zeros(3, dtype="datetime64[s]"), "dtype datetime64"),
        ([[1, 2], [3]], "different shapes"),
        ({"a": 1}, "dict is not accepted"),
        (np.array([["a"], ["b"]]), r"texts have shape \(2, 1\)"),
        (np.array([b"\xff"]), "not UTF-8"),
    ],
)
def test_inputs_that_are_refused(inputs, message):
    with pytest.raises(InputError, match=message) as caught:
        data.from_arrays(inputs)
    assert "\n" not in str(caught.value)


def test_wrap_takes_what_people_have():
    made = data.from_arrays(DIGITS, [0, 1, 2, 1])
    assert data.wrap(made) is made
    assert data.wrap((DIGITS, [0, 1, 2, 1])).labels.tolist() == [0, 1, 2, 1]
    assert data.wrap((DIGITS, None)).labels is None
    assert data.wrap(DIGITS).labels is None
    assert data.wrap(["a", "b"]).inputs == ["a", "b"]
    with pytest.raises(InputError, match="a tuple of 3"):
        data.wrap((DIGITS, [0], ["x"]))


def test_wrap_takes_a_path(tmp_path):
    np.savez(tmp_path / "d.npz", x=DIGITS, y=np.arange(4))
    assert data.wrap(tmp_path / "d.npz").labels.tolist() == [0, 1, 2, 3]


def test_fingerprint_is_of_the_contents():
    made = data.from_arrays(DIGITS, [0, 1, 2, 1])
    same = [
        data.from_arrays(DIGITS.copy(), np.array([0, 1, 2, 1], dtype=np.uint8)),
        data.from_arrays(np.asfortranarray(DIGITS), [0, 1, 2, 1]),
        data.from_arrays(Doubled(DIGITS), [0, 1, 2, 1], name="elsewhere"),
    ]
    other = [
        data.from_arrays(DIGITS, [0, 1, 2, 2]),
        data.from_arrays(DIGITS),
        data.from_arrays(DIGITS.reshape(4, 3, 2), [0, 1, 2, 1]),
        data.from_arrays(DIGITS.astype(np.int16), [0, 1, 2, 1]),
        data.from_arrays(DIGITS ^ 1, [0, 1, 2, 1]),
        data.from_arrays(DIGITS, [0, 1, 2, 1], classes=["a", "b", "c"]),
    ]
    assert {one.fingerprint for one in same} == {made.fingerprint}
    assert len({one.fingerprint for one in other} | {made.fingerprint}) == len(other) + 1


def test_fingerprint_does_not_depend_on_byte_order():
    numbers = np.arange(6, dtype="<f8").reshape(2, 3)
    assert data.from_arrays(numbers).fingerprint == data.from_arrays(numbers.astype(">f8")).fingerprint


def test_fingerprint_of_a_small_array_never_changes():
    """Written down once: a run made by an older version must still find its data."""
    assert data.from_arrays(np.arange(3, dtype=np.uint8), [1, 0, 1]).fingerprint == FROZEN


@pytest.mark.parametrize(
    "key", [slice(1, 3), [3, 0, 0], np.array([2]), np.array([True, False, False, True]), -1, slice(0, 0)]
)
def test_lazy_inputs_are_indexed_like_arrays(key):
    lazy = Doubled(DIGITS)
    assert np.array_equal(lazy[key], DIGITS[key])
    assert (len(lazy), lazy.ndim) == (4, 3)


def test_lazy_inputs_know_their_end():
    with pytest.raises(IndexError):
        Doubled(DIGITS)[[4]]
