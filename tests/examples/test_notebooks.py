"""The notebooks are the scripts, cell by cell."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
SCRIPTS = sorted(EXAMPLES.glob("*.py"))
NAMES = [script.stem for script in SCRIPTS]

SCRIPT = """\
# %% [markdown]
# # A title
#
# A line.

# %%
x = 1

y = 2  # %% is no mark here


# %%
print(x)
"""


def test_cells_are_text_and_code(notebooks):
    assert notebooks.cells(SCRIPT) == [
        ("markdown", "# A title\n\nA line."),
        ("code", "x = 1\n\ny = 2  # %% is no mark here"),
        ("code", "print(x)"),
    ]


def test_a_script_that_begins_otherwise_is_refused(notebooks):
    with pytest.raises(ValueError, match="begins with"):
        notebooks.cells("import os\n# %%\n")


def test_committed_notebooks_are_what_the_scripts_make(notebooks):
    assert notebooks.stale() == []


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_the_code_of_a_notebook_is_that_of_its_script(script):
    notebook = json.loads((EXAMPLES / "notebooks" / f"{script.stem}.ipynb").read_text(encoding="utf-8"))
    code = "\n".join("".join(cell["source"]) for cell in notebook["cells"] if cell["cell_type"] == "code")
    assert ast.dump(ast.parse(code)) == ast.dump(ast.parse(script.read_text(encoding="utf-8")))
    assert len({cell["id"] for cell in notebook["cells"]}) == len(notebook["cells"])
    assert not any(cell["outputs"] for cell in notebook["cells"] if cell["cell_type"] == "code")


@pytest.mark.parametrize("script", SCRIPTS, ids=NAMES)
def test_a_script_tells_a_story(script, notebooks):
    told = notebooks.cells(script.read_text(encoding="utf-8"))
    assert told[0][0] == "markdown"
    assert told[0][1].startswith("# ")
    assert any("next: " in source for kind, source in told if kind == "code"), "says what to do next"


def test_the_readme_lists_every_example():
    listed = (EXAMPLES / "README.md").read_text(encoding="utf-8")
    assert [name for name in NAMES if f"({name}.py)" not in listed] == []
    assert len(NAMES) == 10
