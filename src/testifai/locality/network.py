"""A Bayesian network from conditions to answers: it predicts, and traces what went wrong back to its causes.

    context -> severity of each property -> predicted <- class        correct: predicted is the class
    predicted of every part -> output; class of every part -> expected        composed: output is expected

The structure is given, the tables come from outcomes (`learning`) and from the stated profile. Inference is exact.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from testifai.errors import InputError
from testifai.locality.compose import SHARES, Combine, Expected, adder, build, values
from testifai.locality.learning import SingleTables, Tables, check_learning, learn, learn_single, resampled
from testifai.locality.local import Local, Rates
from testifai.support.formatting import estimate_text
from testifai.support.serialization import plain
from testifai.support.types import Floats, Record, RecordLike
from testifai.support.validation import choice, number, whole
from testifai.surrogates.inference import SHOWN, Inference, NetworkNode, Posterior
from testifai.tomogram import Tomogram
from testifai.tomogram.profile_parser import MOST_CELLS, Known, Profile

OUTCOMES = (True, False)
OTHER = "something the system never answers"
DRAWS = 200  # of the tables, for an interval


@dataclass(frozen=True, eq=False)
class Belief:
    """How probable the states of a variable are, given what is known, with intervals for the tables' finite trials."""

    name: str
    states: tuple[Any, ...]
    rates: Rates  # arrays (state)

    def __repr__(self) -> str:
        first = "; ".join(f"{state}: {estimate_text(p, low, high)}" for state, p, low, high in self.ranked(SHOWN))
        return f"<Belief in {self.name}: {first}>"

    def ranked(self, most: int | None = None) -> list[tuple[Any, float, float, float]]:
        rate, low, high = self.rates.rate, self.rates.low, self.rates.high
        order = [place for place in np.argsort(-rate, kind="stable")[:most].tolist() if rate[place] > 0]
        return [(self.states[i], float(rate[i]), float(low[i]), float(high[i])) for i in order]

    def as_dict(self) -> Record:
        names = ("state", "p", "low", "high")
        return {"name": self.name, "states": plain([dict(zip(names, one, strict=True)) for one in self.ranked()])}


@dataclass(frozen=True)
class Cause:
    """A part's class under a property and severity, as the cause of a wrong outcome."""

    part: int  # from 1
    true_class: str
    property: str
    severity: int
    probability: float  # of this class and severity with a wrong answer of the part, given what is known
    lift: float  # how many times as probable class and severity are as without knowing any answer or outcome


