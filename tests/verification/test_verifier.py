"""A verifier, where one is installed (pip install maraboupy), answers as points of the region do."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from tests.verification.graphs import classifier

import testifai as ta
from testifai.testing import example_photographs
from testifai.verification import hand_over

CALL = "import sys; from maraboupy.MarabouMain import main; sys.argv = ['Marabou', *sys.argv[1:]]; main()"


@pytest.mark.parametrize("levels", [{"contrast": (1.0, 1.1), "brightness": (0, 5)}, {"brightness": (0, 100)}])
def test_a_verifier_answers(tmp_path, levels):
    pytest.importorskip("maraboupy")
    path = classifier(tmp_path / "small.onnx", (6, 5))
    images = example_photographs(40, (6, 5))
    space = ta.Space({"contrast": "deeptest.contrast", "brightness": "deeptest.brightness"})
    verdicts = []
    for index in range(12):
        found = hand_over(path, images, space, index=index, levels=levels, oracle="consistency")
        found.write(tmp_path)
        files = [str(tmp_path / name) for name in ("model.onnx", "property.vnnlib")]
        told = subprocess.run([sys.executable, "-c", CALL, *files], capture_output=True, text=True, check=False).stdout
        proved = "unsat" in told
        assert proved or "sat" in told
        # A proof is about levels before rounding: points of the region contradict it by no more than that changes.
        assert not proved or found.agreement.margin > -2 * found.agreement.difference
        verdicts.append(proved)
    assert np.any(verdicts)
