"""What used to end in a traceback, in exit code 1 or in no end at all: one line and exit code 2."""

import io
import json
import os
import struct
import subprocess
import sys
import zipfile
import zlib
from contextlib import suppress
from itertools import count
from pathlib import Path

import cv2
import numpy as np
import pytest

import testifai as ta
from testifai import cli, data
from testifai.data import image_io
from testifai.data.image_files import MOST_PIXELS
from testifai.errors import InputError
from testifai.models.texts.network import read_json
from testifai.operational import selection
from testifai.operational.label_file import Classes
from testifai.support.streams import plain

NUMBER = count()
CODE = """
import numpy as np
import testifai as ta

def model(rows):
    return (rows.reshape(len(rows), -1)[:, 0] > 0.5).astype(int)

def failing():
    raise RuntimeError("no data today")

shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 0.1, 0.2, 0.3])
"""


@pytest.fixture
def project(tmp_path):
    """A spec that runs, made of parts that can be replaced."""
    name = f"tracebacks_{next(NUMBER)}"
    (tmp_path / f"{name}.py").write_text(CODE)
    rows = np.random.default_rng(0).random((60, 3)).astype(np.float32)
    np.savez(tmp_path / "data.npz", x=rows, y=(rows[:, 0] > 0.5).astype(int))

    def write(data='npz = "data.npz"', scan="", axes=2, gate=0.0) -> Path:
        spec = tmp_path / "spec.toml"
        space = "".join(f'a{number} = {{ python = "{name}:shift" }}\n' for number in range(axes))
        spec.write_text(
            f'[model]\npython = "{name}:model"\n[data]\n{data.replace("CODE", name)}\n[space]\n{space}'
            f'[scan]\n{scan}\n[[gate]]\nname = "größer — 5"\nquery = "a0 >= 0"\nat_least = {gate}\n'
        )
        return spec

    return write


@pytest.fixture
def refused(monkeypatch, capfd):
    """The one line of a command that exits with code 2."""

    def run(*arguments: object) -> str:
        monkeypatch.setattr(sys, "argv", ["testifai", *map(str, arguments)])
        capfd.readouterr()
        with pytest.raises(SystemExit) as ended:
            cli.main()
        _, err = capfd.readouterr()
        (line,) = [line for line in err.splitlines() if not line.startswith("note:")]
        assert ended.value.code == 2
        assert line.startswith("error: ")
        assert "internal" not in line
        return line

    return run


# -- standard output -------------------------------------------------------------------------------------------------


def started(*arguments: object, stdout=subprocess.PIPE, **environment: str) -> tuple[int, str, list[str]]:
    ended = subprocess.run(
        [sys.executable, "-m", "testifai", *map(str, arguments)],
        stdout=stdout,
        stderr=subprocess.PIPE,
        env={**os.environ, **environment},
        timeout=120,
    )
    lines = [line for line in ended.stderr.decode().splitlines() if not line.startswith("note:")]
    return ended.returncode, (ended.stdout or b"").decode(), lines


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs a device that is always full")
def test_an_output_that_is_full_is_one_line_and_not_a_failed_gate(project):
    spec = project(axes=1)
    query = ["query", spec.with_suffix(".db"), "a0 >= 1", "--json"]
    for arguments, unbuffered in ((["run", spec], ""), (query, "1"), (["--help"], "")):
        with open("/dev/full", "w") as full:
            code, _, (line,) = started(*arguments, stdout=full, PYTHONUNBUFFERED=unbuffered)
        assert code == 2
        assert "o space left on device" in line
    assert ta.open(spec.with_suffix(".db")).inferences == 4 * 60  # the work is there all the same


