"""Any Python callable as a model, handed over directly or named in a spec."""

from __future__ import annotations

import copy
import functools
import inspect
from collections.abc import Callable
from pathlib import Path
from typing import Any, ClassVar, get_args

from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.models.base import Model, ModelPart, Outputs
from testifai.models.feeding import Feed, feed
from testifai.models.foreign import is_estimator
from testifai.support import checks, own_code
from testifai.support.batches import Batch
from testifai.support.fields import Count
from testifai.support.reachable import Told, tell
from testifai.support.tables import Table


class PythonModel(Model):
    """A function batch → (N,) labels or (N, d) scores or values; `outputs` says which, if known.

    `version` is for what cannot be seen of a model from outside, such as a service that it asks: a text of the user's
    that changes when the model does.

    >>> import numpy as np
    >>> PythonModel(lambda table: table.sum(axis=1))(np.ones((2, 3))).tolist()
    [3.0, 3.0]
    """

    def __init__(
        self,
        function: Callable[[Any], Any],
        *,
        outputs: Outputs | None = None,
        classes: int | None = None,
        batch_size: int | None = None,
        name: str | None = None,
        version: str | None = None,
    ) -> None:
        if not callable(function):
            raise InputError(f"model: {type(function).__name__} cannot be called; a function of a batch is accepted")
        if inspect.isclass(function):
            raise InputError(f"model: {function.__name__} is a class; hand over an instance or a function")
        if outputs is not None:
            checks.choice("outputs", outputs, get_args(Outputs))
        self.function, self.outputs = function, outputs
        self.classes, self.batch_size = classes, batch_size
        self.name = name or _name_of(function)
        self.version = version
        self._feed: Feed | None = None

    @functools.cached_property
    def _told(self) -> Told:
        return tell(self.function, self.version)

    @functools.cached_property
    def fingerprint(self) -> str:
        """Name and source of the function and all that it computes with, as far as that can be seen."""
        return self._told.fingerprint

    @property
    def former_fingerprint(self) -> str:
        return self._told.former

    @property
    def untold(self) -> str | None:
        return self._told.untold

    def reading(self, table: Table) -> PythonModel:
        """The same function, given the table's values: numbers, or objects where a column holds words."""
        made = copy.copy(self)
        made._feed = feed(table, self.name, None)
        return made

    def __call__(self, batch: Batch) -> NDArray[Any]:
        given = batch if self._feed is None or isinstance(batch, list) else self._feed(batch)
        outputs: NDArray[Any] = self.function(given)
        return outputs


class PythonModelPart(ModelPart):
    """A function of the user's own, or an object with predict or predict_proba."""

    python: str
    """Your function or object, `package.module:name`."""
    outputs: Outputs | None = None
    """What it returns, where that cannot be seen."""
    classes: Count | None = None
    """How many classes it tells apart; default: as many as its scores."""
    batch_size: Count | None = None
    """Inputs handed to the model at once; default: what is quickest."""
    name: str | None = None
    """What reports call it; default: its path."""
    version: str | None = None
    """A word that tells this model from another where its code cannot."""

    CODE: ClassVar = ("python",)

    def load(self, folder: Path) -> Model:
        options = self.told()
        return from_path(options.pop("python"), folder=folder, **options)


def from_path(path: str, *, folder: str | Path | None = None, **options: Any) -> Model:
    """The model named "pkg.module:name", imported: it runs its module's code. Options: see `PythonModel`.

    An object that predicts as scikit-learn's do takes the options of `SklearnModel`.
    """
    function = own_code.import_object(path, folder=folder, field="model.python")
    if is_estimator(function):
        from testifai.models.sklearn import SklearnModel

        return SklearnModel(function, **_of_estimator(options))
    return PythonModel(function, **{"name": path, **options})


def _of_estimator(options: dict[str, Any]) -> dict[str, Any]:
    for option in options:
        if option != "batch_size":
            raise InputError(f"model.{option}: is for functions; what an object predicts is told by itself")
    return options


def _name_of(function: Any) -> str:
    named = getattr(function, "func", function)  # of a functools.partial
    return str(getattr(named, "__qualname__", None) or type(named).__qualname__)
