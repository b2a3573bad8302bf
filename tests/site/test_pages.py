"""The generated pages: every command, every public name, every field of a spec has its place."""

from __future__ import annotations

import doctest
import re

import check_site
import cli_page
import names_pages
import outside_pages
import pytest
import spec_page

import testifai as ta
from testifai.spec.json_schema import tables


def test_every_command_and_option_is_on_the_page():
    page = cli_page.page()
    commands = cli_page.commands()
    assert {"run", "init", "list spec"} <= set(commands)
    for option in cli_page.program().params:
        assert all(f"`{written}`" in page.partition("\n## ")[0] for written in option.opts), option.name
    for name, command in commands.items():
        assert page.count(f"{{ #{cli_page.anchor(name)} }}") == 1, name
        section = page.partition(f"{{ #{cli_page.anchor(name)} }}")[2].partition("\n### ")[0]
        for parameter in command.params:
            if getattr(parameter, "hidden", False):
                continue
            for written in parameter.opts if parameter.param_type_name == "option" else ():
                assert f"`{written}`" in section, f"{name} {written}"
            assert " ".join((parameter.help or "").split()).replace("|", "\\|") in section, f"{name} {parameter.name}"


def test_every_public_name_has_a_place():
    assert set(ta.__all__) <= names_pages.shown()


def test_every_public_name_is_in_the_overview_and_on_its_page(root):
    pages = names_pages.pages(root / "docs")
    for name in ta.__all__:
        assert f"[`{name}`](" in pages["index"], name
    listed = "\n".join(pages.values())
    for group in names_pages.GROUPS.values():
        for name in group.names:
            assert f"::: testifai.{name}\n" in listed
        for name in names_pages.members(group.module) if group.module else ():
            assert re.search(rf"^::: testifai\.[\w.]*{name}$", listed, re.MULTILINE), name


def test_names_from_inside_that_a_page_uses_are_shown(tmp_path):
    (tmp_path / "page.md").write_text("```python\nfrom testifai.perturb.text import edits\n```\n")
    assert "::: testifai.perturb.text.edits" in names_pages.pages(tmp_path)["more"]


def test_every_field_of_a_spec_is_on_the_page():
    page = spec_page.page()
    for table in tables():
        for field in table.fields:
            assert re.search(rf"^\| `{field.name}` \| .+ \| .* \| .+ \|$", page, re.MULTILINE), f"{table.name} {field}"


@pytest.mark.parametrize(
    ("place", "written", "expected"),
    [
        ("gates.md", "[it](../SECURITY.md#promises)", "[it](security.md#promises)"),
        ("how-to/ci-gate.md", "[it](../../SECURITY.md)", "[it](../security.md)"),
        ("gates.md", "[it](../examples/gates)", "[it](examples/gates.md)"),
        ("gates.md", "[`out`](../examples/gates/output.txt)", "[`out`](examples/gates.md#output-txt)"),
        ("gates.md", "[one](guide.md#data) `[x](../SECURITY.md)`", "[one](guide.md#data) `[x](../SECURITY.md)`"),
        ("gates.md", "```\n[x](../SECURITY.md)\n```", "```\n[x](../SECURITY.md)\n```"),
        ("gates.md", "[all](../examples)", "[all](examples/index.md)"),
        ("examples/index.md", "[it](gates/output.txt)", "[it](gates.md#output-txt)"),
        ("examples/index.md", "[other](notebooks/no.ipynb)", "other (`examples/notebooks/no.ipynb`)"),
        ("gates.md", "[`grids`](../benchmarks/grids/README.md)", "`grids` (`benchmarks/grids/README.md`)"),
        ("changelog.md", "[scale](docs/scale.md#x) [s](SECURITY.md)", "[scale](scale.md#x) [s](security.md)"),
        ("changelog.md", "[NOTICE](NOTICE)", "`NOTICE`"),
        ("gates.md", "[x](https://example.org/a) ![p](../docs/images/a.png)", None),
    ],
)
def test_links_to_files_of_the_repository_lead_to_their_pages(root, place, written, expected):
    assert outside_pages.relinked(written, place, root) == (written if expected is None else expected)


def test_examples_and_documents_are_pages(root):
    pages = outside_pages.pages(root)
    assert {"security.md", "contributing.md", "changelog.md", "examples/index.md", "examples/gates.md"} <= set(pages)
    assert '"examples/gates/digits.testifai.toml"' in pages["examples/gates.md"]


@pytest.mark.parametrize("module", [check_site, outside_pages], ids=lambda module: module.__name__)
def test_examples_in_docstrings(module):
    assert doctest.testmod(module).failed == 0
