"""`testifai report`: a run as a page, a Markdown comment and JUnit test cases."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from testifai.commands.common import Json, RunFile, Score, SpecOption, check_file, print_json, read_spec, say
from testifai.errors import InputError
from testifai.support.types import Record

if TYPE_CHECKING:
    from testifai.gates.verdicts import Verdict

ENDINGS = {"--out": (".html", ".htm"), "--pdf": (".pdf",)}


def report(
    run_file: RunFile,
    out: Annotated[Path | None, typer.Option("-o", "--out", help="Page to write [default: RUN.html].")] = None,
    markdown: Annotated[
        Path | None, typer.Option("--md", help="Write Markdown, for a comment on a pull request.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Write the gates as JUnit .xml, for CI.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Write a .pdf, printed by an installed Chromium.")] = None,
    examples: Annotated[int, typer.Option(min=0, max=12, help="Number of failing inputs to show of each test.")] = 6,
    spec: SpecOption = None,
    score: Score = None,
    opened: Annotated[bool, typer.Option("--open", help="Open the page in a browser.")] = False,
    as_json: Json = False,
) -> None:
    """Write an HTML, Markdown, JUnit or PDF report.

    Exit code 1 if a gate does not hold.
    """
    from testifai.report.contents import read_stored
    from testifai.report.pdf import require_chromium
    from testifai.report.sweep_report import gather_sweeps

    page = out or run_file.with_suffix(".html")
    outputs = {"--out": page, "--md": markdown, "--junit": junit, "--pdf": pdf}
    _check_names(run_file, outputs)
    if pdf is not None:
        require_chromium()
    if spec is not None:
        read_spec(spec)
    stored = read_stored(run_file)
    swept = gather_sweeps(stored)
    if swept is not None:
        if junit is not None:
            raise InputError(f"--junit: {run_file.name} holds sweeps only, which have no gates; leave it out")
        from testifai.report import sweep_report as sweeps

        written = _write(outputs, {"--out": sweeps.render(swept), "--md": sweeps.markdown(swept)})
        _say(written, swept.as_dict(), (), as_json=as_json)
        if opened:
            _open(page)
        return

    from testifai.report.contents import gather
    from testifai.report.junit import junit as as_junit
    from testifai.report.markdown import markdown as as_markdown
    from testifai.report.page import render
    from testifai.support.progress import note, status

    with status():
        contents = gather(stored, spec=spec, examples=examples, score=score)
        note("drawing figures")
        texts = {"--out": render(contents), "--md": as_markdown(contents), "--junit": as_junit(contents)}
    _say(_write(outputs, texts), contents.as_dict(), contents.verdicts, as_json=as_json)
    say(*(f"warning: {line}" for line in contents.changed), err=True)
    if contents.failures_note and examples and not as_json:
        say(f"note: failing inputs are not shown: {contents.failures_note}", err=True)
    if opened:
        _open(page)
    if not contents.holds:
        raise typer.Exit(1)


def _open(page: Path) -> None:
    """Open the page in a browser, if there is one."""
    import webbrowser

    if not webbrowser.open(page.resolve().as_uri()):
        say(f"note: no browser could be opened; open {page} in one", err=True)


def _write(outputs: dict[str, Path | None], texts: dict[str, str]) -> list[Path]:
    """Write every requested format; the PDF is printed from the page."""
    from testifai.report.pdf import print_pdf
    from testifai.support.files import write_bytes

    written = []
    for option, path in outputs.items():
        if path is None:
            continue
        if option == "--pdf":
            page = outputs["--out"]
            assert page is not None
            print_pdf(page, path)
        else:
            write_bytes(path, texts[option].encode())
        written.append(path)
    return written


def _say(written: list[Path], facts: Record, verdicts: Sequence[Verdict], *, as_json: bool) -> None:
    """Print where the files are and the verdict of each gate."""
    if as_json:
        print_json({**facts, "written": [str(path) for path in written]})
        return
    for path in written:
        say(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
    if verdicts:
        from testifai.present import terminal

        terminal.verdicts(terminal.console(), verdicts)


def _check_names(run_file: Path, given: dict[str, Path | None]) -> None:
    """Check names before any work is done: one file for two outputs, or for the run, would lose something."""
    taken = {run_file.resolve()}
    for option, path in given.items():
        if path is None:
            continue
        check_file(option, path, *ENDINGS.get(option, ()))
        if path.resolve() in taken:
            raise InputError(f"{option}: {path.name!r} is named twice; give each file a name of its own")
        taken.add(path.resolve())
