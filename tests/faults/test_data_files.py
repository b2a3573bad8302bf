"""Data files of others: they lead nowhere outside their folder, take bounded memory, and fail in one line."""

from __future__ import annotations

import gzip
import io
import json
import random
import shutil
import struct
import time
import zipfile
from pathlib import Path

import cv2
import numpy as np
import pytest

from testifai import data
from testifai.data.dataset import numbered
from testifai.errors import LONGEST, InputError
from testifai.models import check_outputs
from testifai.models.preprocess import Preprocess
from testifai.operational.input_previews import KeptInputs, packed
from testifai.oracles.classes import predicted

ROWS = np.arange(3)


def picture(path: Path, size: tuple[int, ...] = (20, 30, 3), fill: int = 90) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(cv2.imencode(".png", np.full(size, fill, np.uint8))[1].tobytes())
    return path


def coco_table() -> dict:
    return {
        "images": [{"id": n, "file_name": f"{n}.png"} for n in range(3)],
        "annotations": [{"id": n, "image_id": n, "category_id": 1 + n % 2, "bbox": [1, 2, 10, 9]} for n in range(3)],
        "categories": [{"id": 1, "name": "cat"}, {"id": 2, "name": "dog"}],
    }


def coco(folder: Path, table: object = None) -> Path:
    for number in range(3):
        picture(folder / "images" / f"{number}.png")
    (folder / "a.json").write_text(json.dumps(coco_table() if table is None else table))
    return folder / "a.json"


def yolo(folder: Path, line: str = "0 0.5 0.5 0.2 0.2") -> Path:
    for number in range(3):
        picture(folder / "images" / f"{number}.png")
        (folder / "labels").mkdir(exist_ok=True)
        (folder / "labels" / f"{number}.txt").write_text(line)
    return folder


def masks(folder: Path) -> Path:
    for number in range(3):
        picture(folder / "images" / f"{number}.png")
        picture(folder / "masks" / f"{number}.png", (20, 30), number)
    return folder / "masks"


# -- outside the folder -----------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "name", ["{secret}/s.png", "../../secret/s.png", "..\\s.png", "C:\\s.png", "a/../../s.png", "s\0"]
)
def test_a_coco_file_names_no_image_outside_the_folder(tmp_path, name):
    picture(tmp_path / "secret" / "s.png")
    table = coco_table()
    table["images"][1]["file_name"] = name.format(secret=tmp_path / "secret")
    with pytest.raises(InputError, match="file_name: expected the name of a file in the folder of the images, got"):
        data.load("coco", coco(tmp_path / "set", table))


@pytest.mark.parametrize(
    ("kind", "link"),
    [
        *(("coco", "images/1.png"), ("coco", "images/sub"), ("folder", "images/1.png"), ("folder", "images/sub")),
        *(("yolo", "images/1.png"), ("yolo", "labels/1.txt"), ("masks", "images/1.png"), ("masks", "masks/1.png")),
    ],
)
def test_a_link_out_of_the_folder_is_refused_unless_allowed(tmp_path, kind, link):
    root, secret = tmp_path / "set", tmp_path / "secret"
    read = {"coco": coco, "yolo": yolo, "masks": masks, "folder": coco}[kind](root)
    picture(secret / "s.png")
    if link == "images/sub":
        table = coco_table()
        table["images"][1]["file_name"] = "sub/s.png"
        read.write_text(json.dumps(table))
        (root / link).symlink_to(secret)
    else:
        (root / link).rename(secret / "moved")
        (root / link).symlink_to(secret / "moved")
    if kind == "folder":
        read = root / "images"
        for file in read.glob("?.png") if link == "images/sub" else ():
            file.unlink()
    with pytest.raises(InputError, match=r"got a link out of it \(.*\); copy the file there, or set links = true"):
        data.load(kind, read)
    assert len(data.load(kind, read, links=True))


def test_links_within_the_folder_are_followed(tmp_path):
    read = coco(tmp_path / "set")
    picture(tmp_path / "set" / "images" / "deep" / "1.png")
    (tmp_path / "set" / "images" / "1.png").unlink()
    (tmp_path / "set" / "images" / "1.png").symlink_to("deep/1.png")
    assert len(data.load("coco", read)) == 3
    (tmp_path / "linked").symlink_to("set")  # a folder that the user names may be a link
    assert len(data.load("coco", tmp_path / "linked" / "a.json")) == 3


def test_names_of_classes_come_from_no_link(tmp_path):
    (tmp_path / "private.txt").write_text("a\nb\n")
    read = yolo(tmp_path / "set")
    (read / "classes.txt").symlink_to("../private.txt")
    with pytest.raises(InputError, match=r"got a link out of it \(classes.txt\)"):
        data.load("yolo", read)


