"""The explorer of a run in progress: a separate process, so that the run is neither slowed nor broken."""

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

NICER = 10  # of the page's process, where systems have priorities
WAIT = 0.25  # seconds between two checks for a first outcome


class ExplorerProcess:
    """The page of one run file, for the process that makes the run; `say` tells the user where it is."""

    def __init__(self, path: Path, port: int, say: Callable[[str], None]) -> None:
        self.path, self.port, self._say = path, port, say
        self._begun = False
        self._process: subprocess.Popen[str] | None = None  # None if it could not be started
        self._listener = threading.Thread(target=self._listen, daemon=True)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._process is not None and self._process.stdin is not None:
            self._process.stdin.close()  # which ends it
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(10)
            self._process.kill()

    def begin(self) -> None:
        """Start the process once."""
        if self._begun:
            return
        self._begun = True
        # In a separate group: a Ctrl-C is for the run alone.
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
        """Return a progress callback that starts the page at the first step."""

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
        """Keep the page of a finished run until Ctrl-C."""
        self.begin()
        with contextlib.suppress(KeyboardInterrupt):
            self._listener.join()
            if self._process is not None and self._process.poll() is None:
                self._say("The run is done. Its page stays until Ctrl-C.")
                self._process.wait()


def main() -> None:
    """Serve the page in its own process: of a run file, on a port or, if it is taken, another one."""
    path, port = Path(sys.argv[1]), int(sys.argv[2])

    def end_with_the_run() -> None:
        sys.stdin.read()
        os._exit(0)  # there is nothing to be put in order

    threading.Thread(target=end_with_the_run, daemon=True).start()
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
    from testifai.app.state import Runs

    while True:
        try:
            return Runs([path])
        except InputError:
            time.sleep(WAIT)


if __name__ == "__main__":
    main()
