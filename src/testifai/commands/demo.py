"""`testifai demo`: the bundled example, end to end."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from testifai.commands.common import Json, print_json
from testifai.errors import InputError


def demo(
    out: Annotated[Path, typer.Option("--out", "-o", help="Folder for a spec, a run and its report.")] = Path(
        "testifai-demo"
    ),
    explore: Annotated[bool, typer.Option("--explore", help="Open the run in the browser afterwards.")] = False,
    as_json: Json = False,
) -> None:
    """Run the bundled example and write a report.

    A LeNet-5 on digits answers the first paper's twelve queries in three ways.
    """
    from testifai.commands import example
    from testifai.present import terminal
    from testifai.report.contents import gather, read_stored
    from testifai.report.page import render
    from testifai.support.files import write_bytes
    from testifai.support.progress import bar, status

    try:
        out.mkdir(parents=True, exist_ok=True)
        with bar() as show:
            result = example.run(out, show)
        path, page = out / example.RUN, out / example.PAGE
        with status():
            write_bytes(page, render(gather(read_stored(path))).encode())
    except OSError as error:
        raise InputError(f"--out: {out} cannot be written ({error.strerror}); name another folder") from None
    if as_json:
        print_json({**result.as_dict(), "run": str(path), "report": str(page)})
    else:
        console = terminal.console()
        example.show(console, result)
        for line in (
            f"\nThe report: {page}",
            f'Ask more:   testifai query {path} "zoom > 2 and blur <= 1"',
            f"Look at it: testifai explore {path} --open",
            "Your own:   testifai init MODEL.onnx DATA.npz -o mine.toml, then testifai check mine.toml, "
            "testifai run mine.toml",
        ):
            console.print(line, markup=False, soft_wrap=True)
    if explore:
        from testifai.commands.explore import explore as look

        look([path], browser=True)
