"""Runs that still grow: their files are polled, and new trials are estimated before a page needs them."""

from __future__ import annotations

import logging
import threading
import time
from dataclasses import replace
from pathlib import Path

from testifai.app.state import FINISHED, GROWING, LOST, STILL, Runs, RunStatus, clock
from testifai.errors import InputError
from testifai.runs import keys
from testifai.runs.reader import Loaded, Signature
from testifai.runs.store import Store, identity_changes
from testifai.session.stored_runs import measured, read_run
from testifai.support.types import Record

log = logging.getLogger(__name__)

PERIOD = 2.0  # seconds between two polls
REST = 2.0  # pause as a multiple of the last poll's duration: the run needs the processor more
SHOWN_FIRST = (LOST, GROWING, STILL, FINISHED)  # status shown for several runs
UNSEEN = 15.0  # seconds without a request, after which no page is open


class Follower:
    """Reads new trials from the files of runs as long as a page is open."""

    def __init__(self, runs: Runs) -> None:
        self.runs = runs
        self._signatures = list(runs.signatures)
        self._last = [runs.tomograms[runs.file_of.index(file)] for file in range(len(runs.files))]
        self._asked = -UNSEEN
        self._starting = threading.Lock()
        self._thread: threading.Thread | None = None  # started by the first page

    def _go(self) -> None:
        while True:
            time.sleep(PERIOD)
            begin = time.monotonic()
            if begin - self._asked < UNSEEN and all(map(self.runs.ready, range(len(self.runs.names)))):
                self.look()
                time.sleep(REST * (time.monotonic() - begin))

    def told(self) -> Record:
        """The status and the revision of the runs, for a page, whose request shows that it is open."""
        self._asked = time.monotonic()
        with self._starting:
            if self._thread is None:
                self._thread = threading.Thread(target=self._go, name="follower", daemon=True)
                self._thread.start()
        standing = list(self.runs.standing)
        heads = [f"{name}: " for name in self.runs.file_names] if len(standing) > 1 else [""]
        lines = [head + one.words for head, one in zip(heads, standing, strict=True)]
        kind = min((one.kind for one in standing), key=SHOWN_FIRST.index)
        return {"revision": self.runs.revision, "words": "\n".join(lines), "kind": kind}

    def look(self) -> None:
        """Check every file once for new trials."""
        for file, path in enumerate(self.runs.files):
            try:
                self._look_at(file, path)
            except InputError as error:
                self._lost(file, str(error))
            except Exception as error:  # the page continues with what it has
                log.debug("following %s", path, exc_info=error)
                self._lost(file, f"{path.name} could not be read again ({type(error).__name__})")

    def _look_at(self, file: int, path: Path) -> None:
        now, before, shown = Signature.of(path), self._signatures[file], self.runs.standing[file]
        self._signatures[file] = now
        at = shown.at
        if now is None:
            raise InputError(f"{path.name} is gone: this is what it held")
        if now != before:
            if before is None or now.file != before.file:
                self.runs.loaded[file] = Loaded()  # another file
            at = clock()
            self._read(file, path)
        elif shown.kind == LOST:
            return  # until it changes
        self.runs.standing[file] = replace(RunStatus.of(path, self._last[file]), at=at)

    def _read(self, file: int, path: Path) -> None:
        last = self._last[file]
        with Store.open(path) as store:
            identity = store.get(keys.IDENTITY)
            if identity is not None and identity_changes(last.provenance[keys.IDENTITY], identity):
                raise InputError(f"{path.name} holds another run now: start testifai explore again to look at that")
            if store.get(keys.ID) != last.provenance[keys.ID]:
                self.runs.loaded[file] = Loaded()  # started again: nothing of the previous run counts
            found = measured(read_run(store, self.runs.loaded[file]))
        if found.outcomes.total() != last.outcomes.total():
            self.runs.take_up(file, found)
        self._last[file] = found

    def _lost(self, file: int, why: str) -> None:
        self.runs.loaded[file] = Loaded()
        self.runs.standing[file] = replace(self.runs.standing[file], kind=LOST, problem=why)
