"""Pages made of files outside of docs/, and links to such files."""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

# Files that become pages, by where they are in the repository.
DOCUMENTS = {
    "CHANGELOG.md": "changelog.md",
    "CONTRIBUTING.md": "contributing.md",
    "SECURITY.md": "security.md",
    "examples/README.md": "examples/index.md",
}
EXAMPLES = "examples"
NAMES = {"ci": "CI", "face": "Face", "onnx": "ONNX", "pytorch": "PyTorch", "sklearn": "scikit-learn"}
LANGUAGES = {
    ".py": "python", ".toml": "toml", ".yml": "yaml", ".yaml": "yaml", ".ini": "ini", ".txt": "text", ".sh": "bash",
}  # fmt: skip
# Blocks of code, links, and code within a line: what begins first is looked at, and code is left alone.
PIECES = re.compile(
    r"^ *(?P<fence>```+).*?^ *(?P=fence) *$|(?<!!)\[(?P<text>[^\]\[]*)\]\((?P<target>[^)\s]+)\)|`[^`\n]+`",
    re.MULTILINE | re.DOTALL,
)


def pages(root: Path) -> dict[str, str]:
    """The pages by where they are on the site, as Markdown whose links start at the repository's root."""
    documents = {place: (root / file).read_text(encoding="utf-8") for file, place in DOCUMENTS.items()}
    made = {f"{EXAMPLES}/{name}.md": text for name, text in _examples(root / EXAMPLES).items()}
    return documents | made


def source(place: str) -> str:
    """The file that a page of the site is made of, or that a reader would look for it in."""
    return next((file for file, page in DOCUMENTS.items() if page == place), f"docs/{place}")


def relinked(text: str, place: str, root: Path) -> str:
    """A page's Markdown with links to files outside of docs/ turned to where they are on the site.

    A link to what the site does not have becomes the name of the file.
    """
    return PIECES.sub(lambda piece: piece[0] if piece["target"] is None else _turned(piece, place, root), text)


def _turned(link: re.Match[str], place: str, root: Path) -> str:
    path, _, anchor = link["target"].partition("#")
    if "://" in path or not path or path.startswith("mailto:"):
        return link[0]
    file = posixpath.normpath(posixpath.join(posixpath.dirname(source(place)), path))
    if file.startswith("docs/") and source(place).startswith("docs/"):
        return link[0]
    found = _on_site(file, root)
    if found is None:
        return f"`{file}`" if link["text"].strip("`") == file else f"{link['text']} (`{file}`)"
    where, _, within = found.partition("#")
    relative = posixpath.relpath(where, posixpath.dirname(place) or ".")
    fragment = within or anchor
    return f"[{link['text']}]({relative}{'#' + fragment if fragment else ''})"


def _on_site(file: str, root: Path) -> str | None:
    """Where the site has a file of the repository; None where it has not."""
    if file in DOCUMENTS:
        return DOCUMENTS[file]
    if file.startswith("docs/"):
        return file.removeprefix("docs/")
    if file == EXAMPLES:
        return f"{EXAMPLES}/index.md"
    if not file.startswith(f"{EXAMPLES}/") or not _files(root / file):
        return None
    name, *inside = file.split("/")[1:]
    page = f"{EXAMPLES}/{Path(name).stem}.md"
    return f"{page}#{anchor('/'.join(inside))}" if inside else page


def anchor(name: str) -> str:
    """Where on the page of its folder a file is.

    >>> anchor("output.txt")
    'output-txt'
    """
    return re.sub(r"\W+", "-", name).strip("-").lower()


def _examples(folder: Path) -> dict[str, str]:
    """One page for each script and for each folder."""
    found = [one for one in sorted(folder.iterdir()) if one.is_dir() or one.suffix == ".py"]
    return {one.stem: _folder(one) if one.is_dir() else _script(one) for one in found if _files(one)}


def title(name: str) -> str:
    """What an example is called.

    >>> title("draw_heatmaps")
    'Draw heatmaps'
    """
    words = " ".join(NAMES.get(word, word) for word in re.split("[_-]", name))
    return words[:1].upper() + words[1:]


def _files(place: Path) -> list[Path]:
    inside = sorted(place.rglob("*")) if place.is_dir() else [place]
    return [file for file in inside if file.suffix in LANGUAGES and file.is_file() and "__pycache__" not in file.parts]


def _script(file: Path) -> str:
    return f"# {title(file.stem)}\n\n{_code(file, file.name)}"


def _folder(folder: Path) -> str:
    parts = [f"# {title(folder.name)}\n"]
    for file in _files(folder):
        name = file.relative_to(folder).as_posix()
        parts.append(f"## {name} {{ #{anchor(name)} }}\n\n{_code(file, f'{EXAMPLES}/{folder.name}/{name}')}")
    return "\n".join(parts)


def _code(file: Path, name: str) -> str:
    return f'````{LANGUAGES[file.suffix]} title="{name}"\n{file.read_text(encoding="utf-8").rstrip()}\n````\n'
