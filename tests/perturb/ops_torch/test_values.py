"""Values of tensors: the arrays' primitives give the same."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from testifai.errors import InputError
from testifai.perturb import ops
from testifai.testing import example_images

torch = pytest.importorskip("torch")

from testifai.perturb import ops_torch  # noqa: E402
from testifai.perturb.ops_torch import values  # noqa: E402

DEVICES = ["cpu", "cuda"] if torch.cuda.is_available() else ["cpu"]
on_devices = pytest.mark.parametrize("device", DEVICES)
with_channels = pytest.mark.parametrize("channels", [1, 3])


def noise(*shape, seed=0, levels=256):
    return np.random.default_rng(seed).integers(0, levels, shape).astype(np.uint8)


def pictures(channels):
    """Noise, strokes on black, and colours that differ by few levels, with grey among them."""
    close = noise(3, 20, 24, channels, seed=1, levels=4) + noise(3, 1, 1, 1, seed=2, levels=252)
    return np.concatenate([noise(3, 20, 24, channels), example_images(3, (20, 24, channels)), close])


def words(*shape, seed=3):
    return np.random.default_rng(seed).integers(0, 65536, shape).astype(np.uint16)


def tensor(array, device="cpu"):
    return torch.from_numpy(array.astype(np.int32) if array.dtype == np.uint16 else array).to(device)


def same(found, expected, atol=0.0):
    assert str(found.dtype) == f"torch.{expected.dtype}"
    np.testing.assert_allclose(found.cpu().numpy(), expected, rtol=0, atol=atol)


def test_every_primitive_of_arrays_exists_for_tensors():
    one, other = ({name for name, value in vars(module).items() if callable(value)} for module in (ops, ops_torch))
    assert one == other


@on_devices
@with_channels
def test_lookup_is_indexing(device, channels):
    images, table = pictures(channels), noise(256)
    same(ops_torch.lookup(tensor(images, device), table), table[images])


@on_devices
@with_channels
@pytest.mark.parametrize("amount", [0.1, 0.37, 1.0])
def test_brighten_is_that_of_arrays(device, channels, amount):
    images = pictures(channels)
    same(ops_torch.brighten(tensor(images, device), amount), ops.brighten(images, amount))


@on_devices
@with_channels
@pytest.mark.parametrize(("factor", "offset"), [(0.3, 0), (0.1, 0), (2, 0), (5, 0.1), (20, 0.2), (1, -0.3), (0, 1)])
def test_saturate_is_that_of_arrays(device, channels, factor, offset):
    images = pictures(channels)
    given = tensor(images, device)
    same(ops_torch.saturate(given, factor, offset), ops.saturate(images, factor, offset), atol=1)
    assert np.array_equal(given.cpu(), images)


@given(st.lists(st.floats(-400, 700, width=32), min_size=1, max_size=40))
@settings(max_examples=20, deadline=None)
def test_levels_round_halves_up_and_cut_off(numbers):
    array = np.array(numbers, dtype=np.float32)
    same(ops_torch.levels(torch.from_numpy(array)), np.clip(np.floor(array + np.float32(0.5)), 0, 255).astype(np.uint8))


@on_devices
def test_floats_and_levels_are_each_others_inverse(device):
    images = pictures(3)
    same(ops_torch.floats(tensor(images, device)), images.astype(np.float32))
    same(ops_torch.levels(ops_torch.floats(tensor(images, device))), images)


@on_devices
def test_take_and_uniform_are_those_of_arrays(device):
    field = words(4, 9, 7)
    table = np.random.default_rng(0).standard_normal(65536).astype(np.float32)
    same(ops_torch.take(table, tensor(field, device)), table[field])
    same(ops_torch.uniform(tensor(field, device)), ops.uniform(field), atol=1e-7)
    same(ops_torch.uniform(tensor(field, device), -3, 5), ops.uniform(field, -3, 5), atol=1e-6)


@on_devices
def test_draw_levels_looks_up_pixel_and_word(device):
    table = np.random.default_rng(0).integers(0, 256, (256, 65536), dtype=np.uint8)
    images, field = pictures(3), words(*pictures(3).shape)
    same(ops_torch.draw_levels(tensor(images, device), tensor(field, device), table), table[images, field])


@on_devices
@with_channels
def test_statistics_of_images_are_those_of_arrays(device, channels):
    images = pictures(channels)
    given = tensor(images, device)
    same(ops_torch.channel_means(given), ops.channel_means(images))
    means = ops.channel_means(images)
    same(ops_torch.stretch(given, 0.5, tensor(means, device)), ops.stretch(images, 0.5, means))
    same(ops_torch.largest(given), ops.largest(images))
    layer = images[..., 0].astype(np.float32) / 7
    same(ops_torch.largest(tensor(layer, device)), ops.largest(layer))
    same(ops_torch.luma(given), ops.luma(images), atol=1e-4)
    same(ops_torch.luma(given.float()), ops.luma(images.astype(np.float32)), atol=1e-4)


def test_means_of_large_images_do_not_overflow(monkeypatch):
    monkeypatch.setattr(values, "_INT32_PIXELS", 10)
    images = np.full((2, 9, 9, 3), 255, dtype=np.uint8)
    same(ops_torch.channel_means(tensor(images)), np.full((2, 1, 1, 3), 255, dtype=np.float32))


def test_one_number_per_image_broadcasts():
    found = ops_torch.per_image(torch.tensor([1.5, 2.5], dtype=torch.float64))
    same(found, np.array([1.5, 2.5], dtype=np.float32).reshape(2, 1, 1, 1))
    same(ops_torch.per_image([3, 4])[..., 0], np.array([3, 4], dtype=np.float32).reshape(2, 1, 1))


@on_devices
def test_choices_between_values_are_those_of_arrays(device):
    layer = np.random.default_rng(0).standard_normal((2, 5, 6)).astype(np.float32)
    other, row = layer[::-1].copy(), np.linspace(-1, 1, 6, dtype=np.float32)
    here, there = tensor(layer, device), tensor(other, device)
    for name in ("maximum", "minimum"):
        ours, theirs = getattr(ops_torch, name), getattr(ops, name)
        same(ours(here, there), theirs(layer, other))
        same(ours(here, 0.25), theirs(layer, np.float32(0.25)))
        same(ours(0.25, here), theirs(np.float32(0.25), layer))
        same(ours(here, row), theirs(layer, row))
        same(ours(row, here), theirs(row, layer))
    same(ops_torch.where(here > 0, here, there), np.where(layer > 0, layer, other))
    same(ops_torch.where(here > 0, 1.0, there), np.where(layer > 0, np.float32(1), other))
    same(ops_torch.where(here > 0, row, 0.0), np.where(layer > 0, row, np.float32(0)))
    same(ops_torch.clip(here, -0.5, 0.5), np.clip(layer, -0.5, 0.5))
    same(ops_torch.clip(here, there, 2.0), np.clip(layer, other, 2.0))
    same(ops_torch.roll(here, 2, 1), np.roll(layer, 2, 1))
    same(ops_torch.zeros(here, (2, 3)), np.zeros((2, 3), dtype=np.float32))


@on_devices
@with_channels
def test_crops_are_windows_of_textures(device, channels):
    textures = noise(3, 30, 40, channels)
    which, tops, lefts = (np.random.default_rng(5).integers(0, most, 20) for most in (3, 20, 25))
    found = ops_torch.crops(textures, *(tensor(one, device) for one in (which, tops, lefts)), 11, 16)
    same(found, ops.crops(textures, which, tops, lefts, 11, 16))


def test_a_table_is_sent_to_the_device_once_and_found_by_content():
    table = noise(65536)
    first = values.constant(table, torch.device("cpu"))
    assert values.constant(table, torch.device("cpu")) is first
    assert values.constant(table.copy(), torch.device("cpu")) is first
    # A difference where no sample is taken, and other forms of the same bytes.
    changed = table.copy()
    changed[1] ^= 1
    for other in (changed, table.view(np.int8), table.reshape(256, 256)):
        found = values.constant(other, torch.device("cpu"))
        assert found is not first
        assert np.array_equal(found.numpy(), other)


@pytest.mark.parametrize(
    ("images", "told"),
    [
        (torch.zeros((2, 28, 28)), "uint8.*float32.*convert"),
        (torch.zeros((2, 28, 28), dtype=torch.bool), "bool"),
        (torch.zeros((28, 28), dtype=torch.uint8), r"\(28, 28\)"),
        (torch.zeros((2, 3, 28, 28), dtype=torch.uint8), "channels first"),
        (np.zeros((2, 28, 28), dtype=np.uint8), "ndarray"),
    ],
    ids=["float", "bool", "flat", "channels first", "array"],
)
def test_what_is_no_batch_of_images_is_refused(images, told):
    with pytest.raises(InputError, match=told):
        ops_torch.image_shape(images)


@on_devices
def test_results_do_not_depend_on_the_batch_to_the_last_bit(device):
    images = tensor(np.concatenate([pictures(3)] * 3), device)
    field = tensor(words(*images.shape), device)
    changes = {
        "saturate": lambda part: ops_torch.saturate(images[part], 2.3, 0.1),
        "brighten": lambda part: ops_torch.brighten(images[part], 0.3),
        "luma": lambda part: ops_torch.luma(images[part]),
        "uniform": lambda part: ops_torch.uniform(field[part], -1, 2),
        "means": lambda part: ops_torch.channel_means(images[part]),
    }
    for name, change in changes.items():
        whole = change(slice(None))
        again = torch.cat([change(slice(start, start + 2)) for start in range(0, len(images), 2)])
        assert torch.equal(whole, again), name
