"""Where a section finds grids and data, and how much it repeats."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path


class MissingFileError(Exception):
    """Files that a part of a section cannot do without; the message names them."""


@dataclass(frozen=True)
class Setting:
    """Our own recorded grids, other people's data and models, and whether this is only to see that all of it runs."""

    grids: Path
    data: Path
    tiny: bool = False

    def times(self, count: int, least: int = 2) -> int:
        """So many repetitions; few where this is only to see that all of it runs."""
        return min(count, least) if self.tiny else count

    def grid(self, name: str) -> Path:
        """A file of `benchmarks/grids`; raises MissingFileError."""
        return self._there(self.grids / name, f"{name} (made by `make papers FULL=1`)")

    def file(self, name: str) -> Path:
        """A file below TESTIFAI_DATA; raises MissingFileError."""
        return self._there(self.data / name, f"{name} (below TESTIFAI_DATA)")

    @staticmethod
    def _there(path: Path, told: str) -> Path:
        if not path.exists():
            raise MissingFileError(told)
        return path
