"""The explorer beside a run that is being made: a process of its own, so that the run is neither slowed nor broken.

It begins with the first outcome, ends with the process that began it, however that ends, and listens on this machine.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Self

from testifai.errors import InputError
from testifai.support.progress import Step
from testifai.support.types import Record

if TYPE_CHECKING:
    from testifai.app.state import Runs

NICER = 10  # by how much the run goes before, where a system knows such a thing
WAIT = 0.25  # seconds until it is looked for a first outcome again


class ExplorerProcess:
    """The page of one run file, for the process that makes the run; `say` tells the user where it is."""

    def __init__(self, path: Path, port: int, say: Callable[[str], None]) -> None:
        self.path, self.port, self._say = path, port, say
        self._begun = False
        self._process: subprocess.Popen[str] | None = None  # none where it could not be started
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()  # by which it knows
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self._process.kill()

    def begin(self) -> None:
        """Start it, unless that was done."""
        if self._begun:
            return
        self._begun = True
        # A group of its own: a Ctrl-C is for the run alone.
        group: Record = {"start_new_session": True}
        if sys.platform == "win32":
            group = {"creationflags": subprocess.CREATE_NEW_PROCESS_GROUP}
        with contextlib.suppress(OSError):  # the run goes on without it
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-m", __name__, str(self.path.resolve()), str(self.port)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, **group,
            )  # fmt: skip
        self._listener.start()

    def shown_with(self, show: Callable[[Step], None]) -> Callable[[Step], None]:
        """What a session tells its steps to: the page begins with the first."""

        def step(now: Step) -> None:
            self.begin()
            show(now)

        return step

    def _listen(self) -> None:
        process = self._process
        if process is not None and process.stdout is not None and (address := process.stdout.readline().strip()):
            self._say(f"Exploring {self.path.name} as it grows at {address} (Ctrl-C stops the run and the page)")
        elif process is None or process.wait():
            self._say(f"note: there is no page of this run; testifai explore {self.path} says why")

    def stay(self) -> None:
        """Wait until the user has seen enough of a run that is done."""
        self.begin()
        with contextlib.suppress(KeyboardInterrupt):
            self._listener.join()
            if self._process is not None and self._process.poll() is None:
                self._say("The run is done. Its page stays until Ctrl-C.")
                self._process.wait()


def main() -> None:
    """The page's own process: a run file and a port, which is another one where that is taken."""
    path, port = Path(sys.argv[1]), int(sys.argv[2])
    threading.Thread(target=_end_with_the_run, daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICER)
    from testifai.app.server import build, listen

    runs = _begun(path)
    app = build(runs).server
    try:
        server = listen(app, "127.0.0.1", port)
    except InputError:
        server = listen(app, "127.0.0.1", 0)
    runs.warm()
    print(f"http://127.0.0.1:{server.port}/", flush=True)
    server.serve_forever()


def _begun(path: Path) -> Runs:
    """The run, once there is an outcome of it."""
    from testifai.app.state import Runs

    while True:
        try:
            return Runs([path])
        except InputError:
            time.sleep(WAIT)


def _end_with_the_run() -> None:
    sys.stdin.read()
    os._exit(0)  # there is nothing to be put in order


if __name__ == "__main__":
    main()
