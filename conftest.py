"""Keep what needs an extra that is not installed out of the collection of doctests, and the user's own record alone."""

import atexit
import doctest
import os
import shutil
import tempfile
from importlib.util import find_spec

import pytest

# Runs made by tests, and by the commands they start, are noted in a folder of their own.
os.environ["TESTIFAI_STATE"] = tempfile.mkdtemp(prefix="testifai-state-")
atexit.register(shutil.rmtree, os.environ["TESTIFAI_STATE"], ignore_errors=True)

NEED = {
    "dash": ["src/testifai/app/*"],
    "torch": [
        "src/testifai/perturb/ops_torch/*",
        "src/testifai/models/onnx_torch.py",
        "src/testifai/models/onnx_operators.py",
        "src/testifai/engine/device/*",
    ],
    "triton": ["src/testifai/perturb/ops_torch/kernels.py", "src/testifai/models/convolution_kernel.py"],
    "pyagrum": ["src/testifai/locality/network.py", "src/testifai/surrogates/inference.py"],
}

collect_ignore_glob = [pattern for library, patterns in NEED.items() if not find_spec(library) for pattern in patterns]


@pytest.fixture(autouse=True)
def _tomogram_of_examples(request, doctest_namespace):
    """Give the examples of Tomogram's methods the tomogram of the example of the class."""
    if isinstance(request.node, pytest.DoctestItem) and request.node.name.startswith("testifai.tomogram.tomogram."):
        from testifai.tomogram import Tomogram

        if "tomogram" not in doctest_namespace:
            example = doctest.DocTestParser().get_examples(Tomogram.__doc__)
            exec("".join(one.source for one in example[:-1]), doctest_namespace)
