"""A data set that the user's own code makes."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from testifai.data import wrap
from testifai.data.arrays import Data
from testifai.data.base import DataPart
from testifai.errors import InputError
from testifai.support.own_code import import_object


class PythonDataPart(DataPart):
    """Whatever `data.wrap` accepts, or a function that makes it."""

    python: str

    CODE: ClassVar = ("python",)

    def load(self, folder: Path) -> Data:
        made = import_object(self.python, folder=folder, field="data.python")
        if callable(made):
            try:
                made = made()
            except InputError:
                raise
            except Exception as error:
                raise InputError(f"data.python: {self.python} raised {type(error).__name__}: {error}") from error
        return wrap(made)
