"""What a sweep found: the accuracies measured over one continuous level, the robustness and how far it may be off."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from os import PathLike
from typing import TYPE_CHECKING, Any, overload

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.support.plain import plain
from testifai.support.views import view

if TYPE_CHECKING:
    from plotly.graph_objects import Figure

Floats = NDArray[np.float64]


@dataclass(frozen=True, eq=False)
class Sweep:
    """Robustness over one level: the share of `span` on which the accuracy is at least `threshold`.

    `robustness` is within `bound` of the truth; NaN where a method has no bound. `levels` run from the first end of
    the span to the second, with `accuracies` and, where they were measured on samples, their intervals
    `lows` … `highs` from `trials` inputs each. `uncertain` are the stretches of levels whose side of the threshold is
    not settled: their share is the bound. `low` and `high` limit the robustness. All of that holds unless the curve
    crosses the threshold and comes back between two neighbouring levels: a dip narrower than `unseen`, a share of the
    span, may not have been seen. `assumes` says it in words.
    """

    span: tuple[float, float]
    threshold: float
    robustness: float
    bound: float
    low: float
    high: float
    levels: Floats
    accuracies: Floats
    lows: Floats
    highs: Floats
    trials: NDArray[np.int64] | None
    evaluations: int
    inferences: int
    crossings: tuple[float, ...]
    uncertain: tuple[tuple[float, float], ...]
    method: str
    curvature: float | str
    points: int
    confidence: float | None = None
    population: str | None = None
    timeout: bool = False
    spread: float = math.nan
    name: str = ""
    unseen: float = math.nan

    @property
    def assumes(self) -> str:
        """Under what conditions the robustness is within its bound of the truth.

        >>> from testifai.sweeps import sweep
        >>> print(sweep(lambda level: 1 - level / 2, 0, 1, curvature="auto").assumes)
        within ± 0.0009, unless accuracy crosses 0.8 and comes back between two neighbouring levels: a dip or peak \
narrower than 0.049 of the span
        """
        if math.isnan(self.bound):
            return f"{self.method} has no bound"
        sure = "" if self.confidence is None else f", with {100 * self.confidence:g} % confidence"
        if not self.unseen:
            return f"within ± {self.bound:.4f}{sure}"
        ruled_out = "" if isinstance(self.curvature, str) else f" (more curved than {self.curvature:g})"
        # Sweeps that were stored before it was kept do not tell.
        narrow = (
            "a dip or peak" if math.isnan(self.unseen) else f"a dip or peak narrower than {self.unseen:.2g} of the span"
        )
        return (
            f"within ± {self.bound:.4f}{sure}, unless accuracy crosses {self.threshold:g} and comes back between two "
            f"neighbouring levels: {narrow}{ruled_out}"
        )

    def as_dict(self) -> dict[str, Any]:
        """Everything as plain data for JSON; what is not known is None.

        >>> from testifai.sweeps import sweep
        >>> sweep(lambda level: 1 - level / 2, 0, 1).as_dict()["uncertain"]
        [[0.39990234375, 0.400390625]]
        """
        return {field.name: plain(getattr(self, field.name)) for field in fields(self)}

    @overload
    def plot(self, path: None = None, *, dark: bool = False) -> Figure: ...

    @overload
    def plot(self, path: str | PathLike[str], *, dark: bool = False) -> None: ...

    def plot(self, path: str | PathLike[str] | None = None, *, dark: bool = False) -> Figure | None:
        """The curve, the threshold, the levels measured and the uncertain stretches, as a plotly figure.

        With a path they are written there as .png or .jpg instead.
        """
        if path is not None:
            view("sweep as a picture")(self, path)
            return None
        figure: Figure = view("sweep as a figure")(self, dark=dark)
        return figure

    def __repr__(self) -> str:
        of = f" of {self.name}" if self.name else ""
        bound = "no bound" if math.isnan(self.bound) else f"± {self.bound:.4f}"
        bound += "" if math.isnan(self.unseen) else f", dips below {self.unseen:.2g} unseen"
        return (
            f"<Sweep{of}: robustness {self.robustness:.4f} ({bound}) at {self.threshold:g}, {self.evaluations} levels>"
        )


class SweepError(InputError):
    """A sweep that could not be finished; `partial` holds what was measured, one `Sweep` per threshold."""

    partial: tuple[Sweep, ...] = ()
