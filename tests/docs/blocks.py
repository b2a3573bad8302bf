"""Reads a page of the documentation: its blocks and commands, and the visible reasons of those that are not run.

What a page may say, besides Markdown:

- A `python` block runs, all of a page in one namespace. A `bash` block is a command a line; a backslash continues one,
  and `# exit code 1` at its end says that it ends so. A `toml` block is a spec or a part of one.
- `title="NAME"` after the language: the block is written to that file instead.
- `text`, `console` and `json` blocks are what was printed, and no code.
- `*Not run by the tests: REASON.*` before a block; `*Not run by the tests (this section): REASON.*` under a heading,
  for all blocks until the next heading of its rank.
- `*Run by the tests where NAME is installed.*` before a block: a package or a program.
- `<!-- needs: model photos -->`: files of the reader's that the page names from there on, by functions in material*.py.
- `<!-- slow -->`: the page takes long, as every page with a command does.

Commands in sentences (`testifai show`) name what there is: commands, options, files and targets of make (mentions.py).
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

ROOT = Path(__file__).parents[2]
RUN = {"python", "bash", "toml"}
WRITTEN = {"yaml", "ini", "csv", "json"}  # with a title: files that the commands of a page read
OUTPUT = {"text", "console", "json", "mermaid"}
QUICK = 0  # commands of a page: each takes seconds, on inputs of its own

FENCE = re.compile(r"( *)(`{3,}|~{3,})(.*)")
TITLE = re.compile(r'title="([^"]+)"')
HEADING = re.compile(r"(#{1,6}) ")
NOT_RUN = re.compile(r"\*Not run by the tests( \(this section\))?: (.+?)\.?\*")
WHERE = re.compile(r"\*Run by the tests where `?([\w-]+)`? is installed\.\*")
NEEDS = re.compile(r"<!-- needs: (.+?) -->")
CONTAINER = re.compile(r"([-*+]|\d+[.)]|!!!|\?\?\?\+?|===) ")  # an indented line after it belongs to it
EXIT_CODE = re.compile(r"# exit code (\d+)")
MENTION = re.compile(r"(?<!`)`((?:testifai|python|make|pip install)\s(?!=)[^`]+)`")


@dataclass(frozen=True)
class Step:
    """One thing that a page tells its reader to do, at a line of the page."""

    line: int
    kind: str  # python, command, spec, file, material, mention
    text: str
    file: str | None = None  # where a block with a title goes
    reason: str | None = None  # why it is not run
    where: str | None = None  # the package or program without which it is not run

    @property
    def exit_code(self) -> int:
        """What a command is to end with."""
        said = EXIT_CODE.search(self.text)
        return int(said.group(1)) if said else 0


@dataclass(frozen=True)
class Page:
    """What the tests know of a page."""

    path: Path
    steps: tuple[Step, ...]
    marked_slow: bool
    mentions: tuple[Step, ...]  # commands in sentences; the reason is that of their section
    problems: tuple[str, ...]  # what no test could make sense of

    @property
    def name(self) -> str:
        """Its path from the root of the repository."""
        return str(self.path.relative_to(ROOT)) if self.path.is_relative_to(ROOT) else self.path.name

    @property
    def slow(self) -> bool:
        """Whether its test is among the slow ones."""
        commands = [step for step in self.steps if step.kind == "command" and step.reason is None]
        return self.marked_slow or len(commands) > QUICK


@dataclass
class _Reasons:
    """The last reason that was stated: one before a block, and those of the sections around it."""

    pending: dict[str, str] = field(default_factory=dict)
    sections: list[tuple[int, str]] = field(default_factory=list)
    rank: int = 0

    def heading(self, rank: int) -> None:
        self.rank = rank
        self.sections = [kept for kept in self.sections if kept[0] < rank]

    def prose(self, line: str) -> None:
        self.pending = {}
        if said := NOT_RUN.fullmatch(line.strip()):
            if said.group(1):
                self.sections.append((self.rank, said.group(2)))
            else:
                self.pending = {"reason": said.group(2)}
        elif said := WHERE.fullmatch(line.strip()):
            self.pending = {"where": said.group(1)}

    @property
    def section(self) -> str | None:
        return self.sections[-1][1] if self.sections else None

    def take(self) -> dict[str, str]:
        """What holds for the block that begins here."""
        taken, self.pending = self.pending, {}
        if not taken and self.section:
            taken = {"reason": self.section}
        return taken


def pages() -> list[Path]:
    """README.md and all pages of the documentation."""
    return [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]


def read(path: Path) -> Page:
    """All steps of a page, in its order."""
    text = path.read_text(encoding="utf-8")
    steps: list[Step] = []
    problems: list[str] = []
    prose: list[tuple[str, str | None]] = []
    for line, language, title, block, held in _blocks(text.splitlines(), prose):
        found = _steps(line, language, title, block, held)
        if found is None:
            problems.append(
                f"line {line}: a block with the language {language!r}; use python, bash, toml, "
                f'or text and console for what is printed (files: title="NAME")'
            )
        else:
            steps += found
    return Page(path, tuple(steps), "<!-- slow -->" in text, tuple(_mentions(prose)), tuple(problems))


Block = tuple[int, str, str | None, str, dict[str, str]]


def _blocks(lines: list[str], prose: list[tuple[str, str | None]]) -> Iterator[Block]:
    """(line of its first line, language, title, text, reasons) of every block; also those by indentation, and needs.

    All other lines are left in `prose`, with the reason of their section.
    """
    reasons = _Reasons()
    container = False  # whether what is indented belongs to a list or a note
    before = ""
    rest = iter(enumerate(lines, start=1))
    for number, line in rest:
        if fence := FENCE.fullmatch(line):
            indent, marks, info = fence.groups()
            block = list(_until(marks, rest))
            prose += [("", None)] * (len(block) + 2)
            text = "\n".join(one.removeprefix(indent) for one in block)
            language, _, attributes = info.strip().partition(" ")
            title = TITLE.search(attributes)
            yield number + 1, language, title.group(1) if title else None, text, reasons.take()
            continue
        if line.startswith("    ") and not before and not container and line.strip():
            yield number, "by indentation", None, line, reasons.take()
        elif heading := HEADING.match(line):
            reasons.heading(len(heading.group(1)))
        elif needs := NEEDS.fullmatch(line.strip()):
            yield number, "needs", None, needs.group(1), {}
        elif line.strip():
            reasons.prose(line)
        prose.append((line, reasons.section))
        if line.strip() and not line.startswith(" "):
            container = bool(CONTAINER.match(line))
        before = line.strip()


def _mentions(prose: list[tuple[str, str | None]]) -> Iterator[Step]:
    text = "\n".join(line for line, _ in prose)
    for found in MENTION.finditer(text):
        line = text.count("\n", 0, found.start())
        yield Step(line + 1, "mention", " ".join(found.group(1).split()), reason=prose[line][1])


def _until(marks: str, rest: Iterable[tuple[int, str]]) -> Iterator[str]:
    for _, line in rest:
        if line.strip().startswith(marks) and not line.strip().strip(marks[0]):
            return
        yield line


def _steps(line: int, language: str, title: str | None, text: str, held: dict[str, str]) -> list[Step] | None:
    """What a block asks for; None where its language says nothing to the tests."""
    if title and language in RUN | WRITTEN | OUTPUT:
        return [Step(line, "file", text, title, **held)]
    if language == "python":
        return [Step(line, "python", text, **held)]
    if language == "bash":
        return [Step(at, "command", command, **held) for at, command in _commands(line, text)]
    if language == "needs":
        return [Step(line, "material", name) for name in text.split()]
    if language == "toml":
        return [Step(line, "spec", text, **held)]
    if language in OUTPUT:
        return []
    if held:
        return [Step(line, "file", text, **held)]
    return None


def _commands(line: int, text: str) -> Iterator[tuple[int, str]]:
    """(line, command) of a block of commands."""
    parts: list[str] = []
    for number, part in enumerate(text.splitlines(), start=line):
        if not parts and (not part.strip() or part.lstrip().startswith("#")):
            continue
        parts.append(part)
        if not part.endswith("\\"):
            yield number - len(parts) + 1, "\n".join(parts)
            parts = []
    if parts:
        yield line, "\n".join(parts)
