"""Contact sheets: what is shown where, on which image, and what is refused."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from testifai import perturb
from testifai.data.image_io import read_image
from testifai.errors import InputError
from testifai.present.contact_sheets import (
    GAP,
    HEAD,
    LARGEST,
    LINE,
    SMALLEST,
    cell_size,
    compose,
    compose_steps,
    draw,
    draw_composites,
    example,
    parse_composite,
    street,
)

INVERT = perturb.Perturbation("invert", lambda images, by, rng: np.where(by, 255 - images, images), [0, 1])


def cells(sheet, image, columns):
    """The pictures of a sheet by row and severity: the columns are at its right end."""
    height, width = cell_size([image])
    left = sheet.shape[1] - columns * (width + GAP)
    return lambda row, severity: sheet[HEAD + row * (height + GAP) :, left + severity * (width + GAP) :][
        :height, :width
    ]


@pytest.mark.parametrize("shape", [(28, 28), (32, 24, 1), (40, 40, 3), (4, 4), (96, 96, 3), (30, 150, 3)])
def test_a_cell_shows_the_image_at_that_severity(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    perturbations = [perturb.get("mnist_c.brightness"), INVERT]
    cell = cells(compose(perturbations, image), image, 6)
    height, width = cell(0, 0).shape[:2]
    assert max(height, width) == max(SMALLEST, *shape[:2])
    assert abs(height / width - shape[0] / shape[1]) < 0.02
    for row, one in enumerate(perturbations):
        for severity in range(len(one.severities)):
            expected = np.asarray(one.apply(image[None], severity))[0].reshape(*shape[:2], -1)
            # Nearest neighbour: the middle of the shown pixel is the pixel.
            for y, x in [(0, 0), (shape[0] - 1, shape[1] - 1), (shape[0] // 2, 1)]:
                at = (int((y + 0.5) * height / shape[0]), int((x + 0.5) * width / shape[1]))
                assert cell(row, severity)[at].tolist() == np.broadcast_to(expected[y, x], 3).tolist()
    assert (cell(1, 3) == 255).all(), "INVERT has no severity 3: its place stays white"


def test_a_large_image_is_perturbed_whole_and_shown_shrunk():
    image = np.zeros((400, 800, 3), np.uint8)
    image[:, ::2] = 200
    sheet = compose([INVERT], image)
    cell = cells(sheet, image, 2)
    assert cell(0, 0).shape == (LARGEST // 2, LARGEST, 3)
    assert abs(int(cell(0, 0).mean()) - 100) <= 1
    assert abs(int(cell(0, 1).mean()) - 155) <= 1


def test_there_is_a_row_for_each_and_a_name_before_it():
    found = [perturb.get(name) for name in perturb.names("mnist_c")]
    image = np.zeros((28, 28), np.uint8)
    sheet = compose(found, image)
    across = SMALLEST + GAP
    assert sheet.shape[0] == HEAD + len(found) * across
    names = sheet[:, : -6 * across]
    for row in range(len(found)):
        assert (names[HEAD + row * across :][:SMALLEST] < 128).any()
    assert (names[:, -8:] == 255).all(), "the longest name fits"


def test_without_an_image_digits_and_the_street_are_shown():
    assert example("mnist_c.zoom").shape == (28, 28)
    assert np.array_equal(example("imagenet_c.fog"), street())
    assert np.array_equal(example("own"), street())
    sheet = compose([perturb.get("mnist_c.zoom"), INVERT])
    cell = cells(sheet, street(), 6)
    assert np.array_equal(cell(1, 0), street())
    assert (np.ptp(cell(0, 0), axis=-1) == 0).all()


def test_the_street_has_colours_edges_and_smooth_areas():
    scene = street()
    assert scene.shape == (96, 96, 3)
    assert np.array_equal(scene, street())
    assert len(np.unique(scene.reshape(-1, 3), axis=0)) > 500
    assert np.ptp(scene, axis=-1).max() > 150
    steps = np.abs(np.diff(scene.astype(int), axis=1)).max(axis=-1)
    assert steps.max() > 150
    assert (steps == 0).mean() > 0.5


# -- composites ---------------------------------------------------------------------------------------------------


def test_a_composite_is_shown_after_each_of_its_steps():
    image = street()
    composites = [parse_composite("mnist_c.zoom=3,mnist_c.brightness=2"), parse_composite("mnist_c.brightness=5")]
    sheet = compose_steps(composites, image)
    zoomed = perturb.get("mnist_c.zoom").apply(image[None], 3)
    both = perturb.apply({"mnist_c.zoom": 3, "mnist_c.brightness": 2}, image[None])
    bright = perturb.get("mnist_c.brightness").apply(image[None], 5)
    down = 96 + LINE + GAP
    across = (sheet.shape[1] - GAP) // 3
    for row, column, expected in ((0, 0, image), (0, 1, zoomed[0]), (0, 2, both[0]), (1, 0, image), (1, 1, bright[0])):
        top, left = GAP + row * down, GAP + column * across
        assert np.array_equal(sheet[top : top + 96, left : left + 96], expected)
        assert (sheet[top + 96 : top + 96 + LINE, left : left + across] < 128).any(), "its label"
    assert (sheet[GAP + down :, GAP + 2 * across :] == 255).all()


def test_the_order_of_a_composite_is_the_order_given():
    one, other = (
        compose_steps([parse_composite(text)])
        for text in ("mnist_c.zoom=3,mnist_c.brightness=2", "mnist_c.brightness=2,mnist_c.zoom=3")
    )
    assert not np.array_equal(one[: GAP + SMALLEST], other[: GAP + SMALLEST])


def test_a_perturbation_used_twice_draws_anew():
    image = street()
    sheet = compose_steps([parse_composite("mnist_c.shot_noise=1, mnist_c.shot_noise=1")], image)
    noise = perturb.get("mnist_c.shot_noise")
    twice = noise.apply(noise.apply(image[None], 1), 1, occurrence=1)[0]
    across = (sheet.shape[1] - GAP) // 3
    assert np.array_equal(sheet[GAP : GAP + 96, GAP + 2 * across :][:, :96], twice)


def test_composites_of_digit_perturbations_are_shown_on_a_digit():
    digit = compose_steps([parse_composite("mnist_c.zoom=1")])
    mixed = compose_steps([parse_composite("mnist_c.zoom=1,imagenet_c.contrast=1")])
    assert (np.ptp(digit, axis=-1) == 0).all()
    assert np.ptp(mixed, axis=-1).max() > 100


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("mnist_c.zoom", "'mnist_c.zoom' is not perturbation=severity"),
        ("mnist_c.zoom=3,", "'' is not perturbation=severity"),
        ("", "'' is not perturbation=severity"),
        ("mnist_c.zoom=high", "'mnist_c.zoom=high' is not"),
        ("mnist_c.zoom=-1", "is not perturbation=severity"),
        ("mnist_c.zoom=9", "severity: must be a whole number, at least 0 and at most 5, got 9"),
        ("mnist_c.zom=3", "did you mean 'mnist_c.zoom'"),
    ],
)
def test_a_composite_that_cannot_be_read_is_refused(text, words):
    with pytest.raises(InputError) as caught:
        parse_composite(text)
    assert words in str(caught.value)


# -- files --------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", ["sheet.png", "sheet.JPG", "sheet.jpeg"])
def test_the_sheet_is_written_as_a_picture(tmp_path, name):
    draw([INVERT], tmp_path / name)
    read = cv2.imread(str(tmp_path / name))
    expected = compose([INVERT])
    assert read.shape == expected.shape
    assert np.abs(read[..., ::-1].astype(int) - expected).mean() < 3


def test_colours_are_not_swapped_on_the_way_in_and_out(tmp_path):
    red = np.zeros((8, 8, 3), np.uint8)
    red[..., 0] = 255
    cv2.imwrite(str(tmp_path / "red.png"), red[..., ::-1])
    assert np.array_equal(read_image(tmp_path / "red.png"), red)
    draw_composites([[(INVERT, 1)]], tmp_path / "sheet.png", red)
    assert read_image(tmp_path / "sheet.png")[40, 40].tolist() == [255, 0, 0]


@pytest.mark.parametrize("form", [(9, 7), (9, 7, 3), (9, 7, 4)])
def test_images_are_read_as_grey_or_rgb_of_8_bits(tmp_path, form):
    pixels = np.random.default_rng(0).integers(0, 256, form, dtype=np.uint8)
    cv2.imwrite(str(tmp_path / "image.png"), pixels)
    expected = pixels if pixels.ndim == 2 else pixels[..., 2::-1]
    assert np.array_equal(read_image(tmp_path / "image.png"), expected)
    cv2.imwrite(str(tmp_path / "deep.png"), pixels.astype(np.uint16) * 257)
    assert np.array_equal(read_image(tmp_path / "deep.png"), expected)


def test_mistakes_are_one_line(tmp_path, monkeypatch):
    (tmp_path / "text.png").write_text("no image")
    (tmp_path / "empty.jpg").write_bytes(b"")
    for name, words in (
        ("missing.png", "cannot read .*No such file"),
        (".", "cannot read .*Is a directory"),
        ("text.png", "is not an image"),
        ("empty.jpg", "is not an image"),
    ):
        with pytest.raises(InputError, match=f"^image: .*{words}"):
            read_image(tmp_path / name)
    with pytest.raises(InputError, match="cannot write"):
        draw([INVERT], tmp_path / "no" / "sheet.png")
    monkeypatch.setattr("testifai.present.contact_sheets.compose", lambda *_: pytest.fail("drawn"))
    with pytest.raises(InputError, match=r"'sheet\.pdf' is not a picture"):
        draw([INVERT], tmp_path / "sheet.pdf")
