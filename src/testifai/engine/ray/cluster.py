"""Connections to a Ray cluster; the only module that imports Ray."""

from __future__ import annotations

import importlib
import logging
import os
import secrets
import shutil
import signal
import socket
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from importlib.util import find_spec
from typing import Any

from testifai.engine.inference import one_line
from testifai.errors import InputError
from testifai.support import optional_imports
from testifai.support.types import Record

CLIENT = "ray://"
REACHED_WITHIN = 5.0  # seconds
START = "start one with: ray start --head"
TRIES = 3
# Errors of a client whose server process died on starting, because gRPC does not support forks (docs/scale.md).
STILLBORN = ("Starting Ray client server failed", "psutil.ZombieProcess", "psutil.NoSuchProcess")
SPECIAL = ("auto", "local")  # a running cluster on this machine; one that is started for this run

log = logging.getLogger(__name__)


class Cluster:
    """A connection to a cluster; a cluster that it started ends with it."""

    def __init__(self, address: str | None) -> None:
        optional_imports.load("ray.exceptions", extra="ray")  # not a folder called ray
        self.ray: Any = importlib.import_module("ray")
        self.ours = not self.ray.is_initialized()
        self._folder: str | None = None
        if self.ours:
            self._connect(address or os.environ.get("RAY_ADDRESS"))

    def _connect(self, address: str | None) -> None:
        """Connect to the address, by default to a cluster that runs here, else to one started for this run."""
        try:
            if address is not None:
                _reach(address)
                self._join(address)
                return
            try:
                self._init("auto")
            except ConnectionError:
                self._init("local")
        except InputError:
            raise
        except Exception as error:  # network, versions and others
            log.debug("ray.init failed", exc_info=True)
            other = "does it run this version of Ray, and is its token known here (RAY_AUTH_MODE=token)?"
            hint = START if address in (None, *SPECIAL) else other
            raise InputError(
                f"workers: no Ray cluster at {address or 'this machine'} ({_reason(error)}); {hint}"
            ) from None

    def _join(self, address: str) -> None:
        """Connect to a running cluster; a client tries again if its server process died on starting."""
        for left in reversed(range(TRIES)):
            try:
                self._init(address)
                return
            except Exception as error:
                if not left or not any(sign in str(error) for sign in STILLBORN):
                    raise
                log.debug("the server for this client died on starting", exc_info=True)

    def _init(self, address: str) -> None:
        quiet: Record = {"log_to_driver": False, "logging_level": logging.CRITICAL}
        if address.startswith(CLIENT) and find_spec("grpc") is None:
            raise InputError(f"workers: {address} needs grpcio; install it with: pip install 'ray[client]'")
        if address == "local":
            # Short: paths of sockets may have a hundred characters.
            self._folder = tempfile.mkdtemp(prefix="ta-ray-")
            quiet |= {"include_dashboard": False, "_temp_dir": self._folder}
        # A cluster of this run sends no statistics and has its own token; Ray would write one to the home folder.
        alone = {"RAY_USAGE_STATS_ENABLED": "0", "RAY_AUTH_TOKEN": _secret()} if address == "local" else {}
        try:
            with _own_signals(), _environment(**alone), _no_stderr():
                self.ray.init(address, **quiet)
            self._tell_of_losses(False)
        except BaseException as error:
            self.close()
            if isinstance(error, SystemExit):  # Ray's answer to SIGTERM while it starts
                signal.raise_signal(signal.SIGTERM)
            raise

    def _tell_of_losses(self, on: bool) -> None:
        """Set whether Ray prints messages about lost nodes, for which it has no option."""
        with suppress(ImportError):
            importlib.import_module("ray._private.worker")._worker_logs_enabled = on  # type: ignore[attr-defined]

    def resources(self) -> dict[str, float]:
        return dict(self.ray.cluster_resources())

    def nodes(self) -> int:
        return sum(bool(node["Alive"]) for node in self.ray.nodes())

    def close(self) -> None:
        if self.ours:
            with suppress(Exception):  # it may be gone already
                self.ray.shutdown()
            self._tell_of_losses(True)
        if self._folder is not None:
            shutil.rmtree(self._folder, ignore_errors=True)
            self._folder = None


def _reason(error: BaseException) -> str:
    """Return an error's first line, or the last one of a server's traceback."""
    lines = [line.strip() for line in str(error).splitlines() if line.strip()]
    return lines[-1][:300] if lines and lines[0].endswith(":") else one_line(error)


def _reach(address: str) -> None:
    """Raise InputError if nothing listens at an address; Ray itself would wait for a minute."""
    if address in SPECIAL:
        return
    host, _, port = address.removeprefix(CLIENT).rpartition(":")
    if not host or not port.isdigit():
        raise InputError(f"workers: {address!r} is not an address of Ray; HOST:6379, ray://HOST:10001 and auto are")
    try:
        socket.create_connection((host.strip("[]"), int(port)), timeout=REACHED_WITHIN).close()
    except (OSError, OverflowError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise InputError(f"workers: no Ray cluster at {address} ({reason}); {START}") from None


@contextmanager
def _own_signals() -> Iterator[None]:
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
def _no_stderr() -> Iterator[None]:
    """Drop output to standard error below Python: Ray repeats there every second what it then raises."""
    try:
        sys.stderr.flush()
        kept, nothing = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    except (OSError, ValueError, AttributeError):  # there is none
        yield
        return
    try:
        os.dup2(nothing, 2)
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
        os.close(nothing)


@contextmanager
def _environment(**variables: str) -> Iterator[None]:
    before = {name: os.environ[name] for name in variables if name in os.environ}
    os.environ.update(variables)
    try:
        yield
    finally:
        for name in variables:
            del os.environ[name]
        os.environ.update(before)


@cache
def _secret() -> str:
    """Return the token of clusters that this process starts; Ray reads it once in a process."""
    return os.environ.get("RAY_AUTH_TOKEN") or secrets.token_hex(32)
