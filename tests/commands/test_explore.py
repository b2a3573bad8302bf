"""testifai explore as a command: it serves, asks for a token where it must, and says in one line what is wrong."""

from __future__ import annotations

import re
import sqlite3
import threading
import urllib.error
import urllib.request

import numpy as np
import pytest
import typer
from typer.testing import CliRunner

import testifai as ta
from testifai.commands.explore import explore
from testifai.errors import InputError

pytest.importorskip("dash")


@pytest.fixture
def run_file(tmp_path):
    rows = np.linspace(0, 1, 40)[:, None]
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.5])
    space = ta.Space({"up": shift, "on": shift})
    model = lambda x: (x[:, 0] > 0.5).astype(int)  # noqa: E731
    ta.scan(model, (rows, model(rows)), space, strategy="full", store=tmp_path / "run.db")
    return tmp_path / "run.db"


@pytest.fixture
def served(monkeypatch, run_file):
    """Run the command with its server in a thread of its own; what it printed, and its port."""
    from testifai.app import server as module

    made = []

    def start(*options):
        listen = module.listen

        def kept(*given):
            server = listen(*given)
            made.append((server, threading.Thread(target=server.serve_forever, daemon=True)))
            made[-1][1].start()
            server.serve_forever = lambda: None
            server.server_close = lambda: None
            return server

        monkeypatch.setattr(module, "listen", kept)
        result = call(str(run_file), "--port", "0", *options)
        assert result.exit_code == 0, result.output
        return result.output, made[-1][0].port

    yield start
    for server, thread in made:
        server.shutdown()
        thread.join(10)
        type(server).server_close(server)


def call(*arguments):
    app = typer.Typer()
    app.command()(explore)
    return CliRunner().invoke(app, list(arguments))


def status(address):
    try:
        with urllib.request.urlopen(address, timeout=10) as reply:
            return reply.status
    except urllib.error.HTTPError as error:
        return error.code


def test_serves_this_machine(served):
    output, port = served()
    assert f"Exploring run.db at http://127.0.0.1:{port}/ " in output
    assert status(f"http://127.0.0.1:{port}/_dash-layout") == 200


def test_another_address_needs_the_token_that_is_printed(served):
    output, port = served("--host", "0.0.0.0")
    token = re.search(r"\?token=(\S+)", output)[1]
    assert len(token) >= 32
    assert status(f"http://127.0.0.1:{port}/_dash-layout") == 401
    assert status(f"http://127.0.0.1:{port}/?token={token}") == 200


def wrong(*arguments):
    result = call(*map(str, arguments))
    assert isinstance(result.exception, InputError)
    assert "\n" not in str(result.exception)
    return str(result.exception)


def test_what_is_wrong_is_one_line(run_file, tmp_path):
    assert "named twice" in wrong(run_file, run_file)
    assert "no_such.db" in wrong(tmp_path / "no_such.db")
    (tmp_path / "text.db").write_text("not a run")
    assert "text.db" in wrong(tmp_path / "text.db")


def test_a_half_written_run(run_file):
    content = run_file.read_bytes()
    run_file.write_bytes(content[: len(content) // 2])
    assert "run.db" in wrong(run_file)


def test_a_run_of_another_format(run_file):
    with sqlite3.connect(run_file) as connection:
        connection.execute("PRAGMA user_version = 999")
    assert "has format 999, this testifai reads format 2" in wrong(run_file)


def test_without_dash(run_file, monkeypatch):
    monkeypatch.setitem(__import__("sys").modules, "dash", None)
    assert wrong(run_file) == "dash is not installed; install it with: pip install 'testifai[app]'"
