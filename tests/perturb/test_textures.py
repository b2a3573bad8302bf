"""Clouds and frost against point-by-point statements and the published textures' figures."""

from __future__ import annotations

import numpy as np
import pytest

from testifai.perturb import ops
from testifai.perturb.rng import Rng
from testifai.perturb.textures import frost, plasma

# Mean colour and standard deviation of the luma of ImageNet-C's six photographs of frost.
PHOTOGRAPHS = [
    ((78, 149, 166), 18.4),
    ((201, 205, 214), 21.9),
    ((201, 205, 214), 21.9),
    ((138, 153, 165), 28.6),
    ((112, 123, 135), 43.4),
    ((71, 95, 105), 40.7),
]


class Words:
    """Gives the same words whatever the size asked for: given ones first, then a constant."""

    def __init__(self, first, rest=50000):
        self.first, self.rest = first, rest

    def field(self, size):
        words = np.full((len(self.first), size), self.rest, np.uint16)
        count = min(size, self.first.shape[1])
        words[:, :count] = self.first[:, :count]
        return words


def words(count, number, seed=0):
    return np.random.default_rng(seed).integers(0, 65536, (count, number)).astype(np.uint16)


def point_by_point(values, side, decay):
    """Diamond-square as the reference describes it, one point after the other; values lie in -1..1."""
    grid = np.zeros((side, side))
    values = iter(values)
    step, roughness = side, 1.0
    while step >= 2:
        half = step // 2
        corners = range(0, side, step)
        for offset_y, offset_x in ((half, half), (0, half), (half, 0)):
            around = [(half, half), (half, -half), (-half, half), (-half, -half)]
            if offset_y != offset_x:
                around = [(half, 0), (-half, 0), (0, half), (0, -half)]
            for top in corners:
                for left in corners:
                    y, x = top + offset_y, left + offset_x
                    mean = sum(grid[(y + dy) % side, (x + dx) % side] for dy, dx in around) / 4
                    grid[y, x] = mean + roughness * roughness * next(values)
        step, roughness = half, roughness / decay
    return (grid - grid.min()) / (grid.max() - grid.min())


@pytest.mark.parametrize("decay", [1.4, 2.0, 3.0])
@pytest.mark.parametrize(("height", "width"), [(16, 16), (9, 16), (16, 12), (13, 10)])
def test_plasma_is_the_corner_of_a_diamond_square_map(height, width, decay):
    drawn = words(3, 255)
    layer = plasma(ops, Words(drawn), height, width, decay)
    assert layer.dtype == np.float32
    for one, row in zip(layer, (drawn + 0.5) / 32768 - 1, strict=True):
        assert np.abs(one - point_by_point(row, 16, decay)[:height, :width]).max() < 1e-5


@pytest.mark.parametrize(("height", "width", "side"), [(28, 28, 256), (1, 240, 256), (130, 70, None), (100, 257, None)])
def test_the_part_that_is_shown_is_the_same_as_on_the_whole_map(height, width, side):
    # From 64 points a side on, every word is the same, so that more or fewer of them make no difference.
    drawn = words(2, 64 * 64 - 1)
    whole = 512 if width > 256 else 256
    expected = plasma(ops, Words(drawn), whole, whole, 1.7)[:, :height, :width]
    assert np.array_equal(plasma(ops, Words(drawn), height, width, 1.7, side), expected)


def test_the_first_points_of_a_large_map_have_its_extremes():
    drawn = words(4, 256 * 256 - 1, seed=3)
    layers = plasma(ops, Words(drawn), 256, 256, 1.4)
    coarse = layers[:, ::4, ::4]
    assert (coarse.min(axis=(1, 2)) == 0).all()
    assert (coarse.max(axis=(1, 2)) == 1).all()
    assert ((layers == 0) | (layers == 1)).mean() < 0.0005


def test_clouds_belong_to_their_inputs():
    whole = plasma(ops, Rng(1, "cloud", 2, np.arange(7)), 32, 20, 2.0)
    alone = plasma(ops, Rng(1, "cloud", 2, np.array([4])), 32, 20, 2.0)
    assert np.array_equal(whole[4], alone[0])
    assert not np.array_equal(whole[3], whole[4])


def test_a_higher_decay_is_smoother():
    steps = []
    for decay in (1.4, 2.0, 3.0):
        layer = plasma(ops, Rng(0, "cloud", 1, np.arange(50)), 32, 32, decay)
        steps.append(np.abs(np.diff(layer, axis=2)).mean())
    assert steps[0] > 1.3 * steps[1] > 1.3 * steps[2]


def luma(picture):
    return picture.astype(float) @ [0.299, 0.587, 0.114]


def test_frost_has_the_colour_and_the_contrast_of_the_photographs():
    textures = frost()
    assert textures.shape == (6, 512, 512, 3)
    assert textures.dtype == np.uint8
    for texture, (colour, contrast) in zip(textures, PHOTOGRAPHS, strict=True):
        assert np.abs(texture.mean(axis=(0, 1)) - colour).max() < 2
        assert abs(luma(texture).std() - contrast) < 1.5


def test_frost_has_no_seam_where_it_would_be_repeated():
    for texture in frost():
        grey = luma(texture)
        for lines in (grey, grey.T):
            inside = np.abs(np.diff(lines, axis=0)).mean(axis=1)
            assert np.abs(lines[0] - lines[-1]).mean() < inside.max() + 1


def test_frost_is_shrunk_and_enlarged():
    small, large = frost(0.2), frost(shown=600)
    assert small.shape == (6, 102, 102, 3)
    assert large.shape == (6, 660, 660, 3)
    assert frost(1.0, 224) is frost()
    for texture, one, other in zip(frost(), small, large, strict=True):
        assert np.abs(one.mean(axis=(0, 1)) - texture.mean(axis=(0, 1))).max() < 1
        assert np.abs(other.mean(axis=(0, 1)) - texture.mean(axis=(0, 1))).max() < 1
        assert luma(one).std() < luma(texture).std()


def test_frost_is_shared_and_cannot_be_written_to():
    for textures in (frost(), frost(0.2)):
        with pytest.raises(ValueError, match="read-only"):
            textures[0, 0, 0, 0] = 1
