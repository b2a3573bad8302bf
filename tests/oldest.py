"""Print the lower bound of every core dependency as a constraint: `name>=1.2` becomes `name==1.2`."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def oldest(dependencies: list[str]) -> list[str]:
    """The constraints; a dependency without a lower bound has no oldest version and is refused."""
    found = [re.fullmatch(r"([\w.-]+)>=([\w.]+)", one) for one in dependencies]
    without = [one for one, match in zip(dependencies, found, strict=True) if match is None]
    if without:
        raise SystemExit(f"pyproject.toml: no plain lower bound: {', '.join(without)}")
    return [f"{match[1]}=={match[2]}" for match in found if match is not None]


if __name__ == "__main__":
    print("\n".join(oldest(tomllib.loads(PROJECT.read_text(encoding="utf-8"))["project"]["dependencies"])))
