"""From the failures of a system back to their causes, merged into trends and ranked by the gain of fixing them.

The error summary of the Bayesian-network framework (its section G): wrong combined output, wrong constituent, its class
and property, the class it is confused with, systematic trend, proposed adjustment.

Two questions are asked of every class under a property at a severity (a cell). Does it fail more often than the other
classes do there? By chance, failures fall on inputs of all classes equally (Fisher's exact test). And are its failures
read as one answer in particular? By chance, every other answer is equally likely (binomial test, given the failures).
Both are exact for inputs drawn one by one, whatever the dependence between severities: a cell contains every input
once. All tests are corrected together by Holm's method, so that the chance of any false trend is at most `alpha`.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from testifai import data as datasets
from testifai.engine.subject import ShownInputs
from testifai.errors import InputError
from testifai.locality import summary
from testifai.locality.compose import Combine, Expected, Setting, chances, compose, others_right, values
from testifai.locality.local import Arms, Local, Rates, bounded_arms, class_arms, coull_arms, together
from testifai.locality.summary import Explanation, Rest, Trace, Trend
from testifai.space import Axis, Space
from testifai.statistics.multiplicity import holm
from testifai.support.batches import concat
from testifai.support.files import write_npz
from testifai.support.types import Array, Bools, Floats
from testifai.support.validation import number

Mask = Bools  # (class, property, severity, output)
SINK = 3  # classes at least, and half of all the others, for one answer to be a sink


@dataclass(frozen=True, eq=False)
class Pattern:
    """Failures that belong together, by places in a table."""

    kind: str  # as of Trend
    classes: tuple[int, ...]
    which: int  # property
    levels: tuple[int, ...]  # places of the severities, first to last
    answer: int | None  # None: several
    mask: Mask  # which answers to which cells belong to it
    p_value: float  # of its clearest cell, corrected for all tests


class TrendSearch(NamedTuple):
    """The patterns of a table, no failure in two of them, and the number of tests that the correction is for."""

    patterns: tuple[Pattern, ...]
    tests: int


def search(local: Local, alpha: float = 0.05) -> TrendSearch:
    """All patterns of failures that are more than chance."""
    confused, failing = confusion_tests(local), class_tests(local, _failures(local))
    wrong = wrong_answers(local)
    confusions = _patterns(local, "confusion", _holm_both(confused, failing)[0], alpha, wrong)
    named = union(local, confusions)
    # What is named already is taken from the class, but not from what chance gives it: p-values can only rise.
    failing = class_tests(local, _failures(local), _failures(local, ~named))
    classes = _patterns(local, "class", _holm_both(confused, failing)[1][..., None], alpha, wrong & ~named)
    tests = int((~np.isnan(confused)).sum() + (~np.isnan(failing)).sum())
    return TrendSearch((*_merged(local, confusions), *classes), tests)


def wrong_answers(local: Local) -> Mask:
    """Every answer but the class's own, in every cell that was measured."""
    others = ~np.eye(len(local.classes), len(local.outputs), dtype=bool)
    return np.asarray(local.measured[..., None] & others[:, None, None, :])


def counts(local: Local) -> Floats:
    return np.moveaxis(local.confusion, 2, 0).astype(np.float64)


def confusion_tests(local: Local) -> Floats:
    """p-values (class, property, severity, output): as many of the cell's failures or more are read as this answer."""
    from scipy.special import betainc

    others = len(local.outputs) - 1
    wrong, table = wrong_answers(local), counts(local)
    if others < 2:
        return np.full(table.shape, np.nan)
    failures = np.broadcast_to(_failures(local)[..., None], table.shape)
    # P(at least x of n) is the incomplete beta function, for expected counts, which may be fractions, too.
    tail = np.ones(table.shape)
    some = wrong & (table > 0)
    tail[some] = betainc(table[some], failures[some] - table[some] + 1, 1 / others)
    return np.where(wrong, tail, np.nan)


def class_tests(local: Local, failures: Floats, found: Floats | None = None) -> Floats:
    """p-values (class, property, severity): as many of all failures, or of those `found`, or more are this class's."""
    from scipy.stats import hypergeom

    trials = np.rint(local.trials)
    whole, failed = trials.sum(axis=0), np.rint(failures).sum(axis=0)
    asked = np.rint(failures if found is None else found)
    tail = hypergeom.sf(asked - 1, whole, failed, trials)
    return np.where(local.measured & (trials < whole), tail, np.nan)


