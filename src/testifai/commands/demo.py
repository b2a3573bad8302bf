"""`testifai demo`: the embedded example, end to end."""

from __future__ import annotations

from testifai.commands.common import Json, print_json


def demo(as_json: Json = False) -> None:
    """Run the embedded example: a LeNet-5 on digits, the first paper's twelve queries."""
    from testifai.commands import example
    from testifai.present import terminal
    from testifai.support.progress import bar

    with bar() as show:
        result = example.run(show)
    if as_json:
        print_json(result.as_dict())
        return
    out = terminal.console()
    example.show(out, result)
    out.print("\nNext: testifai init MODEL.onnx DATA.npz   writes a spec for your own model and data.", markup=False)