# -- resources --------------------------------------------------------------------------------------------------------


def parquet(path: Path, columns: dict, **options: object) -> Path:
    arrow, writer = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    writer.write_table(arrow.table(columns), path, compression="zstd", **options)
    return path


def test_a_small_parquet_file_of_very_many_cells_is_refused_before_it_is_read(tmp_path):
    rows = np.zeros(1_500_000, np.int64)
    path = parquet(tmp_path / "a.parquet", {f"c{number}": rows for number in range(12)})
    assert path.stat().st_size < 500_000
    begun = time.monotonic()
    with pytest.raises(
        InputError, match=r"expected at most 268,435,456 bytes when unpacked, got .*, set max_bytes = \d"
    ):
        data.load("table", path)
    assert time.monotonic() - begun < 1
    path = parquet(tmp_path / "b.parquet", {"age": [1, 2], "target": [0, 1]})
    assert len(data.load("table", path)) == 2
    with pytest.raises(InputError, match="expected at most 50 bytes"):
        data.load("table", path, max_bytes=50)


def test_long_words_of_a_parquet_file_are_held_once(tmp_path, watch):
    arrow = pytest.importorskip("pyarrow")
    words = arrow.DictionaryArray.from_arrays(np.arange(1800) % 3, [one * 1_000_000 for one in "abc"])
    columns = {"word": words, "age": np.arange(1800), "target": np.arange(1800) % 2}
    path = parquet(tmp_path / "a.parquet", columns, store_schema=False)
    found, problems = watch.apart(lambda: [len(one.values) for one in data.load("table", path).table.columns], [path])
    assert (found, problems) == ("[3, 0]", [])  # within 1 GB; each cell with a word of its own would take 1.8 GB


