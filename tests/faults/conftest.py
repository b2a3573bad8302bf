"""What tests of faults share: a watch over one case that sees tracebacks, hangs, and what is touched unasked."""

from __future__ import annotations

import faulthandler
import os
import resource
import signal
import sqlite3
import sys
import sysconfig
import time
import traceback
from collections.abc import Callable, Iterable
from contextlib import contextmanager
from importlib.machinery import PathFinder
from importlib.metadata import packages_distributions
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import testifai
from testifai import cli
from testifai.errors import InputError

# Where code comes from that may be loaded at any time: Python, installed packages, testifai itself.
OURS = str(Path(testifai.__file__).parent)
LIBRARIES = tuple({sys.prefix, sys.base_prefix, *sysconfig.get_paths().values(), OURS})
# What the system tells of itself, and where nothing is kept.
HARMLESS = ("/proc/", "/sys/", "/dev/null", "/dev/urandom", "/etc/localtime", "/usr/share/zoneinfo", "/etc/mime.types")
KNOWN_MODULES = {*sys.stdlib_module_names, *packages_distributions(), "testifai"}
CHANGES = ("os.remove", "os.rename", "os.mkdir", "os.rmdir", "os.truncate", "os.link", "os.symlink", "os.chmod")
NEVER = (
    *("subprocess.Popen", "os.system", "os.exec", "os.posix_spawn", "os.fork", "os.spawn", "pty.spawn"),
    *("socket.connect", "socket.bind", "urllib.Request", "ctypes.dlopen", "pickle.find_class", "webbrowser.open"),
)
ROOM = 1 << 30  # bytes that one case may take on top of what the process has
MEMORY = "out of memory"
PATIENCE = 30  # times the processor time of a case, in seconds of the clock


class Hang(BaseException):
    """A case that took too long; no `except Exception` may catch it."""


