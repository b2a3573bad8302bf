"""Make the notebooks from the scripts: cells begin at lines `# %%`, text cells at `# %% [markdown]`.

python examples/tools/notebooks.py            writes examples/notebooks/*.ipynb
python examples/tools/notebooks.py --check    says which are not what the scripts make; exit code 1 if any

Notebooks are committed without outputs: these would depend on the machine and the versions of libraries, and nobody
would notice when they no longer hold.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

EXAMPLES = Path(__file__).resolve().parents[1]
MARK, TEXT = "# %%", "# %% [markdown]"


def cells(script: str) -> list[tuple[str, str]]:
    """(kind, source) of each cell of a script; the source of text is without its comment signs."""
    found: list[tuple[str, list[str]]] = []
    for line in script.splitlines():
        if line.startswith(MARK):
            found.append(("markdown" if line == TEXT else "code", []))
        elif found:
            found[-1][1].append(line)
        elif line:
            raise ValueError(f"a script begins with {MARK!r}, got {line!r}")
    return [(kind, _source(kind, lines)) for kind, lines in found]


def _source(kind: str, lines: list[str]) -> str:
    if kind == "markdown":
        lines = [line.removeprefix("#").removeprefix(" ") for line in lines]
    return "\n".join(lines).strip("\n")


def notebook(script: str) -> str:
    """A script as a notebook: nbformat 4.5, without outputs, the same text each time."""
    made = [
        {
            "cell_type": kind,
            **({"execution_count": None} if kind == "code" else {}),
            "id": f"cell-{number}",
            "metadata": {},
            **({"outputs": []} if kind == "code" else {}),
            "source": source.splitlines(keepends=True),
        }
        for number, (kind, source) in enumerate(cells(script), start=1)
    ]
    about = {
        "kernelspec": {"display_name": "Python 3", "language": "python", "name": "python3"},
        "language_info": {"name": "python"},
    }
    whole = {"cells": made, "metadata": about, "nbformat": 4, "nbformat_minor": 5}
    return json.dumps(whole, indent=1, ensure_ascii=False) + "\n"


def wanted() -> dict[Path, str]:
    """Every notebook there should be, and what should be in it."""
    return {
        EXAMPLES / "notebooks" / f"{script.stem}.ipynb": notebook(script.read_text(encoding="utf-8"))
        for script in sorted(EXAMPLES.glob("*.py"))
    }


def stale() -> list[str]:
    """The names of notebooks that are missing, out of date, or of no script."""
    folder, made = EXAMPLES / "notebooks", wanted()
    differ = [path for path, text in made.items() if not path.is_file() or path.read_text(encoding="utf-8") != text]
    return sorted(path.name for path in [*differ, *(set(folder.glob("*.ipynb")) - made.keys())])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing")
    if parser.parse_args().check:
        found = stale()
        sys.exit(f"python examples/tools/notebooks.py makes anew: {', '.join(found)}" if found else 0)
    for path, text in wanted().items():
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    main()
