"""The pytest plug-in: every gate in `*.testifai.toml` is a test. Before one is collected, little is imported."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator
from fnmatch import fnmatch
from pathlib import Path
from typing import TYPE_CHECKING, Any
from uuid import uuid4

import pytest
from _pytest._code.code import ReprFileLocation, TerminalRepr

from testifai.errors import InputError
from testifai.support.formatting import printable, printable_parts

if TYPE_CHECKING:
    from _pytest._io import TerminalWriter
    from _pytest.terminal import TerminalReporter

    from testifai.gates.runner import GatedRun
    from testifai.spec.parsing import Gate, Spec
    from testifai.support.types import Record
    from testifai.tomogram import Tomogram

SUFFIX = ".testifai.toml"
CORRECTIONS = ("file", "project", "none")
PROPERTY = "testifai_"  # prefix of the facts in a gate's report, for --junit-xml and for the summary
MARK = re.compile(r"^\s*\[\[\s*gate\s*\]\]", re.MULTILINE)

_RESULTS = pytest.StashKey[dict[Path, "GatedRun | InputError"]]()  # of this process
_WRITTEN = pytest.StashKey[list[str]]()  # a line for each report
_GATES = pytest.StashKey[int]()  # number of gates of the project


class GateError(Exception):
    """A gate that fails or is undecided, with the page that explains it."""

    def __init__(self, line: str, page: str) -> None:
        super().__init__(line)
        self.page = page


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("testifai", "robustness gates (files *.testifai.toml)")
    group.addoption(
        "--testifai-update", action="store_true", help="Measure again what the gates and the fixture ask for."
    )
    group.addoption(
        "--testifai-report",
        metavar="FOLDER",
        help="Write a report of every run that was looked at into this folder: a page and Markdown.",
    )
    parser.addini(
        "testifai_correction",
        "'file' (default): the gates of a file share 5 % risk of a wrong decision; 'project': those of all files do; "
        "'none': each has its own.",
        default="file",
    )
    parser.addini("testifai_cache", "Folder for what was measured; default: in pytest's own cache.", default="")


def pytest_configure(config: pytest.Config) -> None:
    config.stash[_RESULTS] = {}
    chosen = config.getini("testifai_correction")
    if chosen not in CORRECTIONS:
        raise pytest.UsageError(f"testifai_correction: must be one of {', '.join(CORRECTIONS)}, got {chosen!r}")


def _sharing(config: pytest.Config) -> int | None:
    """Number of gates that share the risk of a wrong decision; None: the gates of each file."""
    chosen = config.getini("testifai_correction")
    if chosen != "project":
        return 1 if chosen == "none" else None
    if _GATES not in config.stash:
        config.stash[_GATES] = max(1, sum(map(_count, _spec_files(config))))
    return config.stash[_GATES]


def _spec_files(config: pytest.Config) -> Iterator[Path]:
    """Every spec file below the root: the requirement of a gate must not depend on the selection of tests."""
    skipped = config.getini("norecursedirs")
    for folder, below, files in os.walk(config.rootpath):
        kept = [name for name in below if not any(fnmatch(name, pattern) for pattern in skipped)]
        below[:] = [name for name in kept if not Path(folder, name, "pyvenv.cfg").is_file()]
        yield from (Path(folder, name) for name in files if name.endswith(SUFFIX))


def _count(path: Path) -> int:
    from testifai.spec.parsing import read

    try:
        return len(read(path).gate)
    except InputError:
        return 0


def _cache_folder(config: pytest.Config) -> Path:
    chosen = config.getini("testifai_cache")
    if chosen:
        return Path(config.rootpath / chosen)
    cache = getattr(config, "cache", None)  # there is none with -p no:cacheprovider
    return Path(cache.mkdir("testifai")) if cache is not None else config.rootpath / ".testifai_cache"


def _measured(config: pytest.Config, path: Path) -> GatedRun:
    """The results of a spec file, measured once per session if the model may have changed, else only if not cached."""
    from testifai.gates.runner import measure
    from testifai.spec.parsing import read

    results, path = config.stash[_RESULTS], path.resolve()
    if path not in results:
        # Under pytest-xdist all processes of one call share this word, so that only the first of them measures again.
        word = getattr(config, "workerinput", {}).get("testrunuid") or uuid4().hex
        name = path.name.removesuffix(".toml").removesuffix(".testifai")
        try:
            folder = _cache_folder(config)
            results[path] = measure(
                read(path), path.parent, folder, name=name, sharing=_sharing(config), again=word,
                update=config.getoption("testifai_update"),
            )  # fmt: skip
        except InputError as error:
            results[path] = error
    found = results[path]
    if isinstance(found, InputError):
        raise found.with_traceback(None)
    return found


@pytest.fixture
def testifai(request: pytest.FixtureRequest) -> Callable[[str | Path], Tomogram]:
    """`testifai("name.testifai.toml")` is the spec's tomogram, measured once; paths start at the test's folder."""

    def tomogram(path: str | Path) -> Tomogram:
        try:
            return _measured(request.config, request.path.parent / path).tomogram
        except InputError as error:
            pytest.fail(f"testifai: {error}", pytrace=False)

    return tomogram


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Write the requested reports; one that cannot be written is a line, and no failure of a gate."""
    folder = session.config.getoption("testifai_report")
    measured = [found for found in session.config.stash[_RESULTS].values() if not isinstance(found, InputError)]
    if folder is None or not measured:
        return
    from testifai.report.pdf import write_report

    lines = session.config.stash.setdefault(_WRITTEN, [])
    for found in measured:
        try:
            lines.append(f"report: {write_report(found.path, Path(folder))}")
        except InputError as error:
            lines.append(f"no report of {found.path}: {error}")


