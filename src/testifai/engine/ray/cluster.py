"""A Ray cluster: found or started, asked for what it has, and left as it was found.

Ray is imported here and nowhere else in the package.
"""

from __future__ import annotations

import logging
import os
import shutil
import signal
import socket
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from importlib.util import find_spec
from typing import Any

from testifai.errors import InputError
from testifai.support import libraries

CLIENT = "ray://"
REACHED_WITHIN = 5.0  # seconds
SPECIAL = ("auto", "local")  # a cluster that runs on this machine; one of its own for this run

log = logging.getLogger(__name__)


class Cluster:
    """A connection to a cluster; what it began, it ends."""

    def __init__(self, address: str | None) -> None:
        self.ray: Any = libraries.load("ray", extra="ray")
        self.ours = not self.ray.is_initialized()
        self._folder: str | None = None
        if self.ours:
            self._connect(address or os.environ.get("RAY_ADDRESS"))

    def _connect(self, address: str | None) -> None:
        """To the address; without one to a cluster that runs here, else to one started for this run."""
        if address is None:
            try:
                self._init("auto")
            except ConnectionError:
                self._init("local")
            return
        _reach(address)
        try:
            self._init(address)
        except InputError:
            raise
        except Exception as error:  # whatever stands between this machine and the cluster, versions included
            log.debug("ray.init failed", exc_info=True)
            start = "start one with: ray start --head" if address == "auto" else "is it a Ray cluster of this version?"
            raise InputError(f"workers: no Ray cluster at {address!r} ({_first_line(error)}); {start}") from None

    def _init(self, address: str) -> None:
        quiet: dict[str, Any] = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address.startswith(CLIENT) and find_spec("grpc") is None:
            raise InputError(f"workers: {address} needs grpcio; install it with: pip install 'ray[client]'")
        if address == "local":
            # Short: sockets live there, and their paths may have a hundred characters.
            self._folder = tempfile.mkdtemp(prefix="ta-ray-")
            quiet |= {"include_dashboard": False, "_temp_dir": self._folder}
        try:
            with _own_signals(), _no_reports():
                self.ray.init(address, **quiet)
        except BaseException:
            self.close()
            raise

    def resources(self) -> dict[str, float]:
        """What the cluster has in all, whoever uses it now."""
        return dict(self.ray.cluster_resources())

    def nodes(self) -> int:
        """How many nodes are alive."""
        return sum(bool(node["Alive"]) for node in self.ray.nodes())

    def close(self) -> None:
        """Leave; a cluster that was started for this run ends."""
        if self.ours:
            with suppress(Exception):  # it may be gone already
                self.ray.shutdown()
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _reach(address: str) -> None:
    """Refuse an address where nobody listens; Ray itself would wait for a minute."""
    if address in SPECIAL:
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"workers: {address!r} is not an address of Ray; HOST:6379, ray://HOST:10001 and auto are")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED_WITHIN).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"workers: no Ray cluster at {address} ({reason}); start one with: ray start --head") from None


@contextmanager
def _own_signals() -> Iterator[None]:
    """Keep this process's answers to signals; Ray puts its own in their place."""
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    before = {number: signal.getsignal(number) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, answer in before.items():
            signal.signal(number, answer)


@contextmanager
def _no_reports() -> Iterator[None]:
    """Nothing of a cluster started here is told to anybody."""
    before = os.environ.get("RAY_USAGE_STATS_ENABLED")
    os.environ["RAY_USAGE_STATS_ENABLED"] = "0"
    try:
        yield
    finally:
        if before is None:
            del os.environ["RAY_USAGE_STATS_ENABLED"]
        else:
            os.environ["RAY_USAGE_STATS_ENABLED"] = before


def _first_line(error: BaseException) -> str:
    lines = str(error).strip().splitlines()
    return lines[0][:200] if lines else type(error).__name__