@pytest.mark.parametrize(
    ("environment", "gate"),
    [({"PYTHONIOENCODING": "ascii"}, 0.0), ({"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}, 1.0)],
    ids=["ascii", "locale C"],
)
def test_an_output_that_takes_only_ascii_gets_ascii(project, environment, gate):
    spec = project(gate=gate, axes=1)
    code, out, lines = started("run", spec, **environment)
    assert code == (1 if gate else 0), lines
    assert lines == []
    assert out.isascii()
    assert "grosser - 5" in out
    code, out, (line,) = started("show", spec.parent / "größe.db", **environment)
    assert code == 2
    assert line.isascii()


def test_an_output_that_is_closed_changes_no_exit_code(project):
    spec = project(axes=1)
    command = f'"{sys.executable}" -m testifai run "{spec}" >&-'
    ended = subprocess.run(["bash", "-c", command], stderr=subprocess.PIPE, text=True, timeout=120)
    assert (ended.returncode, "Traceback" in ended.stderr) == (0, False), ended.stderr


def test_ascii_is_as_readable_as_it_can_be():
    assert plain("0.9 ± 0.1 × 3 … “Köln” → ≥ 5 日") == '0.9 +- 0.1 x 3 ... "Koln" -> >= 5 ?'


FAULT = """
import sys
from testifai import cli
from testifai.spec import parsing as spec

def broken(path):
    raise KeyError("what nobody thought of")

spec.read = broken
for flags in ([], ["-v"]):
    sys.argv = ["testifai", "check", "spec.toml", *flags]
    try:
        cli.main()
    except SystemExit as ended:
        print(f"ended with {ended.code}", file=sys.stderr)
"""


def test_a_fault_of_ours_is_one_line_with_a_way_to_say_more():
    ended = subprocess.run([sys.executable, "-c", FAULT], capture_output=True, text=True, timeout=60)
    plain, verbose, rest = ended.stderr.split("ended with 2\n")
    assert rest == ""
    for said in (plain, verbose):
        assert ("Traceback" in said) == (said == verbose)
        line = said.splitlines()[-1]
        assert line.startswith("error: internal error: KeyError: 'what nobody thought of', <string> line ")
        assert line.endswith("(run with -v for details; please report it)")


# -- data ------------------------------------------------------------------------------------------------------------


def png(height: int, width: int) -> bytes:
    """The beginning of a black image: its header says how large it is."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))

    header = struct.pack(">IIBBBBB", width, height, 8, 0, 0, 0, 0)
    pixels = zlib.compress(bytes(200_000), 9)
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", pixels) + chunk(b"IEND", b"")


@pytest.mark.parametrize(("height", "width"), [(50_000, 50_000), (20_000, 20_000), (1, 2_000_000_000)])
def test_an_image_too_large_to_decode_is_named(tmp_path, height, width):
    folder = tmp_path / "images" / "cats"
    folder.mkdir(parents=True)
    (folder / "bomb.png").write_bytes(png(height, width))
    with pytest.raises(InputError, match=rf"bomb.png is {height}×{width}, and at most {MOST_PIXELS:,} pixels"):
        data.load("folder", tmp_path / "images")


@pytest.mark.parametrize("ending", [".png", ".jpg", ".bmp", ".tif", ".webp", ".ppm", ".pgm", ".gif"])
def test_sizes_are_read_as_opencv_reads_them(ending):
    image = np.random.default_rng(0).integers(0, 256, (37, 53, 3), dtype=np.uint8)
    try:
        written, encoded = cv2.imencode(ending, image[..., 0] if ending == ".pgm" else image)
    except cv2.error:
        written = False
    if not written:
        pytest.skip(f"this OpenCV writes no {ending}")
    head = encoded.tobytes()
    assert image_io.size(head) == (37, 53)
    for length in range(60):
        assert image_io.size(head[:length]) in (None, (37, 53))


def crafted(path: Path, header: str, body: bytes = b"\0" * 64, compression: int = zipfile.ZIP_STORED) -> Path:
    """An npz file whose inputs say of themselves what is given."""
    text = header.encode() + b"\n"
    with zipfile.ZipFile(path, "w", compression) as archive:
        archive.writestr("x.npy", b"\x93NUMPY\x01\x00" + struct.pack("<H", len(text)) + text + body)
        labels = io.BytesIO()
        np.save(labels, np.zeros(4, int))
        archive.writestr("y.npy", labels.getvalue())
    return path


@pytest.mark.parametrize("compression", [zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED])
@pytest.mark.parametrize(
    "shape", ["(-4, 4)", "(4, -4)", "(-4, -4)", "(2**62, 4)", "(9223372036854775807, 4)", "(4, 10**30)", "(4, 1000000)"]
)
def test_impossible_shapes_are_refused(tmp_path, shape, compression):
    shape = str(eval(shape))
    header = f"{{'descr': '<f4', 'fortran_order': False, 'shape': {shape}, }}"
    with pytest.raises(InputError, match=r"d.npz is not a readable npz file"):
        data.load("npz", crafted(tmp_path / "d.npz", header, compression=compression))


VOID = "{'descr': 'V99999999999', 'fortran_order': False, 'shape': (4, 4)}"


@pytest.mark.parametrize("header", ["{", "[]", "{'descr': '<f4'}", "(" * 300, VOID])
def test_headers_that_are_none_are_refused(tmp_path, header):
    with pytest.raises(InputError, match=r"d.npz is not a readable npz file"):
        data.load("npz", crafted(tmp_path / "d.npz", header))


def cut(path: Path) -> None:
    with path.open("r+b") as file:
        file.truncate(2000)


def idx(array: np.ndarray) -> bytes:
    return bytes([0, 0, 8, array.ndim]) + struct.pack(f">{array.ndim}I", *array.shape) + array.tobytes()


CUT = """
import sys
import numpy as np
from pathlib import Path
from testifai import data
from testifai.errors import InputError

kind, path = sys.argv[1], Path(sys.argv[2])
inputs = data.load(kind, path).inputs
everything = np.arange(len(inputs))
before = inputs[everything]
path.open("r+b").truncate(2000)
for key in (everything, slice(None), np.array([len(inputs) - 1])):
    try:
        inputs[key]
    except InputError as error:
        print(error)
"""


@pytest.mark.parametrize("kind", ["npz", "idx", "cifar"])
def test_data_cut_short_while_they_are_read_are_refused(tmp_path, kind):
    path = tmp_path / {"npz": "d.npz", "idx": "d-idx3-ubyte", "cifar": "test_batch.bin"}[kind]
    images = np.random.default_rng(0).integers(0, 10, (40, 28, 28), dtype=np.uint8)
    if kind == "npz":
        np.savez(path, x=images, y=np.zeros(40, int))
    else:
        path.write_bytes(idx(images) if kind == "idx" else np.zeros((40, 3073), np.uint8).tobytes())
    # In a process of its own: what is tested against ends it.
    ended = subprocess.run([sys.executable, "-c", CUT, kind, str(path)], capture_output=True, text=True, timeout=60)
    assert ended.returncode == 0, ended.stderr
    lines = ended.stdout.splitlines()
    assert len(lines) == 3
    assert all("is cut short: 2000 bytes where" in line for line in lines)


def test_data_that_fail_to_be_made_are_one_line(project, refused):
    line = refused("check", project('python = "CODE:failing"'))
    assert line.endswith(":failing'() failed: RuntimeError: no data today")


# -- specs and folders -----------------------------------------------------------------------------------------------


ABSURD = ["x = " + "[" * 5000 + "]" * 5000, "x = " + "{a = " * 5000 + "1" + "}" * 5000, "x = " + "9" * 5000]


@pytest.mark.parametrize("text", ABSURD, ids=["lists", "tables", "digits"])
def test_absurd_toml_is_one_line(tmp_path, refused, text):
    (tmp_path / "spec.toml").write_text(text)
    assert "spec.toml" in refused("check", tmp_path / "spec.toml")


def test_a_config_nested_deeply_is_one_line(tmp_path):
    (tmp_path / "config.json").write_text("[" * 200_000)
    with pytest.raises(InputError, match=r"config.json \(it is nested too deeply\)"):
        read_json(tmp_path / "config.json")


def test_names_too_long_for_the_system_are_one_line(project, refused):
    long = "a" * 5000
    assert "too long" in refused("show", long)
    assert "too long" in refused("run", f"{long}.toml")
    assert "too long" in refused("check", project(f'npz = "{long}.npz"'))
    assert "too long" in refused("run", project(), "--out", f"{long}.db")
    assert "too long" in refused("init", long, long)


@pytest.mark.parametrize("option", ["workers", "batch_size"])
def test_absurd_numbers_are_refused(project, refused, option):
    assert f"{option}: must be a whole number, at most" in refused("check", project(scan=f"{option} = {10**18}"))


def test_a_space_of_hundreds_of_axes_is_refused_at_once(project, refused):
    assert "some 10^240 tests are too many" in refused("check", project(axes=400))
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 1, 2, 3])
    with pytest.raises(InputError, match=r"some 10\^240 tests are too many for 64-bit ids"):
        ta.Space({f"a{number}": shift for number in range(400)}).ids_up_to(2)


def test_numbers_beyond_64_bits_are_no_tests():
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0, 1])
    with pytest.raises(InputError):
        ta.Space({"a": shift}).matrix([2**63, 5])


# -- labels ----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("classes", [Classes(None, 3), Classes(("cat", "dog")), Classes(("1", "2"))])
@pytest.mark.parametrize("text", ["9" * 5000, "-" + "9" * 5000, "9" * 5000 + ".0"])
def test_a_label_of_thousands_of_digits_is_one_line(classes, text):
    with pytest.raises(InputError, match="is not a class") as refusal:
        classes.number(text)
    assert len(str(refusal.value)) < 300
    assert Classes(None, 3).number("0" * 5000 + "2") == 2


def test_damaged_selections_are_one_line(tmp_path):
    good = tmp_path / "good.selection.npz"
    facts = {"format": 1, "technique": "srs", "tests": 3, "seed": 0, "size": 9, "classes": None, "class_count": 3,
             "model": "m", "data": "d"}  # fmt: skip
    np.savez_compressed(good, facts=json.dumps(facts), risk=np.random.default_rng(0).random(300), first=np.arange(3))
    whole, drawn = good.read_bytes(), np.random.default_rng(1)
    bad = tmp_path / "bad.selection.npz"
    for _ in range(400):
        damaged = bytearray(whole)
        for place in drawn.integers(0, len(whole), drawn.integers(1, 4)):
            damaged[place] = drawn.integers(256)
        bad.write_bytes(damaged[: drawn.integers(1, len(whole))] if drawn.random() < 0.2 else damaged)
        with suppress(InputError):  # and nothing else; a few still say what they said
            selection.read(bad)


@pytest.mark.parametrize(
    "command",
    [
        ["list", "perturbations"],
        *(pytest.param(words, marks=pytest.mark.slow) for words in (["list", "spec"], ["list", "plugins", "--json"])),
    ],
)
def test_a_reader_who_wants_no_more_is_no_failure(command):
    process = subprocess.Popen(
        [sys.executable, "-m", "testifai", *command], stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    process.stdout.close()
    assert process.stderr.read() == b""
    assert process.wait(timeout=60) == 0
