"""Which tests an expression selects: a mask over those listed, or however many there are."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from testifai.errors import InputError
from testifai.quality.scores import no_quality_in
from testifai.space import Selection
from testifai.space import query as queries
from testifai.space.query import Query
from testifai.tomogram.answering import Answering
from testifai.tomogram.chosen import DRAWN, Chosen
from testifai.tomogram.rates import Floats


@dataclass(frozen=True, eq=False)
class Selecting(Answering):
    """Queries over a run's tests."""

    def select(self, expression: str) -> NDArray[np.bool_]:
        """Which tests an expression selects, flat by configuration id; selecting none is an error.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
        """
        if not self.space.listed:
            raise self.not_listed("select")
        compiled = self._compiled(expression)
        chosen = self._holds(compiled, None if self.quality is None else self.quality.estimate)
        if not chosen.any():
            raise self._selects_none(compiled)
        return chosen

    def selection(self, expression: str) -> Selection:
        """What an expression selects, however many tests that are; selecting none is an error.

        It knows the number of its tests, draws some of them, and tells whether a test is one of them.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
        """
        compiled = self._compiled(expression)
        found = Selection(self.space, compiled)
        if not found.count:
            raise self._selects_none(compiled)
        return found

    def chosen(self, expression: str) -> Chosen:
        """The tests that an expression selects, or a sample of them where they are more than are listed.

        Args:
            expression: a query over the axes, `order`, `severity` and `quality`, such as "zoom > 2 and blur <= 1"
        """
        if self.space.listed:
            return Chosen.all_of(np.flatnonzero(self.select(expression)))
        return Chosen.some_of(self.selection(expression), self._standing(DRAWN), self.seed)

    def _selects_none(self, compiled: Query) -> InputError:
        ranges = "; ".join(f"{a.name}: {', '.join(map(str, a.severities))}" for a in self.space.axes)
        if self.quality is not None and "quality" in compiled.names:
            ranges += f"; quality: {np.nanmin(self.quality.estimate):.3g} to {np.nanmax(self.quality.estimate):.3g}"
        asked, most = queries.printable(compiled.text, 200), self.space.max_order
        cap = f"of at most {most} at once, " if most < len(self.space.axes) else ""
        return InputError(f'query: "{asked}" selects no test ({cap}severities are {ranges})')

    def _compiled(self, expression: str) -> Query:
        compiled = queries.compile(
            expression, [*self.space.column_names, "quality"], self.space.levels, self.space.sequenced
        )
        if "quality" in compiled.names and not self.space.listed:
            raise no_quality_in(self.space, f"accepted in its queries: {', '.join(self.space.column_names)}")
        if "quality" in compiled.names and self.quality is None:
            asked = queries.printable(expression, 200)
            raise InputError(
                f'query: "{asked}" asks for quality, which this run did not measure; add quality = "kid" '
                '(texts: "edit_similarity") to the spec\'s [scan], and run it again'
            )
        return compiled

    def _holds(self, compiled: Query, quality: Floats | None) -> NDArray[np.bool_]:
        """Where a query holds, flat by configuration id, if the tests' quality were this."""
        asked: Query | None = compiled
        columns: Mapping[str, NDArray[Any]] = self.space.columns()
        if quality is not None and "quality" in compiled.names:
            columns = {**{name: columns[name] for name in compiled.names - {"quality"}}, "quality": quality}
            if np.isnan(quality).all():
                asked = compiled.without("quality")  # before a run has begun it excludes nothing
        holds = np.array(True) if asked is None else asked.evaluate(columns)
        return np.broadcast_to(holds, self.space.shape).reshape(-1)

    def _standing(self, most: int) -> int:
        """How many tests stand for a region of more than are listed; none where nothing is predicted."""
        return most if self.predicts() else 0
