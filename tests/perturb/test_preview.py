import numpy as np
import pytest

from testifai import perturb
from testifai.errors import InputError
from testifai.perturb.preview import CELL, GAP, HEAD, NAMES, compose, draw

INVERT = perturb.Perturbation("invert", lambda images, by, rng: np.where(by, 255 - images, images), [0, 1])


def cell(sheet, row: int, severity: int):
    top, left = HEAD + row * (CELL + GAP), NAMES + severity * (CELL + GAP)
    return sheet[top : top + CELL, left : left + CELL]


@pytest.mark.parametrize("shape", [(28, 28), (32, 24, 1), (40, 40, 3), (4, 4)])
def test_a_cell_shows_the_image_at_that_severity(shape):
    image = np.random.default_rng(0).integers(0, 256, shape, dtype=np.uint8)
    perturbations = [perturb.get("mnist_c.brightness"), INVERT]
    sheet = compose(perturbations, image)
    assert sheet.dtype == np.uint8
    for row, one in enumerate(perturbations):
        for severity in range(len(one.severities)):
            expected = np.asarray(one.apply(image[None], severity))[0]
            expected = expected.reshape(*shape[:2], -1)
            # Nearest neighbour: the middle of the shown pixel is the pixel.
            for y, x in [(0, 0), (shape[0] - 1, shape[1] - 1), (shape[0] // 2, 1)]:
                at = (int((y + 0.5) * CELL / shape[0]), int((x + 0.5) * CELL / shape[1]))
                shown = cell(sheet, row, severity)[at]
                assert shown.tolist() == np.broadcast_to(expected[y, x], 3).tolist()
    assert (cell(sheet, 1, 3) == 255).all(), "INVERT has no severity 3: its place stays white"


def test_there_is_a_row_for_each_and_a_name_before_it():
    found = [perturb.get(name) for name in perturb.names("mnist_c")]
    sheet = compose(found, np.zeros((28, 28), np.uint8))
    assert sheet.shape == (HEAD + len(found) * (CELL + GAP), NAMES + 6 * (CELL + GAP), 3)
    for row in range(len(found)):
        top = HEAD + row * (CELL + GAP)
        assert (sheet[top : top + CELL, :NAMES] < 128).any()


@pytest.mark.parametrize("name", ["sheet.png", "sheet.JPG", "sheet.jpeg"])
def test_the_sheet_is_written_as_a_picture(tmp_path, name):
    import cv2

    draw([INVERT], tmp_path / name)
    read = cv2.imread(str(tmp_path / name))
    assert read.shape == (HEAD + CELL + GAP, NAMES + 2 * (CELL + GAP), 3)
    first, second = cell(read, 0, 0).astype(int), cell(read, 0, 1).astype(int)
    assert np.abs(first + second - 255).mean() < 5


def test_colours_are_not_swapped(tmp_path):
    import cv2

    red = np.zeros((8, 8, 3), np.uint8)
    red[..., 0] = 255
    draw([INVERT], tmp_path / "sheet.png", red)
    read = cv2.cvtColor(cv2.imread(str(tmp_path / "sheet.png")), cv2.COLOR_BGR2RGB)
    assert cell(read, 0, 0)[40, 40].tolist() == [255, 0, 0]


def test_mistakes_are_one_line(tmp_path):
    with pytest.raises(InputError, match=r"'sheet\.pdf' is not a picture"):
        draw([INVERT], tmp_path / "sheet.pdf")
    with pytest.raises(InputError, match="cannot write"):
        draw([INVERT], tmp_path / "no" / "sheet.png")
