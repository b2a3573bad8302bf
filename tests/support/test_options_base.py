"""Parts are checked by the kind that they name, whoever wrote it."""

from pathlib import Path
from typing import ClassVar

import numpy as np
import pytest

from testifai.errors import InputError
from testifai.support.options_base import Count, File, Numbers, Part, make_part, read_part
from testifai.support.registry import Registry


class Tape(Part):
    tape: File
    speed: Count | None = None
    gains: Numbers | None = None

    FILES: ClassVar = ("tape",)


class Own(Part):
    own: str
    speed: Count | None = None

    CODE: ClassVar = ("own",)


KINDS = Registry("sound", "testifai.tests.none", {"tape": f"{__name__}:Tape", "own": f"{__name__}:Own"})


@pytest.fixture(autouse=True)
def importable(monkeypatch):
    """The registry imports this module by its name."""
    import sys

    monkeypatch.setitem(sys.modules, __name__, sys.modules.get(__name__) or sys.modules[Tape.__module__])


def test_a_table_is_checked_by_its_kind():
    part = read_part(KINDS, {"tape": "a.wav", "speed": 2})
    assert part == Tape(tape="a.wav", speed=2)
    assert part.own_code() == {}
    assert part.told() == {"tape": "a.wav", "speed": 2}
    assert part.told(Path("here")) == {"tape": Path("here/a.wav"), "speed": 2}
    assert part.missing_files(Path("nowhere")) == [Path("nowhere/a.wav")]
    assert read_part(KINDS, {"own": "a:b"}).own_code() == {"own": "a:b"}


def test_arguments_may_be_paths_and_arrays():
    part = make_part(KINDS, "tape", Path("a.wav"), {"speed": np.int64(2), "gains": np.array([0.5, 1.0])})
    assert part.told() == {"tape": "a.wav", "speed": 2, "gains": [0.5, 1.0]}


@pytest.mark.parametrize(
    ("kind", "options", "line"),
    [
        ("tap", {}, "sound: 'tap' is not known; did you mean 'tape'? (known: own, tape)"),
        ("tape", {"own": "a:b"}, "sound: needs exactly one of tape, own, got tape and own"),
        ("tape", {"sped": 1}, "unknown key 'sound.sped' for tape; did you mean 'speed'? (known: gains, speed)"),
        ("own", {"gains": 1}, "unknown key 'sound.gains' for own (tape takes it); known: speed"),
        ("tape", {"speed": 0}, "sound.speed: must be a whole number, at least 1, got 0"),
    ],
)
def test_mistakes_are_one_line(kind, options, line):
    with pytest.raises(InputError) as caught:
        make_part(KINDS, kind, "x", options)
    assert str(caught.value) == line


def test_a_kind_called_like_an_option_of_another_does_not_stand_in_its_way():
    kinds = Registry("sound", "testifai.tests.none", {"tape": f"{__name__}:Tape", "speed": f"{__name__}:Own"})
    assert read_part(kinds, {"tape": "a.wav", "speed": 2}) == Tape(tape="a.wav", speed=2)
