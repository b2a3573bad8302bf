"""Python's look for unused objects, kept away from those that a run did not make."""

from __future__ import annotations

import gc
from collections.abc import Iterator
from contextlib import contextmanager

OWN = 1_000  # objects that Python itself may have set aside: 375 in version 3.12


@contextmanager
def only_new_looked_at() -> Iterator[None]:
    """What exists now is not looked through while this lasts.

    Once torch is loaded there are hundreds of thousands of objects: every look at all of them takes a tenth of a
    second, and a run makes objects enough for several. Whoever has set objects aside himself is left alone.
    """
    if gc.get_freeze_count() > OWN:
        yield
        return
    gc.freeze()
    try:
        yield
    finally:
        gc.unfreeze()
