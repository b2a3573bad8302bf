"""Runs the steps of one page, top to bottom, in a folder of its own: one interpreter for a page."""

from __future__ import annotations

import ast
import os
import re
import shutil
import signal
import subprocess
import sys
import threading
import time
import tomllib
import traceback
import types
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from tests.docs.blocks import ROOT, Page, Step, read
from tests.docs.gathering import materials

import testifai

SECONDS = 300  # of one command: a page takes less than twenty in all, on an idle machine
SERVES = re.compile(r"testifai (explore|label page)\b|testifai .*--explore\b")  # until interrupted
ENDED = (0, -signal.SIGINT, 128 + signal.SIGINT)
WHOLE = {"model": {"onnx": "model.onnx"}, "data": {"npz": "data.npz"}, "space": {"zoom": "mnist_c.zoom"}}


class StepFailed(Exception):
    """A step of a page that did not do what the page says."""


def installed(name: str) -> bool:
    """Whether a package or a program is here."""
    if name.lower() == "chromium":
        from testifai.report.pdf import find_chromium

        return find_chromium() is not None
    return find_spec(name.replace("-", "_")) is not None or shutil.which(name) is not None


def runs(step: Step) -> bool:
    """Whether the tests run a step here."""
    return step.reason is None and (step.where is None or installed(step.where))


def run_page(page: Page, folder: Path) -> None:
    """Every step of a page that can be run, in a folder with what the page needs."""
    main = types.ModuleType("__main__")
    sys.modules["__main__"] = main  # whatever blocks define is found there, as in a script
    os.chdir(folder)
    sys.path[0] = str(folder)
    for step in page.steps:
        if runs(step):
            begin = time.perf_counter()
            try:
                RUNNERS[step.kind](step, page, main.__dict__)
            except StepFailed as failure:
                raise StepFailed(f"{page.name}:{step.line}: {failure}") from None
            print(f"{page.name}:{step.line}: {time.perf_counter() - begin:.1f} s", flush=True)


def _run_python(step: Step, page: Page, namespace: dict[str, Any]) -> None:
    try:
        tree = ast.increment_lineno(ast.parse(step.text, page.name), step.line - 1)
        exec(compile(tree, str(page.path), "exec"), namespace)
    except BaseException as problem:  # SystemExit, too, which would end the page in silence
        told = traceback.format_exc(limit=-3)
        raise StepFailed(f"a block raised {type(problem).__name__}\n{step.text}\n\n{told}") from None


def _run_command(step: Step, page: Page, namespace: dict[str, Any]) -> None:
    serves = SERVES.search(step.text)
    command = step.text.partition(" #")[0]
    free_port = serves and serves.group(1) and "--port" not in command
    text = f"{command} --port 0" if free_port else step.text
    process = subprocess.Popen(
        ["bash", "-o", "pipefail", "-c", text],
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    late = threading.Timer(SECONDS, os.killpg, (process.pid, signal.SIGKILL))
    late.start()
    said = ""
    for line in process.stdout:
        if serves and "http://" in line and "http://" not in said:
            os.killpg(process.pid, signal.SIGINT)
        said += line
    code = process.wait()
    late.cancel()
    sys.stdout.write(f"$ {step.text}\n{said}")
    if serves and "http://" in said and code in ENDED:
        return
    if code != step.exit_code:
        raise StepFailed(f"{step.text}\nended with exit code {code}, not {step.exit_code}\n{said[-4000:]}")


def _read_spec(step: Step, page: Page, namespace: dict[str, Any]) -> None:
    """A part of a spec is one: with a model, data and a space where it names none."""
    from testifai.errors import InputError
    from testifai.spec.parsing import parse

    try:
        parse(WHOLE | tomllib.loads(step.text))
    except (InputError, tomllib.TOMLDecodeError) as problem:
        raise StepFailed(f"no part of a spec: {problem}\n{step.text}") from None


def _write_file(step: Step, page: Page, namespace: dict[str, Any]) -> None:
    path = Path(step.file)
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(step.text + "\n", encoding="utf-8")


def _make_material(step: Step, page: Page, namespace: dict[str, Any]) -> None:
    make = materials().get(step.text)
    if make is None:
        raise StepFailed(f"nothing in tests/docs/material*.py makes {step.text!r}")
    namespace.update(make(Path.cwd()) or {})


RUNNERS = {
    "material": _make_material,
    "python": _run_python,
    "command": _run_command,
    "spec": _read_spec,
    "file": _write_file,
}


def failure_of(page: Page, place: Path) -> str | None:
    """Run a page as a reader would who has an installed testifai and an empty folder; what failed, if anything did."""
    folder, home, programs = place / "work", place / "home", place / "bin"
    for made in (folder, home, programs):
        made.mkdir()
    for name, module in (("python", ""), ("testifai", "-m testifai"), ("pytest", "-m pytest")):
        (programs / name).write_text(f'#!/bin/sh\nexec "{sys.executable}" {module} "$@"\n')
        (programs / name).chmod(0o755)
    kept = {key: value for key, value in os.environ.items() if not key.startswith(("XDG_", "TESTIFAI_", "PYTEST_"))}
    ours = Path(testifai.__file__).parents[1]  # wherever a command is run
    environment = kept | {
        "PYTHONPATH": os.pathsep.join([str(ours), *filter(None, [os.environ.get("PYTHONPATH")])]),
        "HOME": str(home),
        "TESTIFAI_STATE": str(home / "state"),
        "PATH": f"{programs}{os.pathsep}{os.environ['PATH']}",
        "PYTHONUNBUFFERED": "1",
        "BROWSER": "true",
    }
    done = subprocess.run(
        [sys.executable, "-c", "from tests.docs import running; running.main()", str(page.path), str(folder)],
        cwd=ROOT,
        env=environment,
        stderr=subprocess.PIPE,  # what is printed goes to pytest, which shows it with -s and where a page fails
        text=True,
        errors="replace",
    )
    return done.stderr[-6000:] if done.returncode else None


def main() -> None:
    """PAGE FOLDER: what failed goes to standard error."""
    try:
        run_page(read(Path(sys.argv[1])), Path(sys.argv[2]))
    except StepFailed as failure:
        sys.exit(str(failure))