def pytest_collect_file(file_path: Path, parent: pytest.Collector) -> pytest.Collector | None:
    return SpecFile.from_parent(parent, path=file_path) if file_path.name.endswith(SUFFIX) else None


class SpecFile(pytest.File):
    """A spec with gates."""

    def collect(self) -> Iterable[GateItem]:
        from testifai.spec.parsing import read

        try:
            spec = read(self.path)
            _check(spec, self.path.parent)
        except InputError as error:
            line = str(error)
            raise self.CollectError(line if line.startswith(self.path.name) else f"{self.path.name}: {line}") from None
        text = self.path.read_text(encoding="utf-8")
        lines = [text.count("\n", 0, mark.end()) for mark in MARK.finditer(text)]
        uses: Counter[str] = Counter()
        for number, gate in enumerate(spec.gate):
            name = printable(gate.name or gate.query)
            uses[name] += 1
            unique = name if uses[name] == 1 else f"{name} ({uses[name]})"
            place = lines[number] if len(lines) == len(spec.gate) else None
            yield GateItem.from_parent(self, name=unique, gate=gate, number=number, line=place)


def _check(spec: Spec, folder: Path) -> None:
    """Find errors that need no model and no data to be loaded, and missing files."""
    from testifai.gates.runner import check_modules
    from testifai.gates.verdicts import naming
    from testifai.session import assembly
    from testifai.strategies.draws import selections

    check_modules(spec, folder)
    space = assembly.space(spec, folder)
    for number, gate in enumerate(spec.gate, start=1):
        with naming(gate, number):
            selections(space, [gate.query])
    # The loaders have the best messages about missing files.
    if spec.model.missing_files(folder):
        assembly.load_model(spec, folder)
    if spec.data.missing_files(folder):
        assembly.load_data(spec, folder)


class GateItem(pytest.Item):
    """One gate: passes when it holds."""

    def __init__(self, *, gate: Gate, number: int, line: int | None, **rest: Any) -> None:
        super().__init__(**rest)
        self.gate, self.number, self.line = gate, number, line

    def reportinfo(self) -> tuple[Path, int | None, str]:
        return self.path, self.line, self.name

    def runtest(self) -> None:
        from testifai.present.gate_page import line, page

        measured = _measured(self.config, self.path)
        verdict = measured.verdicts[self.number]
        facts = {
            **{key: value for key, value in verdict.as_dict().items() if key not in {"name", "reason"}},
            "confidence": measured.confidence,
            "sharing": measured.sharing,
            "inferences": measured.tomogram.inferences,
            "new": measured.new,
            **({"warnings": measured.warnings} if measured.warnings else {}),
        }
        self.user_properties += [(PROPERTY + key, printable_parts(value)) for key, value in facts.items()]
        if not verdict.holds:
            raise GateError(line(verdict), page(measured, verdict))

    def repr_failure(self, excinfo: pytest.ExceptionInfo[BaseException], style: Any = None) -> Any:
        if isinstance(excinfo.value, GateError):
            return _Page(self, str(excinfo.value), excinfo.value.page)
        if isinstance(excinfo.value, InputError):
            return _Page(self, str(excinfo.value), f"error: {excinfo.value}")
        return super().repr_failure(excinfo, style)


class _Page(TerminalRepr):
    def __init__(self, item: GateItem, line: str, page: str) -> None:
        self.page = printable(page, lines=True)
        self.reprcrash = ReprFileLocation(str(item.path), (item.line or 0) + 1, printable(line))

    def toterminal(self, tw: TerminalWriter) -> None:
        tw.line(self.page)


def _facts(report: Any) -> Record:
    properties = getattr(report, "user_properties", ())
    return {key.removeprefix(PROPERTY): value for key, value in properties if str(key).startswith(PROPERTY)}


def pytest_report_teststatus(report: pytest.TestReport) -> tuple[str, str, str] | None:
    undecided = report.when == "call" and report.failed and _facts(report).get("status") == "undecided"
    return ("failed", "U", "UNDECIDED") if undecided else None


def pytest_terminal_summary(terminalreporter: TerminalReporter) -> None:
    files: dict[str, list[Record]] = {}
    for key in ("passed", "failed"):
        for report in terminalreporter.stats.get(key, ()):
            if facts := _facts(report):
                files.setdefault(report.nodeid.partition("::")[0], []).append(facts)
    if not files:
        return
    terminalreporter.section("testifai")
    for name, listed in sorted(files.items()):
        terminalreporter.line(_file_line(name, listed))
        for warning in listed[0].get("warnings", ()):
            terminalreporter.line(f"{name}: warning: {warning}", yellow=True)
    for line in terminalreporter.config.stash.get(_WRITTEN, []):
        terminalreporter.line(line)


def _file_line(name: str, listed: list[Record]) -> str:
    counts = Counter(facts["status"] for facts in listed)
    stand = ", ".join(f"{counts[status]} {status}" for status in ("holds", "fails", "undecided") if counts[status])
    # Under pytest-xdist one process measures and the others find the result in the cache.
    spent, new = listed[0]["inferences"], max(facts["new"] for facts in listed)
    cost = f"{spent:,} inferences, {'none' if not new else 'all' if new == spent else f'{new:,}'} of them new"
    sharing = listed[0]["sharing"]
    shared = f", 95 % shared among {sharing} gates (testifai_correction = none: not)" if sharing > 1 else ""
    return f"{name}: {stand}; {cost}; bounds at {100 * listed[0]['confidence']:.4g} %{shared}"
