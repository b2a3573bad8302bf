"""`testifai label`: what `testifai select` chose, labelled in the browser."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Annotated

import typer

from testifai.commands import completion
from testifai.commands.common import say
from testifai.commands.serving import HostOption, OpenOption, PortOption, address_of, serve
from testifai.support.optional_imports import load

PORT = 8051


def label(
    file: Annotated[
        Path,
        typer.Argument(
            help="A file to fill in, made by testifai select.",
            metavar="FILE.csv",
            autocompletion=completion.files(".csv"),
        ),
    ],
    show_prediction: Annotated[
        bool, typer.Option("--show-prediction", help="Show what the model says; people then tend to agree with it.")
    ] = False,
    show_path: Annotated[
        bool, typer.Option("--show-path", help="Show where an input is; a folder's name often is the answer.")
    ] = False,
    host: HostOption = "127.0.0.1",
    port: PortOption = PORT,
    browser: OpenOption = False,
    selection: Annotated[
        Path | None, typer.Option(help="What select kept (.selection.npz), if it is not beside the file.")
    ] = None,
) -> None:
    """Label inputs one after the other in the browser, by keys; every answer is in the file at once. Ctrl-C ends it."""
    if find_spec("flask") is None:
        load("flask", extra="app")  # which says how to get it
    from testifai.operational.input_previews import KeptInputs
    from testifai.operational.label_file import Filling
    from testifai.operational.rounds import selection_for
    from testifai.runs.lock import Lock

    chosen = selection_for(file, selection)
    lock = Lock(file, "file", "copy the file to a folder of yours")
    try:
        from testifai.app.labelling import Labelling, build
        from testifai.app.server import is_loopback, listen, new_token

        labelling = Labelling(
            Filling(file, chosen.classes), KeptInputs(file, chosen.tag),
            show_prediction=show_prediction, show_path=show_path,
        )  # fmt: skip
        token = new_token()
        server = listen(build(labelling, token), host, port)
        note = None if is_loopback(host) else "other machines can reach this; whoever has the address can label"
        serve(
            server, f"Labelling {file} ({labelling.labelled} of {labelling.rows} done)",
            address_of(host, server.port, token), note=note, browser=browser,
        )  # fmt: skip
    finally:
        lock.release()
    following = "estimate" if labelling.labelled == labelling.rows else "label"
    say(f"{labelling.labelled} of {labelling.rows} labelled. Next: testifai {following} {file}")
