"""Measuring for gates: until each is decided or the budget is spent, and never the same thing twice."""

from __future__ import annotations

import hashlib
import json
import sys
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np

from testifai.errors import InputError
from testifai.gates.strategy import GateStrategy, settled
from testifai.gates.verdicts import RULE, Verdict, check_gates, judge
from testifai.identity.environment import environment
from testifai.models.python import PythonModel
from testifai.runs import keys, trusted_runs
from testifai.runs.lock import Lock
from testifai.runs.store import Store
from testifai.session import assembly
from testifai.session.observers import notes
from testifai.session.provenance import about
from testifai.session.session import Session
from testifai.session.stored_runs import open_run
from testifai.spec.options import strategy_of
from testifai.spec.parsing import Gate, Spec
from testifai.statistics.multiplicity import confidence_each
from testifai.strategies.adaptive import TARGET, Adaptive
from testifai.support.threads import one_blas_thread
from testifai.support.types import Record
from testifai.tomogram import Answer, Excluded, Tomogram

WAIT = 0.2  # seconds between two tries to be the one that measures


@dataclass(frozen=True)
class GatedRun:
    """A model measured as far as its gates ask for: the verdicts, and what they cost."""

    tomogram: Tomogram
    verdicts: tuple[Verdict, ...]
    path: Path
    new: int  # inferences made now; the rest was in the cache
    budget: int  # at most so many inferences are allowed
    adaptive: bool  # whether undecided gates are given more inferences
    sharing: int  # gates that share the 5 % risk of a wrong decision

    @property
    def warnings(self) -> list[str]:
        """What casts doubt on the run: a model that is not deterministic, class indices that do not match."""
        return notes(self.tomogram.provenance)

    @property
    def confidence(self) -> float:
        """The confidence of each gate's bounds."""
        return confidence_each(self.sharing)

    def lacking(self, verdict: Verdict) -> tuple[int, int]:
        """How many more inferences on an undecided gate's tests might decide it, and how many there are at all.

        A bound comes nearer with the square root of the trials, so the first is a guess.
        """
        chosen, known = self.tomogram.query_engine.sample(verdict.gate.query), self.tomogram.estimator.measured_ids
        trials = int(self.tomogram.outcomes.counts(known[chosen.contains(known)])[1].sum())
        room = chosen.tests * self.tomogram.outcomes.inputs - trials
        answer = verdict.answer
        apart = abs(answer.robustness - verdict.gate.at_least)
        bound = answer.low if answer.robustness >= verdict.gate.at_least else answer.high
        if not apart > 0 or np.isnan(bound):
            return room, room
        factor = (abs(answer.robustness - bound) / apart) ** 2
        return min(room, round(trials * max(factor - 1, 0.0))), room


def prepare(spec: Spec, folder: Path, *, sharing: int | None = None) -> Session:
    """Make the spec's session; if its strategy is adaptive, one that goes on until the gates are decided."""
    check_modules(spec, folder)
    strategy = strategy_of(spec.scan)
    if type(strategy) is Adaptive and spec.gate:
        gates = GateStrategy(strategy.for_queries, strategy.weights, gates=tuple(spec.gate), sharing=sharing)
        scan = spec.scan.model_copy(update={"strategy": gates})
        session = assembly.session(spec.model_copy(update={"scan": scan}), folder)
    else:
        session = assembly.session(spec, folder)
    check_gates(spec.gate, session.tomogram())
    return session


def check_modules(spec: Spec, folder: Path) -> None:
    """Refuse a module that is imported already, from elsewhere: Python would hand over that one without a word."""
    for path in spec.own_code().values():
        name = path.partition(":")[0].partition(".")[0]
        own = [folder / f"{name}.py", folder / name / "__init__.py"]
        source = getattr(sys.modules.get(name), "__file__", None)
        here = [file for file in own if file.is_file()]
        if here and source is not None and not any(file.samefile(source) for file in here):
            raise InputError(
                f"{path!r}: a module {name!r} from {Path(source).parent} is imported already; "
                f"give the one in {folder} another name"
            )