class Watch:
    """Runs cases one by one, and notes whatever a case does that it should not."""

    def __init__(self) -> None:
        self.named: tuple[str, ...] | None = None  # None: nobody looks
        self.touched: list[str] = []

    def hook(self, event: str, arguments: tuple[Any, ...]) -> None:
        """Told by Python of every file, import and execution."""
        if self.named is None:
            return
        problem = self._problem(event, arguments)
        if problem:
            self.touched.append(f"{event} {problem}"[:300])

    def _problem(self, event: str, arguments: tuple[Any, ...]) -> str | None:
        if event == "open":
            path, mode, flags = arguments
            if not isinstance(path, str | bytes | os.PathLike):
                return None  # a file that is open already
            writes = any(sign in (mode or "") for sign in "wax+") or (flags or 0) & (
                os.O_WRONLY | os.O_RDWR | os.O_CREAT
            )
            return None if self._may(path, writes=bool(writes)) else str(path)
        if event == "sqlite3.connect":
            return (
                None if self._may(str(arguments[0]).removeprefix("file://").partition("?")[0], True) else arguments[0]
            )
        if event in CHANGES:
            return None if self._may(arguments[0], writes=True) else str(arguments[0])
        if event == "import":
            return self._foreign_module(arguments[0])
        if event == "exec":
            return self._foreign_code(arguments[0])
        return str(arguments) if event in NEVER else None

    def _may(self, path: Any, writes: bool) -> bool:
        text = os.path.realpath(os.fsdecode(path))
        if any(text == one or text.startswith((one + "-", one + os.sep)) for one in self.named or ()):
            return True  # SQLite and our lock put files of the same name beside a run
        return not writes and text.startswith((*LIBRARIES, *HARMLESS))

    def _foreign_module(self, name: str) -> str | None:
        """Libraries also ask for others that are not installed: where there is nothing to load, nothing runs."""
        first = name.partition(".")[0]
        if first in KNOWN_MODULES:
            return None
        named, self.named = self.named, None
        try:
            return None if PathFinder.find_spec(first) is None else name
        finally:
            self.named = named

    def _foreign_code(self, code: Any) -> str | None:
        """Libraries make classes of text; whatever else is executed comes from a file of theirs or of ours."""
        origin = getattr(code, "co_filename", "")
        if origin.startswith("<"):
            # The hook, its method and this one are on top of whoever calls exec.
            frame = sys._getframe(3)
            caller = frame.f_code.co_filename
            fine = caller.startswith(("<frozen", *LIBRARIES)) and not caller.startswith(OURS)
            return None if fine else f"{origin} by {caller}"
        return None if os.path.realpath(origin).startswith(LIBRARIES) else origin

    @contextmanager
    def over(self, named: Iterable[str | os.PathLike[str]], seconds: float) -> Any:
        """Look while a case runs that may touch only what is named, within a time."""

        def late(*_: object) -> None:
            self.touched.append(f"took more than {seconds} s")  # testifai catches what is raised in code of users
            raise Hang

        # Processor time, so that a busy machine makes no hang; whoever waits for nothing is ended by the clock.
        before = signal.signal(signal.SIGPROF, late)
        faulthandler.dump_traceback_later(PATIENCE * seconds, exit=True)
        signal.setitimer(signal.ITIMER_PROF, seconds)
        self.touched = []
        self.named = tuple(os.path.realpath(one) for one in named)
        try:
            yield
        finally:
            self.named = None
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.signal(signal.SIGPROF, before)
            faulthandler.cancel_dump_traceback_later()

    def case(
        self, act: Callable[[], Any], named: Iterable[str | os.PathLike[str]] = (), seconds: float = 10
    ) -> tuple[Any, list[str]]:
        """What a case answers (an InputError if it was refused) and what was wrong with how it went."""
        result: Any = None
        problems: list[str] = []
        try:
            with self.over(named, seconds):
                result = act()
        except InputError as error:
            result = error
            if len(str(error).splitlines()) != 1:
                problems.append(f"not one line: {str(error)[:200]!r}")
        except Hang:
            pass  # noted in touched
        except Exception as error:
            problems.append(_where(error))
        return result, [*problems, *dict.fromkeys(self.touched)]

    def apart(
        self, act: Callable[[], Any], named: Iterable[str | os.PathLike[str]] = (), seconds: float = 10
    ) -> tuple[str, list[str]]:
        """The same in a process of its own, with little memory, which is ended where no interrupt is heard.

        The answer is text: `refused: ` and the line, or what the case returned, as Python writes it.
        """
        ours, theirs = os.pipe()
        child = os.fork()
        if not child:
            os.close(ours)
            _child(self, act, named, seconds, theirs)
        os.close(theirs)
        said = _read_all(ours, child, PATIENCE * seconds)
        _, status = os.waitpid(child, 0)
        if os.WIFSIGNALED(status):
            number = os.WTERMSIG(status)
            stuck = number in (signal.SIGXCPU, signal.SIGKILL)
            return "", ["a hang that no interrupt ends" if stuck else f"ended by signal {number}"]
        answer, _, problems = said.partition("\0")
        return answer, [one for one in problems.split("\0") if one]


def _child(watch: Watch, act: Callable[[], Any], named: Any, seconds: float, out: int) -> None:
    """Run a case in the child, say how it went, and end without anything of pytest's."""
    try:
        size = int(Path("/proc/self/statm").read_text().split()[0]) * os.sysconf("SC_PAGE_SIZE")
        resource.setrlimit(resource.RLIMIT_AS, (size + ROOM, size + ROOM))
        resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
        # Processor time is counted from the start of the child; within SQLite, say, no handler of ours is heard.
        resource.setrlimit(resource.RLIMIT_CPU, (int(seconds) + 3, int(seconds) + 3))
        result, problems = watch.case(act, named, seconds)
        answer = f"refused: {result}" if isinstance(result, InputError) else repr(result)
        said = "\0".join([answer, *problems])
    except BaseException as error:
        said = f"\0{_where(error)}"
    os.write(out, said.encode("utf-8", "replace")[:60_000])
    os._exit(0)