class Network:
    """Class, context, severities, answers and outcome of one model, or of a system that combines several answers.

    Variables of one model: the profile's, `class`, a severity by the name of each property, `predicted` and `correct`.
    A system, made with `combine` (as in `compose`; None: the adder) or an `arity`, has parts whose variables end in
    _1, _2, ...; and `expected`, `output` and `composed`: whether these two are equal. `share` says what parts have in
    common, as in `compose`: context and "severities", the profile's "context" but not the severities, or "nothing".
    Without a profile one property is on at a time, all severities equally probable: `property` and, if made by `of`,
    `severity` are variables then.

    Probabilities are those of the tables; `beliefs` have intervals. `notes` say what the tables assume.

    >>> local = Local.from_counts(["cat", "dog"], ["fog"], [[1, 2]], [[[[18, 2], [1, 19]], [[12, 8], [3, 17]]]])
    >>> network = Network(learn(local, prior=0))
    >>> round(network.predict({"class": "cat", "fog": 2}), 3)
    0.6
    >>> worst = network.diagnose()[0]
    >>> worst.true_class, worst.property, worst.severity, round(worst.probability, 3)
    ('cat', 'fog', 2, 0.571)
    """

    def __init__(
        self,
        tables: Tables | SingleTables,
        profile: Profile | RecordLike | None = None,
        *,
        combine: Combine | None = None,
        arity: int | None = None,
        expected: Expected | None = None,
        share: str = SHARES[0],
    ) -> None:
        self.tables, self.notes = tables, tables.notes
        self.arity = (1 if combine is None else 2) if arity is None else arity
        self.composed = combine is not None or arity is not None
        self.outcome = "composed" if self.composed else "correct"  # says whether the whole was right
        system = build(tables.classes, tables.outputs, combine, self.arity, expected) if self.composed else None
        known = tables.known() if isinstance(tables, SingleTables) else _known(tables, profile)
        self._learned_from: tuple[Local, float] | None = None
        self._shared = self._common(known, share)
        self._nodes: list[NetworkNode] = []
        self._conditions: set[str] = set()  # variables that are no answers nor made of them
        for part in range(1, self.arity + 1):
            self._add_part(known, part)
        if system is not None:
            self._add_system(system.codes, system.right, combine or adder)
        self.inference = Inference(self._nodes)
        self.nodes = self.inference.nodes  # by name, parents before children

    @classmethod
    def of(
        cls,
        local: Local,
        profile: Profile | RecordLike | None = None,
        *,
        scan: Tomogram | None = None,
        prior: float = 0.5,
        together: str = "product",
        **options: Any,
    ) -> Network:
        """The network of a measured model: `learn` with what it takes, then the options of the network itself."""
        if profile is not None or scan is not None:
            return cls(learn(local, scan, prior=prior, together=together), profile, **options)
        check_learning(prior, together)
        made = cls(learn_single(local, prior), **options)
        made._learned_from = (local, prior)
        return made

    @property
    def names(self) -> tuple[str, ...]:
        """The variables, without the severities of single properties, which `property` and `severity` determine."""
        single = self.tables.properties if isinstance(self.tables, SingleTables) else ()
        left_out = {self._own(name, part) for name in single for part in range(1, self.arity + 1)}
        return tuple(name for name in self.nodes if name not in left_out)

    def predict(self, given: RecordLike | None = None) -> float:
        """The probability that the answer, or the system's output, is right."""
        return float(self.posterior(self.outcome, given=given).probabilities[0])

    def diagnose(self, given: RecordLike | None = None) -> list[Cause]:
        """Which class, property and severity caused a wrong outcome, most probable first.

        `given` adds what is known, such as the class of a part or the system's output. With several properties on, each
        is listed, and the probabilities add up to more than that of the part's failure.
        """
        evidence = {self.outcome: False, **(given or {})}
        conditions = {name: state for name, state in evidence.items() if name in self._conditions}
        causes = []
        for part, name in itertools.product(range(1, self.arity + 1), self.tables.properties):
            names = [self._own(what, part) for what in ("class", name)]
            before = self.posterior(*names, given=conditions).probabilities
            after = self.posterior(*names, self._own("correct", part), given=evidence).probabilities
            for c, s in np.argwhere(after[..., 1] > 0).tolist():
                if s:  # 0 is off
                    words = part, self.tables.classes[c], name, self.nodes[names[1]].states[s]
                    causes.append(Cause(*words, float(after[c, s, 1]), float(after[c, s].sum() / before[c, s])))
        return sorted(causes, key=lambda cause: -cause.probability)

    def blame(self, given: RecordLike | None = None) -> dict[tuple[int, ...], float]:
        """Which parts were wrong, given that the output is: their numbers from 1 -> probability, highest first."""
        if not self.composed:
            raise InputError("blame: this network has no parts; accepted: one made with combine or arity")
        names = [self._own("correct", part) for part in range(1, self.arity + 1)]
        found = self.posterior(*names, given={self.outcome: False, **(given or {})})
        return {
            tuple(part for part, name in enumerate(names, start=1) if not words[name]): probability
            for words, probability in found.ranked()
        }

    def posterior(self, *names: str, given: RecordLike | None = None) -> Posterior:
        """The joint probability of some variables given the states of others; a list of states leaves these open."""
        return self.inference.posterior(names, given)

    def beliefs(
        self, *names: str, given: RecordLike | None = None, draws: int = DRAWS, seed: int = 0, confidence: float = 0.95
    ) -> tuple[Belief, ...]:
        """Each of these variables alone (default: all not given), with intervals by resampling the tables.

        Only for networks made by `of` without a profile and a scan. An interval contains the middle `confidence` of the
        draws, which resample whole inputs if single inputs are known.

        >>> local = Local.from_counts(["cat", "dog"], ["fog"], [[1, 2]], [[[[18, 2], [1, 19]], [[12, 8], [3, 17]]]])
        >>> (right,) = Network.of(local).beliefs("correct", given={"class": "cat", "severity": 2})
        >>> [(state, round(rate, 2), low < 0.5, high > 0.7) for state, rate, low, high in right.ranked(1)]
        [(True, 0.6, True, True)]
        """
        if self._learned_from is None:
            raise InputError("intervals: of a network made by Network.of(local) alone, without a profile or a scan")
        whole("draws", draws, least=2)
        number("confidence", confidence, above=0, below=1)
        given = given or {}
        chosen = names or tuple(name for name in self.names if name not in given)
        best = [self.posterior(name, given=given).probabilities for name in chosen]
        local, prior = self._learned_from
        possible = []
        for tables in resampled(local, prior, count=draws, seed=seed):
            own = {self._own("predicted", part): tables.answers for part in range(1, self.arity + 1)}
            if (marginals := self.inference.with_tables(own).marginals(chosen, given)) is not None:
                possible.append(marginals)
        ends = ((1 - confidence) / 2, (1 + confidence) / 2)
        found = []
        for place, (name, rate) in enumerate(zip(chosen, best, strict=True)):
            # "weibull": of few draws, the ends that hold a further one so often.
            low, high = np.quantile([one[place] for one in possible], ends, axis=0, method="weibull")
            # Asked for several variables, pyAgrum sums in an order that changes the last bits.
            told = (np.round(end, 12) for end in (rate, np.minimum(low, rate), np.maximum(high, rate)))
            found.append(Belief(name, self.nodes[name].states, Rates(*told)))
        return tuple(found)

    def _own(self, name: str, part: int) -> str:
        return f"{name}_{part}" if self.composed and name not in self._shared else name

    def __repr__(self) -> str:
        names = [node.name for node in self._nodes]
        return f"<Network of {len(names)} variables: {', '.join(names)}>"

    def _common(self, known: Known, share: str) -> frozenset[str]:
        choice("share", share, SHARES)
        if not self.composed:
            return frozenset()
        names = {"nothing": (), "context": known.context, "severities": (*known.context, *known.properties)}
        common = frozenset(names[share])
        less = " or ".join(f"share = {one!r}" for one in SHARES[SHARES.index(share) + 1 :])
        for variable in known.variables:
            apart = sorted(set(variable.parents) - common)
            if variable.name in common and apart:
                raise InputError(
                    f"share: {variable.name} is to be common to all parts but depends on {', '.join(apart)}, which "
                    f"each has for itself; accepted: {less}"
                )
        return common

    def _add_part(self, known: Known, part: int) -> None:
        tables = self.tables
        for variable in known.variables:
            if part == 1 or variable.name not in self._shared:
                parents = [self._own(parent, part) for parent in variable.parents]
                self._add(self._own(variable.name, part), variable.states, parents, variable.table)
                self._conditions.add(self._own(variable.name, part))
        conditions = [self._own(name, part) for name in tables.parents]
        predicted = self._own("predicted", part)
        self._add(predicted, tables.outputs, conditions, tables.answers)
        right = np.eye(len(tables.classes), len(tables.outputs))
        self._add(self._own("correct", part), OUTCOMES, [conditions[0], predicted], np.stack([right, 1 - right], -1))

    def _add_system(self, codes: Any, right: Any, combine: Callable[..., Any]) -> None:
        """The system's answers as variables; `codes` and `right` number them, -1 for what is never answered."""
        labels = values(self.tables.outputs)
        first = np.unravel_index(np.unique(codes, return_index=True)[1], codes.shape)
        answers = [combine(*(labels[place] for place in places)) for places in zip(*first, strict=True)]
        size = len(answers)
        if codes.size * size > MOST_CELLS:
            raise InputError(
                f"combine: a table of {codes.size:,} combinations and {size:,} answers; accepted: up to "
                f"{MOST_CELLS:,} numbers, with fewer parts or classes"
            )
        for name, source, table in (("expected", "class", right), ("output", "predicted", codes)):
            parents = [self._own(source, part) for part in range(1, self.arity + 1)]
            # -1 picks the last row: the state that stands for all other answers.
            self._add(name, [*answers, OTHER], parents, np.eye(size + 1)[table])
        same = np.eye(size + 1)
        same[-1, -1] = 0
        self._add("composed", OUTCOMES, ["expected", "output"], np.stack([same, 1 - same], axis=-1))

    def _add(self, name: str, states: Sequence[Any], parents: Sequence[str], table: Floats) -> None:
        if any(node.name == name for node in self._nodes):
            raise InputError(f"profile: a property or context is called {name!r}, which the network uses itself")
        self._nodes.append(NetworkNode(name, tuple(states), tuple(parents), table))


def _known(tables: Tables, profile: Profile | RecordLike | None) -> Known:
    """The profile over the tables' properties and classes; classes weigh as they were sampled if it does not say."""
    severities = dict(zip(tables.properties, tables.severities, strict=True))
    if "class" in severities:
        raise InputError("properties: one is called 'class', which the network uses itself; accepted: other names")
    if profile is None:
        profile = Profile.single(severities)
    stated = profile if isinstance(profile, Profile) else Profile(profile)
    known = stated.over(severities, classes=tables.classes)
    if tables.weights is not None and all(name != "class" for name, _ in stated.statements):
        known.by_name["class"].table[:] = tables.weights
    return known
