"""scikit-learn's estimators in files of skops, which hold no code."""

from __future__ import annotations

import hashlib
import zipfile
from pathlib import Path
from typing import Any, ClassVar

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart
from testifai.models.sklearn import SklearnModel
from testifai.support import libraries
from testifai.support.fields import Count, File


class SkopsModel(SklearnModel):
    """An estimator out of a file, which tells it: what is loaded anew need not hash alike."""

    def __init__(self, estimator: Any, path: Path, batch_size: int | None = None) -> None:
        super().__init__(estimator, batch_size=batch_size)
        self._content = hashlib.sha1(Path(path).read_bytes()).hexdigest()

    @property
    def fingerprint(self) -> str:
        return self._content


class SkopsPart(ModelPart):
    """A .skops file; `trusted` are types to load besides those that skops trusts by itself."""

    skops: File
    """The file, as `skops.io.dump` writes it."""
    trusted: list[str] | None = None
    """Types to load besides those that skops trusts by itself."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""

    FILES: ClassVar = ("skops",)

    def load(self, folder: Path) -> Model:
        options = self.told(folder)
        return load_skops(options.pop("skops"), **options)


def load_skops(path: Path, trusted: list[str] | None = None, batch_size: int | None = None) -> SkopsModel:
    """The estimator in a file; types that nobody trusts are refused by name before anything of them is loaded."""
    if not Path(path).is_file():
        raise InputError(f"model: {path} does not exist")
    io = libraries.load("skops.io", extra="tables")
    try:
        found = io.get_untrusted_types(file=path)
        _refuse(Path(path).name, found, trusted or [])
        return SkopsModel(io.load(path, trusted=found), path, batch_size)
    except InputError:
        raise
    except (zipfile.BadZipFile, KeyError, OSError) as error:
        raise InputError(f"model: {path} is not a file of skops ({type(error).__name__})") from None
    except (AttributeError, ImportError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise InputError(
            f"model: {path} cannot be loaded ({reason}); is a library missing, or was it saved by another version of "
            "scikit-learn?"
        ) from None


def _refuse(file: str, found: list[str], trusted: list[str]) -> None:
    """Refuse types that neither skops nor the user trusts."""
    unknown = [one for one in found if one not in trusted]
    if unknown:
        listing = ", ".join(f'"{one}"' for one in found)
        raise InputError(
            f"model: {file} holds types that skops does not trust by itself: {', '.join(unknown)}; if you do, say "
            f"trusted = [{listing}] under [model] (testifai init: {' '.join(f'--trusted {one}' for one in found)})"
        )
