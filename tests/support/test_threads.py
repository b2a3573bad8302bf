"""What exists is not looked through again while a run lasts."""

from __future__ import annotations

import gc

import pytest

from testifai.support.threads import OWN, only_new_looked_at


def test_objects_are_set_aside_and_come_back():
    before = gc.get_freeze_count()
    with only_new_looked_at():
        assert gc.get_freeze_count() > OWN
    assert gc.get_freeze_count() <= before


def test_they_come_back_after_a_failure():
    with pytest.raises(ValueError, match="stop"), only_new_looked_at():
        raise ValueError("stop")
    assert gc.get_freeze_count() <= OWN


def test_who_has_set_objects_aside_himself_is_left_alone():
    gc.freeze()
    try:
        count = gc.get_freeze_count()
        with only_new_looked_at():
            pass
        assert gc.get_freeze_count() == count
    finally:
        gc.unfreeze()
