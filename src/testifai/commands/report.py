"""`testifai report`: a run as one page for people, a comment for reviewers, and test cases for machines."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, RunFile, print_json
from testifai.errors import InputError

ENDINGS = {"--out": (".html", ".htm"), "--pdf": (".pdf",)}


def report(
    run_file: RunFile,
    out: Annotated[
        Path | None, typer.Option("-o", "--out", help="The page, one .html file; default: the run's name.html.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option("--md", help="Also as Markdown, for a comment on a pull request.")
    ] = None,
    junit: Annotated[Path | None, typer.Option(help="Also the gates as JUnit .xml, for CI.")] = None,
    pdf: Annotated[Path | None, typer.Option(help="Also as .pdf, printed by an installed Chromium.")] = None,
    examples: Annotated[int, typer.Option(min=0, max=12, help="Failing inputs to show of each test; 0: none.")] = 6,
    spec: Annotated[Path | None, typer.Option(help="The spec, if it was moved since or runs code of yours.")] = None,
    as_json: Json = False,
) -> None:
    """Write a run as one self-contained page; also as Markdown, JUnit XML and PDF."""
    from testifai.export import write_bytes
    from testifai.report.contents import gather
    from testifai.report.pdf import print_pdf, require_chromium

    page = out or run_file.with_suffix(".html")
    _check_names(run_file, {"--out": page, "--md": markdown, "--junit": junit, "--pdf": pdf})
    if pdf is not None:
        require_chromium()
    if spec is not None:
        from testifai.commands.common import say_code
        from testifai.spec import read

        say_code(read(spec))
    contents = gather(run_file, spec=spec, examples=examples)

    from testifai.report.page import render

    write_bytes(page, render(contents).encode())
    if markdown is not None:
        from testifai.report.markdown import markdown as as_markdown

        write_bytes(markdown, as_markdown(contents).encode())
    if junit is not None:
        from testifai.report.junit import junit as as_junit

        write_bytes(junit, as_junit(contents).encode())
    if pdf is not None:
        print_pdf(page, pdf)
    written = [path for path in (page, markdown, junit, pdf) if path is not None]
    if as_json:
        print_json({**contents.as_dict(), "written": [str(path) for path in written]})
        return
    for path in written:
        typer.echo(f"Wrote {path} ({path.stat().st_size / 1e6:.1f} MB)")
    if contents.failures_note and examples:
        typer.echo(f"note: failing inputs are not shown: {contents.failures_note}", err=True)


def _check_names(run_file: Path, given: dict[str, Path | None]) -> None:
    """Before any work is done: two outputs in one file, or one in place of the run, would lose something."""
    taken = {run_file.resolve()}
    for option, path in given.items():
        if path is None:
            continue
        if option in ENDINGS and path.suffix.lower() not in ENDINGS[option]:
            raise InputError(f"{option}: {path.name!r} must end in {' or '.join(ENDINGS[option])}")
        if not path.parent.is_dir():
            raise InputError(f"{option}: the folder {path.parent} does not exist")
        if path.resolve() in taken:
            raise InputError(f"{option}: {path.name!r} is named twice; give each file a name of its own")
        taken.add(path.resolve())