def _holm_both(confused: Floats, failing: Floats) -> tuple[Floats, Floats]:
    adjusted = holm(np.concatenate([confused.reshape(-1), failing.reshape(-1)]))
    return adjusted[: confused.size].reshape(confused.shape), adjusted[confused.size :].reshape(failing.shape)


def _failures(local: Local, within: Mask | None = None) -> Floats:
    wrong = wrong_answers(local) if within is None else wrong_answers(local) & within
    return np.asarray((counts(local) * wrong).sum(axis=-1))


def _patterns(local: Local, kind: str, adjusted: Floats, alpha: float, allowed: Mask) -> list[Pattern]:
    """A pattern for every class and answer with clear cells, from the first clear severity to the last."""
    clear = adjusted <= alpha
    found = []
    for place, which, answer in np.argwhere(clear.any(axis=2)).tolist():
        places = np.flatnonzero(clear[place, which, :, answer])
        levels = tuple(range(int(places[0]), int(places[-1]) + 1))
        mask = np.zeros(allowed.shape, bool)
        mask[place, which, levels[0] : levels[-1] + 1, slice(None) if kind == "class" else answer] = True
        smallest = float(np.nanmin(adjusted[place, which, :, answer]))
        read_as = None if kind == "class" else answer
        found.append(Pattern(kind, (place,), which, levels, read_as, mask & allowed, smallest))
    return found


def _merged(local: Local, confusions: list[Pattern]) -> list[Pattern]:
    """Most classes read as the same answer under a property are one pattern."""
    groups: dict[tuple[int, int | None], list[Pattern]] = {}
    for one in confusions:
        groups.setdefault((one.which, one.answer), []).append(one)
    found = []
    for (which, answer), group in groups.items():
        others = sum(place != answer for place in range(len(local.classes)))
        if len(group) < max(SINK, others / 2):
            found += group
            continue
        places = tuple(one.classes[0] for one in group)
        levels = tuple(range(min(one.levels[0] for one in group), max(one.levels[-1] for one in group) + 1))
        smallest = min(one.p_value for one in group)
        found.append(Pattern("sink", places, which, levels, answer, union(local, group), smallest))
    return found


def union(local: Local, patterns: Iterable[Pattern]) -> Mask:
    empty = np.zeros((*local.rate.shape, len(local.outputs)), bool)
    return np.asarray(np.any([empty, *(one.mask for one in patterns)], axis=0))


def local_gain(local: Local, mask: Mask, confidence: float = 0.95) -> Rates:
    """How much `local.overall()` rises if these answers become right."""
    gradient = local.cell_weights[..., None] * mask
    gain = float((gradient * np.nan_to_num(local.answers)).sum())
    return _bounded(local, gain, gradient, confidence, bounded_arms, least=0.0)


