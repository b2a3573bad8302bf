"""What the site is made of besides the pages in docs/: called by mkdocs while it builds."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import cli_page
import formulas
import names_pages
import outside_pages
import spec_page
from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files
from mkdocs.structure.pages import Page

REFERENCE = "reference"
CELLS = re.compile(r"<t[dh][ >].*?</t[dh]>", re.DOTALL)


def on_config(config: MkDocsConfig) -> MkDocsConfig:
    """Put the generated pages into the sections of the navigation that wait for them."""
    generated = {"Reference": _reference_nav(), "Examples": _examples_nav(_root(config))}
    sections: dict[str, Any] = {title: inside for section in config.nav for title, inside in section.items()}
    config.nav = [{title: generated.get(title, inside)} for title, inside in sections.items()]
    return config


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """Add the generated pages."""
    root = _root(config)
    made = outside_pages.pages(root)
    made |= {f"{REFERENCE}/{name}.md": text for name, text in names_pages.pages(Path(config.docs_dir)).items()}
    made[f"{REFERENCE}/cli.md"] = cli_page.page()
    made[f"{REFERENCE}/spec.md"] = spec_page.page()
    made[f"{REFERENCE}/{spec_page.FILE}"] = spec_page.schema_text()
    for place, text in made.items():
        files.append(File.generated(config, place, content=text))
    return files


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Turn links to files of the repository to their pages."""
    return outside_pages.relinked(markdown, page.file.src_uri, _root(config))


def on_page_content(html: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Show formulas, and bars in the code of tables, which have to be written with a backslash there."""
    try:
        shown = formulas.with_formulas(html)
    except ValueError as error:
        raise PluginError(f"{page.file.src_uri}: {error}") from None
    return CELLS.sub(lambda cell: cell[0].replace("\\|", "|"), shown)


def _root(config: MkDocsConfig) -> Path:
    return Path(config.docs_dir).parent


def _reference_nav() -> list[dict[str, Any]]:
    names = [{title: f"{REFERENCE}/{name}.md"} for name, title in names_pages.titles().items()]
    first = [
        {"Overview": f"{REFERENCE}/index.md"},
        {"Command line": f"{REFERENCE}/cli.md"},
        {"Spec": f"{REFERENCE}/spec.md"},
    ]
    return [*first, *names]


def _examples_nav(root: Path) -> list[str]:
    return [place for place in outside_pages.pages(root) if place.startswith(f"{outside_pages.EXAMPLES}/")]
