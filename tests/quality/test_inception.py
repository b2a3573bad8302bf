"""Inception: against features that torch-fidelity gives with the same made-up weights."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.quality import resolve
from testifai.quality.extractors import Inception, convolutions
from testifai.testing import example_photographs

torch = pytest.importorskip("torch")

# Features 0, 1, 500, 1000 and 2047 of two images, and the means of all 2048, by torch-fidelity 0.4.0
# (FeatureExtractorInceptionV3, "2048") with the weights made below.
PLACES = [0, 1, 500, 1000, 2047]
EXPECTED = [
    [0.00131478, 1.02053249, 0.00195858, 0.04754864, 0.0],
    [0.00183397, 1.07679105, 0.00187631, 0.06651080, 0.0],
]
MEANS = [0.44556177, 0.45638716]


def shapes():
    """The kernels of every convolution: (channels out, channels in, height, width)."""
    stem = [
        ("1a_3x3", 32, 3, 3),
        ("2a_3x3", 32, 32, 3),
        ("2b_3x3", 64, 32, 3),
        ("3b_1x1", 80, 64, 1),
        ("4a_3x3", 192, 80, 3),
    ]
    found = {f"Conv2d_{name}": (out, into, size, size) for name, out, into, size in stem}

    def add(block, **kernels):
        found.update({f"{block}.branch{name}": shape for name, shape in kernels.items()})

    for block, into, pool in (("5b", 192, 32), ("5c", 256, 64), ("5d", 288, 64)):
        add(f"Mixed_{block}", **{
            "1x1": (64, into, 1, 1), "5x5_1": (48, into, 1, 1), "5x5_2": (64, 48, 5, 5),
            "3x3dbl_1": (64, into, 1, 1), "3x3dbl_2": (96, 64, 3, 3), "3x3dbl_3": (96, 96, 3, 3),
            "_pool": (pool, into, 1, 1),
        })  # fmt: skip
    add("Mixed_6a", **{
        "3x3": (384, 288, 3, 3), "3x3dbl_1": (64, 288, 1, 1), "3x3dbl_2": (96, 64, 3, 3), "3x3dbl_3": (96, 96, 3, 3),
    })  # fmt: skip
    for block, c in (("6b", 128), ("6c", 160), ("6d", 160), ("6e", 192)):
        add(f"Mixed_{block}", **{
            "1x1": (192, 768, 1, 1), "7x7_1": (c, 768, 1, 1), "7x7_2": (c, c, 1, 7), "7x7_3": (192, c, 7, 1),
            "7x7dbl_1": (c, 768, 1, 1), "7x7dbl_2": (c, c, 7, 1), "7x7dbl_3": (c, c, 1, 7),
            "7x7dbl_4": (c, c, 7, 1), "7x7dbl_5": (192, c, 1, 7), "_pool": (192, 768, 1, 1),
        })  # fmt: skip
    add("Mixed_7a", **{
        "3x3_1": (192, 768, 1, 1), "3x3_2": (320, 192, 3, 3), "7x7x3_1": (192, 768, 1, 1),
        "7x7x3_2": (192, 192, 1, 7), "7x7x3_3": (192, 192, 7, 1), "7x7x3_4": (192, 192, 3, 3),
    })  # fmt: skip
    for block, into in (("7b", 1280), ("7c", 2048)):
        add(f"Mixed_{block}", **{
            "1x1": (320, into, 1, 1), "3x3_1": (384, into, 1, 1), "3x3_2a": (384, 384, 1, 3),
            "3x3_2b": (384, 384, 3, 1), "3x3dbl_1": (448, into, 1, 1), "3x3dbl_2": (384, 448, 3, 3),
            "3x3dbl_3a": (384, 384, 1, 3), "3x3dbl_3b": (384, 384, 3, 1), "_pool": (192, into, 1, 1),
        })  # fmt: skip
    return found


@pytest.fixture(scope="module")
def weights():
    rng, kernels = np.random.default_rng(0), shapes()
    parts = ("bn.bias", "bn.running_mean", "bn.running_var", "bn.weight", "conv.weight")
    state = {}
    for name in sorted(f"{convolution}.{part}" for convolution in kernels for part in parts):
        kernel = kernels[name.rsplit(".", 2)[0]]
        values = rng.random(kernel if name.endswith("conv.weight") else kernel[:1], dtype=np.float32)
        if name.endswith("conv.weight"):
            values = (values - 0.5) * np.float32((24 / np.prod(kernel[1:])) ** 0.5)
        elif name.endswith(("bn.bias", "running_mean")):
            values = (values - 0.5) * np.float32(0.2)
        else:
            values = values * np.float32(0.5) + np.float32(0.75)
        state[name] = torch.from_numpy(values)
    return state


def test_every_convolution_is_used_once():
    names = list(convolutions())
    assert len(names) == len(set(names)) == 94
    assert set(names) == set(shapes())


def test_features_are_those_of_torch_fidelity(weights):
    network, images = Inception(weights, "1"), example_photographs(2)
    features = network(images)
    assert features.shape == (2, 2048)
    np.testing.assert_allclose(features[:, PLACES], EXPECTED, atol=1e-4)
    np.testing.assert_allclose(features.mean(axis=1), MEANS, atol=1e-4)
    np.testing.assert_allclose(network(images[:1] / np.float32(255)), features[:1], atol=1e-4)
    grey = images[:1, ..., 0]
    np.testing.assert_allclose(network(grey), network(np.repeat(grey[..., None], 3, axis=3)), atol=1e-6)


def test_weights_are_read_from_a_file_beside_the_spec(weights, tmp_path):
    torch.save(weights, tmp_path / "inception.pth")
    told = {"use": "kid", "extractor": "inception", "weights": "inception.pth"}
    measure = resolve(told, folder=tmp_path)
    assert measure.scale == "raw"  # as published
    assert not measure.uses_model
    assert str(tmp_path) not in str(measure.describe())
    assert len(measure.describe()["extractor"]) == 64


def test_what_is_missing_is_said(weights, tmp_path):
    with pytest.raises(InputError, match=r"^quality: extractor = 'inception' needs weights = 'path'"):
        resolve({"use": "kid", "extractor": "inception"})

    def load(name="w.pth"):
        return resolve({"use": "kid", "extractor": "inception", "weights": name}, folder=tmp_path)

    with pytest.raises(InputError, match=r"none\.pth does not exist; give the file"):
        load("none.pth")
    (tmp_path / "w.pth").write_bytes(b"no weights")
    with pytest.raises(InputError, match="is not a file of weights alone"):
        load()
    torch.save([1, 2], tmp_path / "w.pth")
    with pytest.raises(InputError, match="holds a list"):
        load()
    name = "Conv2d_1a_3x3.conv.weight"
    torch.save(
        {key: value for key, value in weights.items() if key[:6] == "Conv2d" and key != name}, tmp_path / "w.pth"
    )
    with pytest.raises(InputError, match=r"^quality: weights: Conv2d_1a_3x3 is missing or of another shape"):
        load()


@pytest.mark.parametrize("batch", [["a"], np.zeros((2, 5)), np.zeros((2, 8, 8, 2)), np.zeros((2, 8, 8), int)])
def test_what_is_no_image_is_refused(weights, batch):
    with pytest.raises(InputError, match=r"^quality: inception (looks at|takes) images"):
        Inception(weights, "1")(batch)