@dataclass(frozen=True, eq=False)
class Composition:
    """A composed system as a function of the shares of answers of its parts."""

    setting: Setting
    rows: Floats  # (class, flat cell, output): the shares as measured
    weights: Floats  # (cell of the system): what each counts for in the overall robustness, of one tuple

    @classmethod
    def of(cls, setting: Setting) -> Composition:
        """Raise InputError if a part was not tried under a condition that the system meets."""
        local = setting.local
        which, _, parts = setting.cells
        tested, cells = np.unique(setting.tuples), np.unique(parts)
        for row, column in np.argwhere(~local.measured.reshape(len(local.classes), -1)[np.ix_(tested, cells)])[:1]:
            untried, level = divmod(int(cells[column]), local.rate.shape[2])
            raise InputError(
                f"local: class {local.classes[tested[row]]!r} was never tried under {local.properties[untried]} at "
                f"severity {local.severities[untried][level]}; a composed system needs every class there "
                "(arity = 1 does not)"
            )
        lengths = np.array([len(one) for one in setting.severities])
        return cls(setting, np.nan_to_num(setting.rows), 1 / (lengths[which] * len(lengths) * len(setting.tuples)))

    @property
    def parts(self) -> NDArray[np.intp]:
        """(cell of the system, part): the flat cell of the table."""
        return self.setting.cells[2]

    def overall(self, rows: Floats, tuples: Sequence[tuple[int, ...]] | None = None) -> tuple[float, float]:
        """How often the system is right, and how often it answers at all: below 1 if answers are left out."""
        right = total = 0.0
        for classes in self.setting.tuples if tuples is None else tuples:
            each = chances(rows, classes, self.parts, self.setting.system.answers_right(classes))
            sums = [rows[one].sum(axis=-1)[self.parts[:, part]] for part, one in enumerate(classes)]
            right += float(self.weights @ np.prod(each, axis=0).sum(axis=1))
            total += float(self.weights @ np.prod(sums, axis=0))
        return right, total

    def slopes(self, rows: Floats, tuples: Sequence[tuple[int, ...]] | None = None) -> Floats:
        """(part, class, flat cell, output): P(the part meets the cell and the system is right given this answer)."""
        found = np.zeros((self.setting.system.arity, *rows.shape))
        for classes in self.setting.tuples if tuples is None else tuples:
            answers = self.setting.system.answers_right(classes)
            others = others_right(rows, classes, self.parts, answers)
            for part, one in enumerate(classes):
                places = (self.parts[:, [part]], answers[:, part][None])
                np.add.at(found[part, one], places, self.weights[:, None] * others[part])
        return found

    def involved(self) -> Floats:
        """(part, class, flat cell, output): P(a part gives this answer and the system is wrong)."""
        met = np.zeros((self.setting.system.arity, *self.rows.shape[:2]))  # the probability that a part meets the cell
        for classes in self.setting.tuples:
            for part, one in enumerate(classes):
                np.add.at(met[part, one], self.parts[:, part], self.weights)
        return np.asarray(self.rows * (met[..., None] - self.slopes(self.rows)))

    def share(self, mask: Mask) -> float:
        wrong = 1 - self._right
        if wrong <= 0:
            return 0.0
        flat, tuples = self._flat(mask)
        right, total = self.overall(self.rows, tuples)
        right_without, total_without = self.overall(np.where(flat, 0.0, self.rows), tuples)
        return max(0.0, ((total - right) - (total_without - right_without)) / wrong)

    @cached_property
    def _right(self) -> float:
        return self.overall(self.rows)[0]

    def _flat(self, mask: Mask) -> tuple[Mask, list[tuple[int, ...]]]:
        """Answers as in `rows`, and the tuples in which a part may give them."""
        flat = mask.reshape(self.rows.shape)
        places = set(np.flatnonzero(flat.any(axis=(1, 2))).tolist())
        return flat, [classes for classes in self.setting.tuples if not places.isdisjoint(classes)]

    def gain(self, mask: Mask, confidence: float = 0.95) -> Rates:
        """How much the overall robustness rises if these answers become right."""
        local = self.setting.local
        flat, tuples = self._flat(mask)
        moved = np.where(flat, self.rows, 0.0)
        fixed = self.rows - moved
        own = np.arange(len(local.classes))
        fixed[own, :, own] += moved.sum(axis=-1)
        gain = self.overall(fixed, tuples)[0] - self.overall(self.rows, tuples)[0]
        after = self.slopes(fixed, tuples).sum(axis=0)
        becomes = after[own, :, own][..., None]  # what a moved answer does once it is right
        slope = np.where(flat, becomes, after) - self.slopes(self.rows, tuples).sum(axis=0)
        return _bounded(local, gain, slope.reshape(mask.shape), confidence, coull_arms, least=-1.0)


def _bounded(
    local: Local, gain: float, gradient: Floats, confidence: float, arms: Callable[..., Arms], least: float
) -> Rates:
    """A gain with its interval; `gradient` is its slope in (class, property, severity, output)."""
    classes = map(int, np.flatnonzero(gradient.any(axis=(1, 2, 3))))
    each = [class_arms(local, place, gradient[place][None], confidence, arms) for place in classes]
    down, up = together(each) if each else (np.zeros(1), np.zeros(1))
    return Rates(gain, max(least, gain - float(down[0])), min(1.0, gain + float(up[0])))


