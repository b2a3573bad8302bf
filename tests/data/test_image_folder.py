from __future__ import annotations

import cv2
import numpy as np
import pytest

from testifai import data
from testifai.errors import InputError

RNG = np.random.default_rng(0)


def write(path, image):
    """RGB or grey in, as a file; OpenCV itself writes BGR."""
    path.parent.mkdir(parents=True, exist_ok=True)
    assert cv2.imwrite(str(path), image[..., ::-1] if image.ndim == 3 else image)
    return image


@pytest.fixture
def pets(tmp_path):
    images = [
        write(tmp_path / "cat" / "1.png", RNG.integers(0, 256, (6, 5, 3), dtype=np.uint8)),
        write(tmp_path / "cat" / "2.bmp", RNG.integers(0, 256, (6, 5, 3), dtype=np.uint8)),
        write(tmp_path / "dog" / "1.PNG", RNG.integers(0, 256, (6, 5, 3), dtype=np.uint8)),
    ]
    (tmp_path / "dog" / "notes.txt").write_text("not an image")
    (tmp_path / "dog" / ".hidden.png").write_text("not an image")
    (tmp_path / "empty").mkdir()
    return tmp_path, np.stack(images)


def test_classes_are_folders_in_order(pets):
    path, images = pets
    read = data.load("folder", path)
    assert read.classes == ("cat", "dog")
    assert read.labels.tolist() == [0, 0, 1]
    assert read.inputs.shape == (3, 6, 5, 3)
    assert np.array_equal(read.inputs[np.array([2, 0, 1])], images[[2, 0, 1]])


def test_grey_by_itself_and_by_option(pets, tmp_path):
    path, images = pets
    grey = data.load("folder", path, color="grey").inputs
    assert grey.shape == (3, 6, 5)
    luma = images[0] @ np.array([0.299, 0.587, 0.114])  # ITU-R BT.601
    assert np.abs(grey[0] - luma).max() <= 1
    digit = write(tmp_path / "digits" / "7" / "a.png", RNG.integers(0, 256, (4, 4), dtype=np.uint8))
    read = data.load("folder", tmp_path / "digits")
    assert np.array_equal(read.inputs[:], digit[np.newaxis])
    assert data.load("folder", tmp_path / "digits", color="rgb").inputs.shape == (1, 4, 4, 3)


def test_different_sizes_need_a_size(pets):
    path, _ = pets
    write(path / "dog" / "0.png", np.full((8, 8, 3), 200, np.uint8))
    with pytest.raises(InputError, match=r"0\.png is 8×8, the first image is 6×5; .*set size = \[height, width\]"):
        data.load("folder", path)
    read = data.load("folder", path, size=[4, 7])
    assert read.inputs.shape == (4, 4, 7, 3)
    assert (read.inputs[2] == 200).all()


def test_a_size_that_differs_later_is_found_when_read(pets):
    path, _ = pets
    write(path / "cat" / "9.png", np.zeros((8, 8, 3), np.uint8))
    read = data.load("folder", path)
    with pytest.raises(InputError, match=r"9\.png is 8×8"):
        read.inputs[:]


def test_images_without_class_folders_have_no_labels(tmp_path):
    write(tmp_path / "b.png", np.zeros((2, 2), np.uint8))
    write(tmp_path / "a.png", np.ones((2, 2), np.uint8))
    read = data.load("folder", tmp_path)
    assert read.labels is None
    assert read.inputs[:][:, 0, 0].tolist() == [1, 0]


def test_fingerprint_is_names_and_sizes(pets, tmp_path_factory):
    path, _ = pets
    before = data.load("folder", path).fingerprint
    assert data.load("folder", path).fingerprint == before
    assert data.load("folder", path, size=[3, 3]).fingerprint != before
    assert data.load("folder", path, color="grey").fingerprint != before
    (path / "cat" / "2.bmp").rename(path / "cat" / "3.bmp")
    assert data.load("folder", path).fingerprint != before
    moved = path.rename(tmp_path_factory.mktemp("other") / "elsewhere")
    (moved / "cat" / "3.bmp").rename(moved / "cat" / "2.bmp")
    assert data.load("folder", moved).fingerprint == before


def test_refused(pets, tmp_path):
    path, _ = pets
    (path / "cat" / "0.png").write_bytes(b"\x89PNG broken")
    with pytest.raises(InputError, match=r"0\.png is not a readable image"):
        data.load("folder", path)
    (path / "cat" / "0.png").write_bytes(b"")
    with pytest.raises(InputError, match=r"0\.png is empty, not a readable image; put a readable one in its place"):
        data.load("folder", path)
    (path / "cat" / "0.png").unlink()
    for size in ([3], [0, 4], "big", [2.5, 3]):
        with pytest.raises(InputError, match=r"data: size = |data\.size"):
            data.load("folder", path, size=size)
    with pytest.raises(InputError, match="color: should be 'rgb' or 'grey', got 'bgr'"):
        data.load("folder", path, color="bgr")
    write(path / "loose.png", np.zeros((2, 2), np.uint8))
    with pytest.raises(InputError, match="beside class folders"):
        data.load("folder", path)
    with pytest.raises(InputError, match="holds no images"):
        data.load("folder", path / "empty")
    with pytest.raises(InputError, match="does not exist"):
        data.load("folder", path / "none")


def test_what_opencv_says_of_a_broken_file_is_not_added_to_the_one_line(pets, capfd):
    path, _ = pets
    file = path / "cat" / "1.png"
    file.write_bytes(file.read_bytes()[:60])
    with pytest.raises(InputError, match=r"1\.png is not a readable image"):
        data.load("folder", path)
    said = capfd.readouterr().err.splitlines()
    assert all(line.startswith("libpng ") for line in said)  # which OpenCV 4.10 lets have its own say


def test_odd_entries_of_a_folder(pets):
    path, images = pets
    (path / "cat" / "round").symlink_to(".")  # links within a class folder are not followed
    (path / "cat" / "self.png").symlink_to("self.png")
    (path / "cat" / "gone.png").symlink_to("nowhere.png")
    (path / "dog" / "sub").mkdir()
    write(path / "dog" / "sub" / "ö.png", images[0])
    with open(bytes(path / "dog") + b"/z\xff.png", "wb") as file:  # a name that is no text
        file.write((path / "cat" / "1.png").read_bytes())
    read = data.load("folder", path)
    assert [file.name for file in read.inputs.files][:4] == ["1.png", "2.bmp", "1.PNG", "ö.png"]
    assert len(read) == 5
    assert read.fingerprint
    (path / "up").symlink_to("..")
    with pytest.raises(InputError, match=r"got a link out of it \(up\)"):
        data.load("folder", path)
    with pytest.raises(InputError, match="up is a link to a folder that it lies in itself; remove it"):
        data.load("folder", path, links=True)
