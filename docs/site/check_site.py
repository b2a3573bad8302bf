"""Checks of the built site: it loads nothing from elsewhere, no link leads nowhere, it can be searched as a file."""

from __future__ import annotations

import importlib.util
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import suppress
from html.parser import HTMLParser
from pathlib import Path
from urllib.parse import unquote, urlsplit

# What a browser loads by itself; an <a> is followed only by a person.
LOADING = {(tag, "src") for tag in ("script", "img", "iframe", "source", "video", "audio", "embed")}
LOADING |= {("link", "href"), ("object", "data")}
IN_STYLES = re.compile(r"""(?:url\(\s*|@import\s+)['"]?((?:https?:)?//[^'")\s]+)""")
# Scripts of the theme that may fetch from elsewhere do so for parts of a page that ours must not have.
FETCHING = re.compile(r'class="[^"]*\bmermaid\b|data-md-component="source"|class="[^"]*\bjs-asciinema')
QUESTION = "severity"


class _Read(HTMLParser):
    """What a page loads, where it links to, and which places it has."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.loads: list[str] = []
        self.links: list[str] = []
        self.places: set[str] = set()
        self.feed(text)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        for name, value in attrs:
            if (tag, name) in LOADING:
                self.loads.append(value or "")
            elif (tag, name) == ("a", "href"):
                self.links.append(value or "")
            elif name == "id" or (tag, name) == ("a", "name"):
                self.places.add(value or "")


def problems(site: Path) -> Iterator[str]:
    """What is wrong with a built site, a line each."""
    pages = {file: _Read(file.read_text(encoding="utf-8")) for file in sorted(site.rglob("*.html"))}
    if not pages:
        yield f"{site}: no pages; is it built?"
    for file, page in pages.items():
        name = file.relative_to(site)
        yield from (f"{name}: loads {address}" for address in page.loads if is_elsewhere(address))
        if FETCHING.search(file.read_text(encoding="utf-8")):
            yield f"{name}: has a part for which the theme fetches a script from elsewhere"
        if name.name != "404.html":  # its links start at the address of the site
            yield from (f"{name}: {link} leads nowhere" for link in page.links if _is_broken(link, file, pages))
    for file in sorted(site.rglob("*.css")):
        for address in IN_STYLES.findall(file.read_text(encoding="utf-8")):
            yield f"{file.relative_to(site)}: loads {address}"


def is_elsewhere(address: str) -> bool:
    """Whether something is loaded from a host.

    >>> is_elsewhere("//fonts.example/a.woff"), is_elsewhere("../assets/a.css"), is_elsewhere("data:image/png;base64,")
    (True, False, False)
    """
    parts = urlsplit(address)
    return bool(parts.netloc) or parts.scheme not in ("", "data")


def _is_broken(link: str, file: Path, pages: dict[Path, _Read]) -> bool:
    parts = urlsplit(link)
    if parts.scheme or parts.netloc:
        return False
    target = (file.parent / unquote(parts.path)).resolve() if parts.path else file
    if target.is_dir():
        target = target / "index.html"
    if not target.exists():
        return True
    return bool(parts.fragment) and target in pages and unquote(parts.fragment) not in pages[target].places


def searched(site: Path) -> str | None:
    """What a search finds in the site opened from a file by a browser; None where there is no browser to try it."""
    chromium = shutil.which("chromium")
    if chromium is None or importlib.util.find_spec("playwright") is None:
        return None
    from playwright.sync_api import Error, sync_playwright

    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        page = browser.new_page()
        asked: list[str] = []
        page.on("request", lambda request: asked.append(request.url))
        page.goto((site / "index.html").resolve().as_uri())
        for patience in (20_000, 60_000, 120_000):  # what is typed while the page is still being made may be lost
            page.fill(".md-search__input", "")
            page.locator(".md-search__input").press_sequentially(QUESTION)
            with suppress(Error):
                page.wait_for_selector(".md-search-result__item h1", timeout=patience)
                break
        found = ", ".join(page.locator(".md-search-result__item h1").all_inner_texts())
        browser.close()
    if not found:
        raise SystemExit(f"opened from a file, a search for {QUESTION!r} finds nothing")
    outside = [address for address in asked if address.startswith("http")]
    if outside:
        raise SystemExit(f"the browser asked for {', '.join(outside)}")
    return found


def main(site: Path) -> int:
    """Print what is wrong, or what there is."""
    site = site.resolve()
    found = list(problems(site))
    print("\n".join(found), end="\n" if found else "")
    if found:
        return 1
    pages = len(list(site.rglob("*.html")))
    size = sum(file.stat().st_size for file in site.rglob("*") if file.is_file())
    print(
        f"{pages} pages, {size / 1e6:.1f} MB in {site.name}/: nothing comes from elsewhere, every link leads somewhere"
    )
    answer = searched(site)
    if answer is None:
        print("The search was not tried: it needs Chromium and playwright")
    else:
        print(f"Opened from a file, a search for {QUESTION!r} finds: {answer}")
    return 0


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