def cache_key(session: Session, spec: Spec) -> str:
    """A short text that changes with the model, the data, the space and all else that outcomes depend on."""
    functions: Record = {axis.name: axis.perturbation.function for axis in session.space.axes}
    own = [name for name, part in spec.axes().items() if part.python is not None]
    code = {name: PythonModel(functions[name]).fingerprint for name in own}
    versions = {name: version for name, version in environment().items() if name != "platform"}
    text = json.dumps([session.identity(), code, versions], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measure(
    spec: Spec, folder: Path, cache: Path, *, name: str, sharing: int | None = None, again: str | None = None
) -> GatedRun:
    """The spec's tomogram and the verdicts on its gates; only what is not in the cache yet is measured.

    `name` is for people who look into the cache. `sharing` gates share the 5 % risk of a wrong decision; None: those of
    the spec. With `again`, what was measured before is thrown away, unless it was
    under the same word: several processes that want one fresh run say the same word.
    """
    import scipy.linalg  # noqa: F401  has a BLAS of its own, whose threads can be limited once it is loaded

    session = prepare(spec, folder, sharing=sharing)
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{name}-{cache_key(session, spec)}.db"
    # Fits are small: BLAS threads that wait for each other on a busy machine made one of a second take a minute.
    with _alone(path.with_suffix(".measuring")), one_blas_thread():
        stored = _Stored.of(path)
        if again is not None and stored.again != again:
            for old in cache.glob(f"{name}-*.db*"):
                old.unlink(missing_ok=True)
            stored = _Stored()
        terms = _terms(spec, session, sharing)
        tomogram, verdicts = stored.tomogram, stored.recall(terms, spec.gate)
        if tomogram is None or verdicts is None:
            if (
                tomogram is None
                or not stored.has_ended_with(terms["quality"])
                or not _enough(session, judge(spec.gate, tomogram, sharing))
            ):
                session.run(path, extra={**about(spec, folder, session.data), keys.AGAIN: again or stored.again})
                tomogram = open_run(path)
            verdicts = judge(spec.gate, tomogram, sharing)
            with Store.create_or_open(path) as store:
                store.put(**{keys.ENDED: _ended(terms, tomogram, verdicts)})
        _tell(path, spec, folder, tomogram)
    return GatedRun(
        tomogram,
        tuple(verdicts),
        path,
        tomogram.inferences - (0 if stored.tomogram is None else stored.tomogram.inferences),
        session.strategy.expected(session.progress()),
        isinstance(session.strategy, GateStrategy),
        sharing or max(1, len(spec.gate)),
    )


# -- what the cache remembers -----------------------------------------------------------------------------------------


def _terms(spec: Spec, session: Session, sharing: int | None) -> Record:
    """What decides how far a run goes and what its verdicts are, besides the outcomes."""
    # What a gate about pass rates is told by was told before there were scores.
    gates = [
        gate.model_dump(mode="json", exclude={"name", "because"} | ({"score"} - gate.model_fields_set))
        for gate in spec.gate
    ]
    quality = None if session.assessment is None else json.loads(json.dumps(session.assessment.describe(), default=str))
    limits = {"budget": session.options.budget, "target": session.options.target, "sharing": sharing or len(gates)}
    return {**limits, "gates": gates, "quality": quality, "rule": RULE}


def _ended(terms: Record, tomogram: Tomogram, verdicts: Sequence[Verdict]) -> Record:
    found = [{"status": one.status, "reason": one.reason, "answer": asdict(one.answer)} for one in verdicts]
    return {"terms": terms, "inferences": tomogram.inferences, "verdicts": found}


def _tell(path: Path, spec: Spec, folder: Path, tomogram: Tomogram) -> None:
    """Have a run file of earlier name this spec and its gates, so that a report of it is about these.

    It may have been measured for other gates, or on another machine whose cache was restored here.
    """
    told, known = spec.about(folder), tomogram.provenance
    same = all(known.get(key) == value for key, value in told.items())
    if same and trusted_runs.made_here(known.get(keys.ID), told[keys.SPEC], told[keys.FOLDER]):
        return
    with Store.create_or_open(path) as store:
        store.put(**told)
        trusted_runs.remember(store)


def _enough(session: Session, verdicts: Sequence[Verdict]) -> bool:
    """Whether the gates of a run that ended under other ones are settled too."""
    towards = isinstance(session.strategy, GateStrategy) and session.options.target is None
    return towards and all(settled(one, TARGET) for one in verdicts)


@dataclass(frozen=True)
class _Stored:
    """What the cache holds of a run; nothing, where its file cannot be read."""

    tomogram: Tomogram | None = None
    again: str | None = None
    ended: Record | None = None

    @classmethod
    def of(cls, path: Path) -> _Stored:
        try:
            with Store.open(path) as store:
                again, ended = store.get(keys.AGAIN), store.get(keys.ENDED)
            return cls(open_run(path), again, ended)
        except InputError:
            return cls()  # a file that is damaged is complained of when the run is to go on in it

    @property
    def has_ended(self) -> bool:
        """A run cut short goes on before anyone looks at it, so that it ends like one that was not."""
        if self.tomogram is None or self.ended is None:
            return False
        return bool(self.ended["inferences"] == self.tomogram.inferences)

    def has_ended_with(self, quality: Record | None) -> bool:
        """Whether a run that ended had the same measure of quality, without which gates may not be answered."""
        return self.has_ended and self.ended is not None and self.ended["terms"].get("quality") == quality

    def recall(self, terms: Record, gates: Sequence[Gate]) -> list[Verdict] | None:
        """The verdicts found earlier under the same terms."""
        if not self.has_ended or self.ended is None or self.ended["terms"] != terms:
            return None
        try:
            return [
                Verdict(gate, _answer(found["answer"]), found["status"], found["reason"])
                for gate, found in zip(gates, self.ended["verdicts"], strict=True)
            ]
        except (LookupError, TypeError, ValueError):
            return None  # judged again


def _answer(fields: Record) -> Answer:
    worst = tuple((tuple(sigma), *numbers) for sigma, *numbers in fields["worst"])
    intervals = {name: tuple(fields[name]) for name in ("model_free", "modelled") if fields.get(name) is not None}
    excluded = fields["excluded"]
    return Answer(
        **{
            **fields,
            **intervals,
            "worst": worst,
            "excluded": None if excluded is None else Excluded(**excluded),
        }
    )


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """One process at a time; the others wait, and then find in the cache what the first one measured."""
    while True:
        try:
            lock = Lock(path)
            break
        except InputError as error:
            if error.__cause__ is not None:  # no place to write, rather than another that writes
                raise
            time.sleep(WAIT)
    try:
        yield
    finally:
        lock.release()
