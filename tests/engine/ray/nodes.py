"""Real Ray nodes on this machine, each a `ray start` of its own, to be killed."""

from __future__ import annotations

import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from contextlib import suppress
from pathlib import Path

import testifai

STARTED_WITHIN = 90.0  # seconds


class Nodes:
    """A cluster on loopback, its logs in a folder of its own; `environment` is what reaches it."""

    def __init__(self, *options: str, pause: float = 0.0, client: bool = False) -> None:
        port, door = free_port(), free_port()
        self.address, self.door = f"127.0.0.1:{port}", f"ray://127.0.0.1:{door}"
        self.folder = Path(tempfile.mkdtemp(prefix="ta-"))  # short: sockets live there
        self._options = ["--num-cpus=1", "--disable-usage-stats", "--block", *options]
        sources = str(Path(testifai.__file__).parents[1])
        self.environment = {
            **os.environ, "RAY_AUTH_MODE": "disabled", "OMP_NUM_THREADS": "1",
            "PYTHONPATH": os.pathsep.join([sources, os.environ.get("PYTHONPATH", "")]),
        }  # fmt: skip
        # A node that does not answer for a few seconds is lost; Ray would wait for fifteen.
        self.cache = self.folder / "copies"
        self._of_nodes = {
            "TEST_PAUSE": str(pause), "RAY_health_check_failure_threshold": "2", "TESTIFAI_CACHE": str(self.cache),
            # gRPC's answer to forks kills some of the servers that Ray starts for clients.
            "RAY_CLIENT_SERVER_CHECK_CHANNEL_TIMEOUT_S": "120", "GRPC_ENABLE_FORK_SUPPORT": "0",
        }  # fmt: skip
        self._started: list[subprocess.Popen[bytes]] = []
        head = ("--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self.folder}")
        self._start(*head, *([f"--ray-client-server-port={door}"] if client else []))
        self._wait(1)

    def add(self) -> subprocess.Popen[bytes]:
        """Another node, once it is there."""
        node = self._start(f"--address={self.address}")
        self._wait(sum(one.poll() is None for one in self._started))
        return node

    def kill(self, node: subprocess.Popen[bytes]) -> None:
        """SIGKILL for a node and all its processes, at once."""
        family = descendants(node.pid)
        for one in [node.pid, *family]:
            with suppress(ProcessLookupError):
                os.kill(one, signal.SIGKILL)
        node.wait()

    def close(self) -> None:
        for node in self._started:
            if node.poll() is None:
                self.kill(node)
        shutil.rmtree(self.folder, ignore_errors=True)

    def _start(self, *options: str) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "ray.scripts.scripts", "start", *options, *self._options]
        with (self.folder / f"{len(self._started)}.txt").open("wb") as log:
            node = subprocess.Popen(
                command, env={**self.environment, **self._of_nodes}, stdout=log, stderr=log, start_new_session=True
            )
        self._started.append(node)
        return node

    def _wait(self, nodes: int) -> None:
        deadline = time.monotonic() + STARTED_WITHIN
        script = "import ray, sys; ray.init(sys.argv[1], logging_level='ERROR', log_to_driver=False); " \
                 "print(sum(node['Alive'] for node in ray.nodes()))"  # fmt: skip
        while True:
            log = "".join(file.read_text(errors="replace") for file in self.folder.glob("*.txt"))
            if log.count("Ray runtime started") >= nodes:
                found = subprocess.run(
                    [sys.executable, "-c", script, self.address], env=self.environment, capture_output=True, text=True,
                    check=False,
                )  # fmt: skip
                if found.stdout.strip().endswith(str(nodes)):
                    return
            assert time.monotonic() < deadline, f"the cluster did not start:\n{log}"
            time.sleep(0.3)


def free_port() -> int:
    """One that nobody listens at."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        return int(free.getsockname()[1])


def descendants(root: int) -> list[int]:
    """All processes that a process started, directly or not."""
    parents = {}
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                parents[int(entry.name)] = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
    found, fresh = [], [root]
    while fresh:
        fresh = [child for child, parent in parents.items() if parent in fresh]
        found += fresh
    return found
