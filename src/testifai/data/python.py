"""A data set that the user's own code makes."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar

from testifai.data import wrap
from testifai.data.dataset import Data, DataPart
from testifai.errors import InputError
from testifai.support.user_code import ANY_FAULT, import_object


class PythonDataPart(DataPart):
    """Whatever `data.wrap` accepts, or a function that makes it."""

    python: str
    """Your data set, or a function that makes it, `package.module:name`."""

    CODE: ClassVar = ("python",)

    def load(self, folder: Path) -> Data:
        made = import_object(self.python, folder=folder, field="data.python")
        return wrap(self._call(made) if callable(made) else made)

    def _call(self, make: Callable[[], Any]) -> Any:
        try:
            return make()
        except InputError:
            raise
        except ANY_FAULT as error:
            reason = " ".join(str(error).split())[:200]
            raise InputError(f"data.python: {self.python!r}() failed: {type(error).__name__}: {reason}") from error