def npz(path: Path, inputs: int) -> Path:
    """A small file of so many bytes of zeros."""
    header = f"{{'descr': '|u1', 'fortran_order': False, 'shape': ({inputs // 100}, 10, 10), }}\n".encode()
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as archive, archive.open("x.npy", "w") as member:
        member.write(b"\x93NUMPY\x01\x00" + struct.pack("<H", len(header)) + header)
        for _ in range(inputs // 10_000_000):
            member.write(bytes(10_000_000))
    return path


def test_an_npz_file_that_unpacks_to_too_much_is_refused(tmp_path):
    path = npz(tmp_path / "a.npz", 300_000_000)
    assert path.stat().st_size < 400_000
    with pytest.raises(InputError, match="at most 268,435,456 bytes when unpacked, got 300,000"):
        data.load("npz", path)
    assert len(data.load("npz", npz(path, 20_000_000), max_bytes=20_001_000)) == 200_000
    with pytest.raises(InputError, match="at most 1,000 bytes"):
        data.load("npz", path, max_bytes=1000)


def test_a_packed_idx_file_is_measured_by_its_header(tmp_path):
    path = tmp_path / "a-idx3-ubyte.gz"
    path.write_bytes(gzip.compress(bytes([0, 0, 8, 3]) + struct.pack(">3I", 1_000_000, 28, 28) + bytes(50_000_000)))
    with pytest.raises(InputError, match="at most 268,435,456 bytes when unpacked, got 784,000,016"):
        data.load("idx", path)


def test_label_maps_are_measured_together(tmp_path):
    for number in range(3):
        picture(tmp_path / "images" / f"{number}.png", (6000, 6000), 0)
        picture(tmp_path / "masks" / f"{number}.png", (6000, 6000), 0)
    with pytest.raises(InputError, match=r"masks: expected at most 268,435,456 bytes when unpacked, got 432,000,000"):
        data.load("masks", tmp_path / "masks")


def test_a_table_of_very_many_columns_is_refused_at_once(tmp_path):
    path = tmp_path / "a.csv"
    path.write_text("".join(",".join(f"{row}{column}" for column in range(100_000)) + "\n" for row in "abc"))
    begun = time.monotonic()
    with pytest.raises(InputError, match="expected at most 50,000 columns, got 100,000"):
        data.load("table", path)
    assert time.monotonic() - begun < 2


# -- one useful line --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("value", [[1], {"a": 1}, None, float("nan"), float("inf"), True, 1.5, 10**400], ids=range(8))
@pytest.mark.parametrize(
    ("part", "key"),
    [("images", "id"), ("annotations", "image_id"), ("annotations", "category_id"), ("categories", "id")],
)
def test_an_id_of_another_kind_is_one_line(tmp_path, part, key, value):
    table = coco_table()
    table[part][0][key] = value
    with pytest.raises(InputError, match=rf"{part}\[0\].{key}: expected a whole number or a text, got"):
        data.load("coco", coco(tmp_path, table))


@pytest.mark.parametrize(
    "box", [[1, 2, 3, 10**400], [1, 2, 3, float("nan")], [1e300, 2, 3, 4], "1234", {"a": 1}, [1, 2, 3], ["1", 2, 3, 4]]
)
def test_a_box_of_another_kind_is_one_line(tmp_path, box):
    table = coco_table()
    table["annotations"][1]["bbox"] = box
    with pytest.raises(InputError, match=r"annotations\[1\].bbox: expected \[x, y, width, height\] in pixels, got"):
        data.load("coco", coco(tmp_path, table))


@pytest.mark.parametrize("part", ["images", "categories"])
def test_an_id_of_two_is_refused(tmp_path, part):
    table = coco_table()
    table[part][1]["id"] = table[part][0]["id"]
    with pytest.raises(
        InputError, match=rf"{part}\[1\].id: expected an id of its own, got \d, which {part}\[0\] has too"
    ):
        data.load("coco", coco(tmp_path, table))


@pytest.mark.parametrize("name", [["a"], {"a": 1}, None, "\ud800"])
@pytest.mark.parametrize(("part", "key"), [("images", "file_name"), ("categories", "name")])
def test_a_name_of_another_kind_is_one_line(tmp_path, part, key, name):
    table = coco_table()
    table[part][0][key] = name
    with pytest.raises(InputError, match=rf"{part if key == 'file_name' else 'category'}.*name: expected a text, got"):
        data.load("coco", coco(tmp_path, table))


def test_an_image_name_too_long_for_the_system_is_one_line(tmp_path):
    table = coco_table()
    table["images"][2]["file_name"] = "a" * 5000
    with pytest.raises(InputError, match=r"1 of 3 images of a\.json are not in"):
        data.load("coco", coco(tmp_path, table))


@pytest.mark.parametrize("name", ["a" * 300, "a/" * 3000])
def test_a_path_too_long_for_the_system_is_one_line_with_its_field(name):
    with pytest.raises(InputError, match=r"^npz: expected the name of a file or folder, got 'a.*too long \([36],?0"):
        data.load("npz", name)


@pytest.mark.parametrize("line", ["nan 0 0 0 0", "inf 0 0 0 0", "1e30 0.5 0.5 0.1 0.1", "0 nan 0 0 0", "0 1e300 0 1 1"])
def test_numbers_that_are_none_in_a_yolo_file_are_one_line(tmp_path, line):
    with pytest.raises(InputError, match=r"0.txt: line 1 is .*; class x y width height"):
        data.load("yolo", yolo(tmp_path, line))


def test_names_of_classes_that_are_not_utf8_are_one_line(tmp_path):
    (yolo(tmp_path) / "classes.txt").write_bytes(b"\xff\xfe\x00")
    with pytest.raises(InputError, match=r"classes.txt cannot be read"):
        data.load("yolo", tmp_path)


def test_a_zip_file_of_a_later_version_is_one_line(tmp_path):
    whole = packed("tag", data.from_arrays(np.zeros((1, 4))), [0])
    at = whole.index(b"PK\x01\x02")
    (tmp_path / "a.inputs.zip").write_bytes(whole[: at + 6] + bytes([99]) + whole[at + 7 :])
    with pytest.raises(InputError, match=r"a.inputs.zip cannot be read: zip file version 9.9\); put a.inputs.zip"):
        KeptInputs(tmp_path / "a.csv", "tag").check([0])


@pytest.mark.parametrize("label", [2**62, 2**64 - 1])
def test_a_label_too_large_to_be_one_is_one_line(label):
    outputs = check_outputs(np.full(4, label, np.uint64), 4)
    with pytest.raises(InputError, match=f"expected the model to return classes below 1,048,576, got {label}"):
        predicted(outputs)
    labels = np.full(4, label, np.uint64)
    with pytest.raises(
        InputError, match=f"labels: expected numbers below 2.63, got {label}|below 1,048,576, got {label}"
    ):
        numbered(data.from_arrays(np.zeros((4, 2)), labels), {"a": 1})


def test_a_message_keeps_the_ends_of_a_long_value():
    said = str(InputError(f"scan.seed: expected a number, got {'9' * 100_000!r}; leave it out"))
    assert len(said) == LONGEST
    assert said.startswith("scan.seed: expected a number, got '999")
    assert said.endswith("999'; leave it out")


def test_a_layout_that_does_not_fit_is_named():
    prepare = Preprocess("NCHW", expects=(None, 28, 28))
    with pytest.raises(
        InputError, match=r"\(N, 28, 28\), which layout = 'NCHW' makes \(N, 1, 28, 28\); the model takes"
    ):
        prepare(np.zeros((2, 28, 28), np.uint8))


# -- crafted files ----------------------------------------------------------------------------------------------------

ODD = [
    *(None, True, -1, 0, 1, 2, 1.5, 1e300, float("nan"), float("inf"), -(10**400), 2**62, "", "1", "\ud800", "\0"),
    *("\x1b[2J\u202e", "x" * 100_000, [], [1], [[[]]], {}, {"id": 1}, "../../secret/s.png", "link.png", "sub/s.png"),
    *(
        "SECRET/s.png",
        "C:\\s.png",
        "0.png",
        "\\\\host\\s.png",
        "con",
        ".",
        "..",
        "a/" * 3000,
        "~/s.png",
        "file:///s.png",
    ),
]
CELLS = [
    *("", "1", "-1", "nan", "inf", "1e400", "9" * 400, "a", "=1+1", '"', '"a', "\0", "\x1b", "\ud83d", "x" * 10_000),
    *(
        "../../secret/s.png",
        "0 0 0 0 0",
        "1 0.5 0.5 0.1 0.1",
        "nan nan nan nan nan",
        "1e30 1 1 1 1",
        "é",
        "\r",
        "\t",
        ",",
    ),
]


def links(root: Path, folder: Path, dice: random.Random) -> None:
    """Links that lead out of a folder."""
    secret = root.parent / "secret"
    for name, target in {"link.png": secret / "s.png", "sub": secret, "1.png": secret / "s.png"}.items():
        if dice.random() < 0.3 and folder.is_dir():
            (folder / name).unlink(missing_ok=True)
            (folder / name).symlink_to(target)


def crafted_coco(root: Path, dice: random.Random) -> tuple[str, Path]:
    table = coco_table()
    for _ in range(dice.randint(1, 3)):
        part = dice.choice(list(table))
        rows = table[part]
        place = dice.random()
        odd = dice.choice(ODD)
        if isinstance(odd, str):
            odd = odd.replace("SECRET", str(root.parent / "secret"))
        if place < 0.1 or not isinstance(rows, list) or not rows:
            table[part] = odd
        elif place < 0.2:
            rows.append(dice.choice([odd, rows[0]]))
        else:
            row = dice.choice(rows)
            if isinstance(row, dict) and row:
                row[dice.choice(list(row))] = odd
                if part == "annotations" and dice.random() < 0.3:
                    row["bbox"] = [dice.choice(ODD) for _ in range(4)]
    path = coco(root, table)
    links(root, root / "images", dice)
    if dice.random() < 0.2:
        path.write_bytes(spoilt(path.read_bytes(), dice))
    return "coco", path


def crafted_yolo(root: Path, dice: random.Random) -> tuple[str, Path]:
    yolo(root, "\n".join(dice.choice(["0 .5 .5 .1 .1", dice.choice(CELLS)]) for _ in range(3)).replace("\ud83d", ""))
    links(root, root / "images", dice)
    labels = root / "labels"
    if dice.random() < 0.3:
        (labels / "0.txt").unlink()
        (labels / "0.txt").symlink_to(root.parent / "secret" / "s.txt")
    if dice.random() < 0.3:
        (root / "classes.txt").symlink_to(root.parent / "secret" / "s.txt")
    if dice.random() < 0.3:
        (labels / "2.txt").write_bytes(spoilt((labels / "2.txt").read_bytes(), dice))
    return "yolo", root


def crafted_masks(root: Path, dice: random.Random) -> tuple[str, Path]:
    path = masks(root)
    links(root, root / "images", dice)
    links(root, path, dice)
    side = dice.choice([20, 200, 9000])
    if dice.random() < 0.3:
        for number in range(3):
            picture(root / "images" / f"{number}.png", (side, side), 0)
            picture(path / f"{number}.png", (side, side), 0)
    else:
        picture(path / "2.png", dice.choice([(20, 30), (20, 30, 3), (3, 3)]), 255)
        (path / "0.png").write_bytes(spoilt((path / "0.png").read_bytes(), dice))
    return "masks", path


def crafted_table(root: Path, dice: random.Random) -> tuple[str, Path]:
    root.mkdir(exist_ok=True)
    kind = dice.choice(["csv", "tsv", "jsonl", "parquet"])
    path = root / f"a.{kind}"
    if kind == "parquet":
        rows = dice.choice([1, 50, 3_000_000])
        cell = dice.choice([0, 0.5, "x", None, "x" * 1000 if rows < 100 else "y", [1], b"\xff", True])
        parquet(path, {"a": np.zeros(rows), "target": np.zeros(rows, int), "b": [cell] * rows})
        if dice.random() < 0.5:
            path.write_bytes(spoilt(path.read_bytes(), dice))
        return "table", path
    columns = dice.choice([1, 3, 3, 3, 60_000])
    lines = [["text", "label", *(f"c{column}" for column in range(2, columns))][:columns]]
    lines += [[dice.choice(CELLS) for _ in range(columns)] if columns < 10 else ["1"] * columns for _ in range(4)]
    if kind == "jsonl":
        odd = [one for one in ODD if one != -(10**400)]
        text = "\n".join(json.dumps({"text": dice.choice(odd), "label": dice.choice(odd)}) for _ in range(4))
    else:
        text = "\n".join(("," if kind == "csv" else "\t").join(line) for line in lines)
    content = text.encode("utf-8", "surrogatepass")
    path.write_bytes(spoilt(content, dice) if dice.random() < 0.2 else content)
    return "jsonl" if kind == "jsonl" else dice.choice([kind, "table"]), path


def crafted_zip(root: Path, dice: random.Random) -> tuple[str, Path]:
    root.mkdir(exist_ok=True)
    path = root / "a.npz"
    if dice.random() < 0.2:
        return "npz", npz(path, dice.choice([20_000_000, 300_000_000]))
    if dice.random() < 0.4:
        path = root / "a.inputs.zip"
        path.write_bytes(spoilt(packed("tag", data.from_arrays(np.zeros((3, 4))), [0, 1, 2]), dice))
        return "inputs", path
    arrays = io.BytesIO()
    label = dice.choice([0, -1, 2**62, 2**63 - 1, np.nan, 1e300, "a", "\ud800"])
    save = dice.choice([np.savez, np.savez_compressed])
    save(arrays, **{dice.choice(["x", "../x", "/x"]): np.zeros((4, 5)), "y": np.array([label] * 4)})
    path.write_bytes(spoilt(arrays.getvalue(), dice) if dice.random() < 0.7 else arrays.getvalue())
    return "npz", path


def spoilt(content: bytes, dice: random.Random) -> bytes:
    """Some bytes changed, the end lost, or a number in a header made a large one."""
    if not content:
        return b"\xff"
    kind = dice.random()
    if kind < 0.3:
        return content[: dice.randrange(len(content))]
    changed = bytearray(content)
    for _ in range(dice.randint(1, 8)):
        place = dice.randrange(len(changed))
        changed[place : place + 1] = bytes([dice.choice([0, 99, 127, 128, 255, dice.randrange(256)])])
    return bytes(changed)


def read_all(kind: str, path: Path) -> int:
    if kind == "inputs":
        kept = KeptInputs(path.with_name("a.csv"), "tag")
        kept.check([0, 1, 2])
        return len([kept[number] for number in range(3)])
    found = data.load(kind, path)
    found.inputs[ROWS[: len(found)] if not isinstance(found.inputs, list) else slice(0, 3)]
    assert found.fingerprint
    return len(found)


CRAFTED = (crafted_coco, crafted_yolo, crafted_masks, crafted_table, crafted_zip)


@pytest.mark.parametrize("cases", [25, pytest.param(500, marks=pytest.mark.simulation)])
def test_crafted_files_are_read_or_refused_in_a_line(cases, tmp_path, watch, report):
    """In a process of its own with 1 GB more memory than it begins with; nothing outside the named folder is opened."""
    pytest.importorskip("pyarrow.parquet")
    picture(tmp_path / "secret" / "s.png")
    (tmp_path / "secret" / "s.txt").write_text("0 0.5 0.5 0.1 0.1\n")
    assert read_all("coco", coco(tmp_path / "warm")) == 3  # what is loaded once is loaded before
    dice = random.Random(29)
    for number in range(cases):
        root = tmp_path / f"case{number}"
        kind, path = CRAFTED[number % len(CRAFTED)](root, dice)
        answer, problems = watch.apart(lambda kind=kind, path=path: read_all(kind, path), [root], seconds=20)
        if "\n" in answer or len(answer) > LONGEST + 20:
            problems.append(f"not one line: {answer[:200]!r}")
        report.add(f"case {number}: {kind}", problems)
        report.count(InputError(answer) if answer.startswith("refused: ") else answer)
        shutil.rmtree(root)
    report.check()
    assert report.refused > cases / 4
