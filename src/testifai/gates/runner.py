"""Measuring until gates are decided or the budget is spent; earlier runs are cached."""

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
from testifai.gates.strategy import GateStrategy, settled, with_strategy
from testifai.gates.verdicts import RULE, Verdict, check_gates, judge
from testifai.identity.run_identity import environment
from testifai.models.python import PythonModel
from testifai.runs import keys, trusted_runs
from testifai.runs.lock import Lock
from testifai.runs.store import Store
from testifai.session import assembly
from testifai.session.observers import notes
from testifai.session.session import Session
from testifai.session.stored_runs import about, open_run, read_run
from testifai.spec.options import strategy_of
from testifai.spec.parsing import Gate, Spec
from testifai.statistics.multiplicity import confidence_each
from testifai.strategies.adaptive import TARGET, Adaptive
from testifai.support.threads import one_blas_thread
from testifai.support.types import Record
from testifai.tomogram import Answer, Excluded, Tomogram
from testifai.tomogram.answers import QueryInfo, RunCounts

WAIT = 0.2  # seconds between two attempts to get the lock of a cached run


@dataclass(frozen=True)
class GatedRun:
    """A run for gates, its verdicts and its cost."""

    tomogram: Tomogram
    verdicts: tuple[Verdict, ...]
    path: Path
    new: int  # inferences that were not in the cache
    budget: int  # most inferences
    adaptive: bool  # whether undecided gates are given more inferences
    sharing: int  # gates that share the 5 % risk of a wrong decision

    @property
    def warnings(self) -> list[str]:
        """Return warnings of the run, such as class indices that do not match."""
        return notes(self.tomogram.provenance)

    @property
    def confidence(self) -> float:
        """Return the confidence of each gate's bounds."""
        return confidence_each(self.sharing)

    def lacking(self, verdict: Verdict) -> tuple[int, int]:
        """Estimate how many more inferences would decide a gate; also return how many are left on its tests.

        The distance of a bound falls with the square root of the trials.
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
    """Make the session of a spec; with an adaptive strategy, one that continues until the gates are decided."""
    check_modules(spec, folder)
    strategy = strategy_of(spec.scan)
    if type(strategy) is Adaptive and spec.gate:
        options = strategy.for_queries, strategy.weights, strategy.focus
        gates = GateStrategy(*options, gates=tuple(spec.gate), sharing=sharing)
        spec = with_strategy(spec, gates)
    session = assembly.session(spec, folder)
    check_gates(spec.gate, session.tomogram())
    return session


def check_modules(spec: Spec, folder: Path) -> None:
    """Raise InputError if a module of that name was imported from another file: Python would reuse it."""
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
    """Return a short text that changes with everything that outcomes depend on."""
    functions: Record = {axis.name: axis.perturbation.function for axis in session.space.axes}
    own = [name for name, part in spec.axes().items() if part.python is not None]
    code = {name: PythonModel(functions[name]).fingerprint for name in own}
    versions = {name: version for name, version in environment().items() if name != "platform"}
    text = json.dumps([session.identity(), code, versions], sort_keys=True, default=str)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


def measure(
    spec: Spec,
    folder: Path,
    cache: Path,
    *,
    name: str,
    sharing: int | None = None,
    again: str | None = None,
    update: bool = False,
) -> GatedRun:
    """Measure what is not in the cache yet, and evaluate the gates of a spec.

    `name` is part of the file name. `sharing` gates share the 5 % risk of a wrong decision; None: those of the spec.
    With `update`, and for a model that may have changed unnoticed, a cached run is discarded, unless it was measured
    under the same word `again` (by another process of the same test session).
    """
    import scipy.linalg  # noqa: F401  has its own BLAS, whose threads can only be limited once it is loaded

    session = prepare(spec, folder, sharing=sharing)
    cache.mkdir(parents=True, exist_ok=True)
    path = cache / f"{name}-{cache_key(session, spec)}.db"
    # Fits are small: on a busy machine, several BLAS threads made one of a second take a minute.
    with _alone(path.with_suffix(".measuring")), one_blas_thread():
        stored = _Stored.of(path)
        unsure = session.model.may_read_files or session.model.unidentified_reason is not None
        if (update or unsure) and (again is None or stored.again != again):
            for old in cache.glob(f"{name}-*.db*"):
                old.unlink(missing_ok=True)
            stored = _Stored()
        terms = _terms(spec, session, sharing)
        tomogram, verdicts = stored.tomogram, stored.recall(terms, spec.gate)
        if tomogram is None or verdicts is None:
            # Without the same quality scores, gates may not be answered.
            usable = stored.ended is not None and stored.ended["terms"].get("quality") == terms["quality"]
            # A run that ended under other gates may have settled these too.
            towards = isinstance(session.strategy, GateStrategy) and session.options.target is None
            if tomogram is None or not (
                usable and towards and all(settled(one, TARGET) for one in judge(spec.gate, tomogram, sharing))
            ):
                session.run(path, extra={**about(spec, folder, session.data), keys.AGAIN: again or stored.again})
                tomogram = open_run(path)
            verdicts = judge(spec.gate, tomogram, sharing)
            answers = [{"status": one.status, "reason": one.reason, "answer": asdict(one.answer)} for one in verdicts]
            with Store.create_or_open(path) as store:
                store.put(**{keys.ENDED: {"terms": terms, "inferences": tomogram.inferences, "verdicts": answers}})
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


# -- cached runs ------------------------------------------------------------------------------------------------------


def _terms(spec: Spec, session: Session, sharing: int | None) -> Record:
    """Return what the end of a run and its verdicts depend on, besides the outcomes."""
    # Older run files do not have the default of score.
    gates = [
        gate.model_dump(mode="json", exclude={"name", "because"} | ({"score"} - gate.model_fields_set))
        for gate in spec.gate
    ]
    quality = None if session.assessment is None else json.loads(json.dumps(session.assessment.describe(), default=str))
    limits = {"budget": session.options.budget, "target": session.options.target, "sharing": sharing or len(gates)}
    return {**limits, "gates": gates, "quality": quality, "rule": RULE}


def _tell(path: Path, spec: Spec, folder: Path, tomogram: Tomogram) -> None:
    """Store this spec in a run file that was measured for other gates, or on another machine, for its reports."""
    told, known = spec.about(folder), tomogram.provenance
    same = all(known.get(key) == value for key, value in told.items())
    if same and trusted_runs.made_here(known.get(keys.ID), told[keys.SPEC], told[keys.FOLDER]):
        return
    with Store.create_or_open(path) as store:
        store.put(**told)
        trusted_runs.remember(store)


@dataclass(frozen=True)
class _Stored:
    """A cached run; empty if its file cannot be read: an error is raised when the run is resumed."""

    tomogram: Tomogram | None = None
    again: str | None = None
    ended: Record | None = None  # None for a run that was interrupted, which is resumed first

    @classmethod
    def of(cls, path: Path) -> _Stored:
        try:
            with Store.open(path) as store:
                again, ended, tomogram = store.get(keys.AGAIN), store.get(keys.ENDED), read_run(store)
        except InputError:
            return cls()
        finished = ended is not None and ended["inferences"] == tomogram.inferences
        return cls(tomogram, again, ended if finished else None)

    def recall(self, terms: Record, gates: Sequence[Gate]) -> list[Verdict] | None:
        """Return the stored verdicts if their terms were the same."""
        if self.ended is None or self.ended["terms"] != terms:
            return None
        try:
            return [
                Verdict(gate, _answer(found["answer"]), found["status"], found["reason"])
                for gate, found in zip(gates, self.ended["verdicts"], strict=True)
            ]
        except (LookupError, TypeError, ValueError):
            return None


def _answer(fields: Record) -> Answer:
    worst = tuple((tuple(sigma), *numbers) for sigma, *numbers in fields["worst"])
    intervals = {name: tuple(fields[name]) for name in ("model_free", "modelled") if fields.get(name) is not None}
    excluded = fields["excluded"]
    excluded = None if excluded is None else Excluded(**excluded)
    info = fields["info"]
    if info is not None:
        info = QueryInfo(**{**info, "worst": tuple(info["worst"]), "runs": RunCounts(**info["runs"])})
    return Answer(**{**fields, **intervals, "worst": worst, "excluded": excluded, "info": info})


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Wait until no other process measures the same run."""
    lock = None
    while lock is None:
        try:
            lock = Lock(path)
        except InputError as error:
            if error.__cause__ is not None:  # it cannot be written
                raise
            time.sleep(WAIT)
    try:
        yield
    finally:
        lock.release()