def explain(
    local: Local,
    combine: Combine | None = None,
    arity: int = 2,
    expected: Expected | None = None,
    *,
    conditions: Sequence[str | Sequence[str]] | None = None,
    tuples: Sequence[Sequence[Any]] | None = None,
    properties: Any = None,
    alpha: float = 0.05,
) -> Explanation:
    """Rank the causes of failures, test which are more than chance, and say what fixing each would give.

    The system is described as for `compose`; with arity 1, or class names that are no numbers and no `combine`, it is
    the model alone.

    Args:
        local: the table
        combine: the system, as for `compose`
        arity: how many parts the system has
        expected: what is right, as for `compose`
        conditions: the properties of the parts, as for `compose`
        tuples: the combinations of classes, as for `compose`
        properties: as given to `local`: lets the advice name perturbations and their parameters
        alpha: bounds the chance of any false trend at all

    >>> table = [[[[190, 5, 5], [4, 150, 46], [5, 5, 190]]]]  # of 200 ones under noise, 46 are read as 2
    >>> found = explain(Local.from_counts(["0", "1", "2"], ["noise"], [[1]], table))
    >>> [(one.classes, one.property, one.answers) for one in found.trends]
    [(('1',), 'noise', ('2',))]
    >>> round(found.trends[0].local_gain.rate, 4), found.trends[0].composed_gain.rate > 0.08
    (0.0767, True)
    """
    number("alpha", alpha, above=0, below=1)
    axes = matching_axes(local, properties)
    composed = None
    if combine is not None or expected is not None or (arity != 1 and not isinstance(values(local.outputs)[0], str)):
        composed = compose(local, combine, arity, expected, conditions=conditions, tuples=tuples)
    elif conditions is not None or tuples is not None:
        raise InputError("conditions, tuples: these are of a composed system; give combine, or leave them out")
    composition = None if composed is None else Composition.of(composed.setting)
    found = search(local, alpha)
    # Picking r of m: intervals at 1 - 0.05 r/m keep the share of false ones among those picked at 0.05.
    confidence = 1 - 0.05 * max(1, len(found.patterns)) / max(found.tests, 1, len(found.patterns))
    trends = [_trend(local, composition, one, axes, confidence) for one in found.patterns]
    shown = [one for one in trends if one.share > 0]
    shown.sort(key=lambda one: (-one.gain.rate, -one.failures))
    failing = counts(local) * wrong_answers(local)
    left = failing * ~union(local, found.patterns)
    by_property = zip(local.properties, failing.sum(axis=(0, 2, 3)), left.sum(axis=(0, 2, 3)), strict=True)
    rest = tuple(Rest(name, _whole(some), float(some / all_)) for name, all_, some in by_property if all_ > 0)
    return Explanation(local, composed, tuple(shown), _traces(local, composition), rest, found.tests, alpha)


def _trend(
    local: Local, composition: Composition | None, pattern: Pattern, axes: dict[str, Axis], confidence: float
) -> Trend:
    name = local.properties[pattern.which]
    table = counts(local) * pattern.mask
    severities = tuple(local.severities[pattern.which][level] for level in pattern.levels)
    by_answer = table.sum(axis=(0, 1, 2))
    answers = [local.outputs[place] for place in np.argsort(-by_answer, kind="stable") if by_answer[place] > 0]
    cells = pattern.mask.any(axis=-1)
    by_class = {place: _whole(table[place].sum()) for place in pattern.classes}
    classes = sorted(by_class, key=lambda place: -by_class[place])
    failures = local.trials - local.passes
    if pattern.answer is not None:  # by chance, wrong answers are spread over all answers
        chance = failures / (len(local.outputs) - 1)
    else:  # by chance, the class fails as the others do
        place = pattern.classes[0]
        with np.errstate(invalid="ignore"):
            rates = np.delete(failures, place, axis=0).sum(axis=0) / np.delete(local.trials, place, axis=0).sum(axis=0)
        chance = local.trials * rates
    if composition is None:
        failing = local.cell_weights[..., None] * np.nan_to_num(local.answers) * wrong_answers(local)
        share = float((failing * pattern.mask).sum() / failing.sum())
    else:
        share = composition.share(pattern.mask)
    names, own = tuple(local.classes[one] for one in classes), tuple(by_class[one] for one in classes)
    where = summary.severity_range(severities, local.severities[pattern.which])
    composed_gain = None if composition is None else composition.gain(pattern.mask, confidence)
    return Trend(
        pattern.kind, names, own, name, severities, where, tuple(answers), _whole(table.sum()),
        _whole(local.trials[cells].sum()), float(chance[cells].sum()), pattern.p_value, share,
        local_gain(local, pattern.mask, confidence), composed_gain,
        summary.perturbation(axes[name], severities) if name in axes else "", pattern.mask,
    )  # fmt: skip


def _traces(local: Local, composition: Composition | None) -> tuple[Trace, ...]:
    table, wrong = counts(local), wrong_answers(local)
    if composition is None:
        involved = (local.cell_weights[..., None] * np.nan_to_num(local.answers))[None]
        alike, failing = True, float((involved * wrong).sum())
    else:
        setting = composition.setting
        alike = setting.interchangeable
        involved = composition.involved().reshape(-1, *wrong.shape)
        failing = 1 - composition.overall(composition.rows)[0]
    if alike:
        involved = involved.sum(axis=0, keepdims=True)
    found = [
        Trace(
            None if alike else part + 1,
            local.classes[place],
            local.properties[which],
            local.severities[which][level],
            local.outputs[answer],
            _whole(table[place, which, level, answer]),
            float(involved[part, place, which, level, answer] / failing),
        )
        for part, place, which, level, answer in np.argwhere((involved > 0) & wrong).tolist()
    ]
    return tuple(sorted(found, key=lambda one: -one.share))