def _read_all(end: int, child: int, seconds: float) -> str:
    import select

    deadline, parts = time.monotonic() + seconds, []
    while select.select([end], [], [], max(0.0, deadline - time.monotonic()))[0]:
        part = os.read(end, 65536)
        if not part:
            break
        parts.append(part)
    else:
        os.kill(child, signal.SIGKILL)
    os.close(end)
    return b"".join(parts).decode("utf-8", "replace")


def _where(error: BaseException) -> str:
    """An error with the last place of ours that it came from."""
    places = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith(OURS)]
    place = f"{places[-1].filename.removeprefix(OURS)}:{places[-1].lineno}" if places else "outside testifai"
    what = MEMORY if isinstance(error, MemoryError) else f"{type(error).__name__}: {' '.join(str(error).split())[:150]}"
    return f"{what} ({place})"


WATCH = Watch()
sys.addaudithook(WATCH.hook)


@pytest.fixture(scope="session")
def watch() -> Watch:
    """The one watch; a hook that was once added stays as long as the process."""
    return WATCH


class Report:
    """Collects what went wrong in many cases, so that one failure does not hide the others."""

    def __init__(self) -> None:
        self.problems: dict[str, list[str]] = {}
        self.refused = self.answered = 0

    def add(self, case: str, problems: Iterable[str]) -> None:
        for problem in problems:
            self.problems.setdefault(problem, []).append(case)

    def count(self, answer: Any) -> None:
        """One more case that came to an end."""
        if isinstance(answer, InputError) or (isinstance(answer, str) and answer.startswith("refused: ")):
            self.refused += 1
        else:
            self.answered += 1

    def check(self) -> None:
        """Fail with every kind of problem, how often it was seen, and in which cases at first."""
        lines = [f"{len(cases)} × {problem} — {'; '.join(cases[:25])}" for problem, cases in self.problems.items()]
        assert not lines, "\n" + "\n".join(lines)


@pytest.fixture
def report() -> Report:
    return Report()


def change_run(path: Path, statements: Iterable[tuple[str, tuple[Any, ...]]]) -> None:
    """Edit a run file behind testifai's back."""
    connection = sqlite3.connect(path, isolation_level=None)
    try:
        connection.execute("PRAGMA foreign_keys = OFF")
        for statement, values in statements:
            connection.execute(statement, values)
    finally:
        connection.close()


@pytest.fixture(scope="session")
def edit_run() -> Callable[[Path, Iterable[tuple[str, tuple[Any, ...]]]], None]:
    return change_run


# -- a project with code of the user's, and commands through the entry point

IMAGES = np.random.default_rng(1).integers(0, 256, (60, 8, 8), dtype=np.uint8)


@pytest.fixture
def command(monkeypatch, capsys, caplog):
    """Run a command: its exit code, standard output, and standard error with what is logged there."""

    def call(*arguments):
        caplog.clear()
        monkeypatch.setattr("sys.argv", ["testifai", *map(str, arguments)])
        with pytest.raises(SystemExit) as left:
            cli.main()
        out, err = capsys.readouterr()
        return left.value.code, out, err + caplog.text

    return call


@pytest.fixture
def own(tmp_path, monkeypatch):
    """Write a module of the user's, called OWN in every text, with data and a spec; gives the spec's path.

    Whatever is written next is the same project with other content, imported anew.
    """
    name = "own_project"
    tables = {"data": 'npz = "data.npz"', "space": 'noise = "classic.gaussian_noise"'}

    def write(code, *, model="", scan="", lines="", **others):
        (tmp_path / f"{name}.py").write_text("import sys\nimport numpy as np\nimport testifai as ta\n" + code)
        monkeypatch.delitem(sys.modules, name, raising=False)
        np.savez(tmp_path / "data.npz", x=IMAGES, y=(IMAGES[:, 0, 0] > 127).astype(int))
        content = {"model": f'python = "OWN:model"\n{model}', **tables, "scan": f'strategy = "full"\n{scan}', **others}
        spec = tmp_path / "spec.toml"
        text = "".join(f"[{table}]\n{entries}\n" for table, entries in content.items()) + lines
        spec.write_text(text.replace("OWN", name))
        return spec

    return write
