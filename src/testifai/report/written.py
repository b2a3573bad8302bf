"""A run file's report, written where others look for it."""

from __future__ import annotations

from pathlib import Path

from testifai.errors import InputError
from testifai.report.contents import gather
from testifai.report.markdown import markdown
from testifai.report.page import render
from testifai.support.files import write_bytes


def write_report(run_file: Path, folder: Path) -> Path:
    """Write a run's page and its Markdown into a folder, under the name of the run file; the page's path."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"cannot make {folder} ({error.strerror or error})") from error
    contents = gather(run_file)
    page = folder / f"{run_file.stem}.html"
    write_bytes(page, render(contents).encode())
    write_bytes(page.with_suffix(".md"), markdown(contents).encode())
    return page