def matching_axes(local: Local, properties: Any) -> dict[str, Axis]:
    if properties is None:
        return {}
    space = properties if isinstance(properties, Space) else Space(properties)
    axes = {axis.name: axis for axis in space.axes}
    for name, levels in zip(local.properties, local.severities, strict=True):
        if name not in axes or not set(levels) <= set(axes[name].severities):
            raise InputError(
                f"properties: {name!r} with severities {', '.join(map(str, levels))} is not among them; "
                "accepted: those the table was measured with"
            )
    return axes


def _whole(count: Any) -> float:
    return int(count) if count == int(count) else float(count)


def export_failures(found: Explanation | Local, data: Any, properties: Any, path: str | os.PathLike[str]) -> int:
    """Write every failure as a row of an npz file, and return how many there are.

    `x` is the input as the model saw it, `clean` as it was, `y` its label, `predicted` the name of the answer, `index`
    the input's number in the data, `property` and `severity` what it was under, and `trend` the rank of the trend it
    belongs to, 0 for none. `data` and `properties` are what the table was measured on.

    Args:
        found: a table, or its explanation, which tells the trends
        data: what the table was measured on
        properties: the same
        path: of the npz file

    >>> import tempfile, testifai as ta
    >>> from testifai.locality import local
    >>> rows = np.linspace(0, 1, 40)[:, None]
    >>> shift = {"shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1])}
    >>> model = lambda x: (x[:, 0] > 0.5).astype(int)
    >>> file = Path(tempfile.mkdtemp()) / "failures.npz"
    >>> export_failures(local(model, (rows, model(rows)), shift), (rows, model(rows)), shift, file)
    4
    >>> with np.load(file) as kept:
    ...     np.allclose(kept["x"], kept["clean"] + 0.1), kept["y"].tolist(), kept["predicted"].tolist()
    (True, [0, 0, 0, 0], ['1', '1', '1', '1'])
    """
    local = found if isinstance(found, Local) else found.local
    if Path(path).suffix != ".npz":
        raise InputError(f"failures: {Path(path).name!r} must end in .npz")
    if local.sampled is None or local.seed is None:
        raise InputError("failures: this table has counts alone; only one that local() measured knows its inputs")
    space = properties if isinstance(properties, Space) else Space(properties)
    matching_axes(local, space)
    data = datasets.wrap(data)
    inputs = len(data.inputs)
    if data.labels is None or int(local.sampled.ids.max(initial=0)) >= inputs:
        raise InputError(f"data: {inputs} inputs do not fit the table; accepted: the data it was measured on, labelled")
    plain = Space({axis.name: (axis.perturbation, axis.severities) for axis in space.axes})
    shown = ShownInputs(data, plain, np.arange(inputs), local.seed)
    ranks = np.zeros((*local.rate.shape, len(local.outputs)), np.int32)  # of the trend an answer belongs to
    for rank, trend in enumerate(() if isinstance(found, Local) else found.trends, start=1):
        ranks[trend.mask] = rank
    groups: list[dict[str, Array]] = []
    cells = ((which, level) for which, levels in enumerate(local.severities) for level in range(len(levels)))
    for which, level in cells:
        answers = local.sampled.predicted[:, which, level]
        rows = np.flatnonzero((answers >= 0) & (answers != local.sampled.classes))
        if not len(rows):
            continue
        ids, name, severity = local.sampled.ids[rows], local.properties[which], local.severities[which][level]
        group = {
            "x": shown.composite(tuple(severity if axis.name == name else 0 for axis in plain.axes), ids),
            "clean": shown.batch(ids),
            "y": data.labels[ids],
            "predicted": np.array(local.outputs)[answers[rows]],
            "index": ids,
            "property": np.full(len(ids), name),
            "severity": np.full(len(ids), severity),
            "trend": ranks[local.sampled.classes[rows], which, level, answers[rows]],
        }
        groups.append(group)
    if not groups:
        raise InputError("failures: no input failed; there is nothing to write")
    arrays = {name: np.asarray(concat([group[name] for group in groups])) for name in groups[0]}
    write_npz(Path(path), arrays)
    return len(arrays["index"])
