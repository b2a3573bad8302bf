"""What a spec says of a data set."""

from __future__ import annotations

from abc import abstractmethod
from pathlib import Path

from testifai.data.arrays import Data
from testifai.support.fields import Part


class DataPart(Part):
    """What a spec says of a data set of some kind; each reader has its own."""

    @abstractmethod
    def load(self, folder: Path) -> Data:
        """The data themselves; files and modules are looked for in the folder first."""
