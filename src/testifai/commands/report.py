"""`testifai report`: a run as a page, a Markdown comment and JUnit test cases."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, RunFile, Score, SpecOption, answer, check_file, read_spec, say
from testifai.errors import InputError

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

    Exit code 1 if a gate does not hold or the run is not finished.
    """
    import webbrowser

    from testifai.present import terminal
    from testifai.report.contents import gather, read_stored
    from testifai.report.junit import junit as as_junit
    from testifai.report.markdown import markdown as as_markdown
    from testifai.report.page import render
    from testifai.report.pdf import print_pdf, require_chromium
    from testifai.report.sweep_report import gather_sweeps
    from testifai.report.sweep_report import markdown as sweeps_as_markdown
    from testifai.report.sweep_report import render as render_sweeps
    from testifai.support.files import write_bytes
    from testifai.support.progress import note, status

    page = out or run_file.with_suffix(".html")
    named = {"--out": page, "--md": markdown, "--junit": junit, "--pdf": pdf}
    outputs = {option: path for option, path in named.items() if path is not None}
    # Before any work is done: one file for two outputs, or for the run, would lose something.
    taken = {run_file.resolve()}
    for option, path in outputs.items():
        check_file(option, path, *ENDINGS.get(option, ()))
        if path.resolve() in taken:
            raise InputError(f"{option}: {path.name!r} is named twice; give each file a name of its own")
        taken.add(path.resolve())
    if pdf is not None:
        require_chromium()
    if spec is not None:
        read_spec(spec)
    stored = read_stored(run_file)
    swept, contents = gather_sweeps(stored), None
    if swept is not None:
        if junit is not None:
            raise InputError(f"--junit: {run_file.name} holds sweeps only, which have no gates; leave it out")
        facts, texts = swept.as_dict(), {"--out": render_sweeps(swept), "--md": sweeps_as_markdown(swept)}
    else:
        with status():
            contents = gather(stored, spec=spec, examples=examples, score=score)
            note("drawing figures")
            texts = {"--out": render(contents), "--md": as_markdown(contents), "--junit": as_junit(contents)}
        facts = contents.as_dict()
    for option, path in outputs.items():
        if option == "--pdf":
            print_pdf(page, path)
        else:
            write_bytes(path, texts[option].encode())
    if contents is not None and contents.unfinished is not None:
        say(contents.unfinished, err=as_json)
    lines = [f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB)" for path in outputs.values()]
    answer(as_json, {**facts, "written": [str(path) for path in outputs.values()]}, *lines)
    if contents is not None:
        if contents.verdicts and not as_json:
            terminal.verdicts(terminal.console(), contents.verdicts)
        if not contents.requires_robustness and not as_json:
            say("no robustness requirement was set: no gate is about a perturbed condition")
        say(*(f"warning: {line}" for line in contents.changed), err=True)
        if contents.failures_note and examples and not as_json:
            say(f"note: failing inputs are not shown: {contents.failures_note}", err=True)
    if opened and not webbrowser.open(page.resolve().as_uri()):
        say(f"note: no browser could be opened; open {page} in one", err=True)
    if contents is not None and not contents.holds:
        raise typer.Exit(1)
