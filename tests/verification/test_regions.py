"""The property, read back by the package vnnlib: 2.0 by its version 1, 1.0 by its version 0."""

from __future__ import annotations

import re

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.perturb import get
from testifai.verification import Range, property_text

RANGES = [
    Range("contrast", get("deeptest.contrast"), 1.0, 1.6),
    Range("brightness", get("deeptest.brightness"), 0.0, 0.00001),
]
BOX = [(1.0, 1.6), (0.0, 0.00001)]


def counterexamples(matrices):
    """For each alternative, the class that is to score at least as much as another."""
    found = []
    for matrix in matrices:
        [row] = [list(row) for row in matrix]
        assert sorted(row) == [-1.0, 0.0, 1.0]
        found.append((row.index(-1.0), row.index(1.0)))
    return found


def test_version_2_is_read_back():
    vnnlib = pytest.importorskip("vnnlib", minversion="1.0")
    from vnnlib import compat

    query = vnnlib.parse_query_string(property_text(RANGES, 1, 3, version="2.0", about="a note"))
    [case] = compat.transform(query)
    np.testing.assert_allclose(case.input_box, BOX, atol=1e-9)
    assert counterexamples(one.coeff_matrix for one in case.output_constraints) == [(0, 1), (2, 1)]


def test_version_1_is_read_back(tmp_path):
    compat = pytest.importorskip("vnnlib.compat")
    if not hasattr(compat, "read_vnnlib_simple"):
        pytest.skip("vnnlib from 1.0 on reads version 2.0 alone; 0.0.1 reads version 1.0")
    (tmp_path / "p.vnnlib").write_text(property_text(RANGES, 1, 3))
    [(box, alternatives)] = compat.read_vnnlib_simple(tmp_path / "p.vnnlib", 2, 3)
    np.testing.assert_allclose(box, BOX, atol=1e-9)
    assert counterexamples(matrix for matrix, _ in alternatives) == [(0, 1), (2, 1)]


def test_version_1_says_what_version_2_says():
    first, second = (property_text(RANGES, 1, 3, version=version) for version in ("1.0", "2.0"))
    asserted = [line for line in first.splitlines() if line.startswith("(assert")]
    assert asserted == [
        re.sub(r"([XY])\[0,(\d)\]", r"\1_\2", line) for line in second.splitlines() if "(assert" in line
    ]
    assert first.count("(declare-const X_") == 2
    assert first.count("(declare-const Y_") == 3


def test_another_version_is_one_line():
    with pytest.raises(InputError, match="version: '3' is not known"):
        property_text(RANGES, 0, 2, version="3")
