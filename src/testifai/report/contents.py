"""The contents of a report, gathered once for all its formats: page, Markdown, JUnit, JSON."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from testifai.errors import InputError
from testifai.gates import verdicts as gates
from testifai.identity.run_identity import recorded
from testifai.locality.measure import from_run, tells_confusions
from testifai.present.examples import Failures, failures
from testifai.present.terminal import facts
from testifai.runs import keys
from testifai.runs.store import Store
from testifai.session.observers import notes
from testifai.session.stored_runs import SourceRecord, changed, measured, read_run, reopen, sources
from testifai.support.types import Record
from testifai.sweeps.storage import StoredSweep, finished, sweeps_in
from testifai.tomogram import Answer, Tomogram
from testifai.tomogram.benchmark import Benchmark, whole_suite
from testifai.tomogram.lowest_tests import WorstTest, worst_tests
from testifai.tomogram.regions import RegionAnswer, RegionSearch, standard_queries, worst_regions
from testifai.tomogram.run_state import unfinished
from testifai.tomogram.trust import Trust, recall

if TYPE_CHECKING:
    from testifai.locality.summary import Explanation


@dataclass(frozen=True)
class Stored:
    """A run file's scan, if it holds one, and its sweeps."""

    path: Path
    tomogram: Tomogram | None
    sweeps: dict[str, StoredSweep]


def read_stored(run_file: Path) -> Stored:
    """Open the file once, and check it once."""
    with Store.open(run_file) as store:
        scanned = store.get(keys.IDENTITY) is not None
        return Stored(run_file, read_run(store) if scanned else None, sweeps_in(store))


WORST = 15
MOST_CLASSES = 60  # up to which a heat map of classes can be read


@dataclass(frozen=True)
class Contents:
    """A run in numbers and words. The intervals of `standard` hold together, and so do those of `search`."""

    run: str  # the file's name
    made_of: dict[str, SourceRecord]  # model and data
    tomogram: Tomogram
    everything: Answer
    by_order: dict[int, Answer]
    by_class: dict[str, Answer]
    standard: dict[str, RegionAnswer]
    search: RegionSearch
    worst: tuple[WorstTest, ...]
    verdicts: tuple[gates.Verdict, ...]
    trust: Trust
    sweeps: dict[str, list[Record]]
    failures: tuple[Failures, ...]
    failures_note: str | None  # why there are no failures to see
    errors: Explanation | None = None  # where the run kept what was predicted
    benchmark: Benchmark | None = None  # where the space holds the whole of a suite
    requires_robustness: bool = True  # whether a gate requires anything of a perturbed condition
    sharing: int = 1  # gates that share the 5 % risk of a wrong decision
    changed: tuple[str, ...] = ()  # files that are other ones now than were run, a line each

    @property
    def holds(self) -> bool:
        """Return True if the run is finished and every gate holds."""
        return self.unfinished is None and all(verdict.holds for verdict in self.verdicts)

    @property
    def unfinished(self) -> str | None:
        """The line about a run that is not finished."""
        return unfinished(self.tomogram)

    def as_dict(self) -> Record:
        """Plain data for JSON."""
        tomogram = self.tomogram
        return {
            "run": self.run,
            **{part: made.as_dict() for part, made in self.made_of.items()},
            **facts(tomogram),
            "notes": notes(tomogram.provenance),
            "hashes": tomogram.provenance.get(keys.HASHES),
            "changed": list(self.changed),
            "ran": tomogram.provenance.get(keys.RAN) or [],
            "environments": recorded(tomogram.provenance),
            "spec": tomogram.provenance.get(keys.SPEC),
            "quality": None if tomogram.quality is None else tomogram.quality.name,
            "everything": self.everything.as_dict(),
            "by_order": {str(order): found.as_dict() for order, found in self.by_order.items()},
            "by_class": {name: found.as_dict() for name, found in self.by_class.items()},
            "standard_queries": {name: asked.as_dict() for name, asked in self.standard.items()},
            "worst_regions": [region.as_dict() for region in self.search.regions],
            "regions_searched": self.search.searched,
            "gates": [verdict.as_dict() for verdict in self.verdicts],
            "requires_robustness": self.requires_robustness,
            "trust": self.trust.as_dict(),
            "sweeps": self.sweeps,
            "failures_shown": sum(len(one.examples) for one in self.failures),
            "failures_note": self.failures_note,
            "errors": None if self.errors is None else self.errors.as_dict(),
            "benchmark": None if self.benchmark is None else self.benchmark.as_dict(),
        }


def gather(run: Path | Stored, *, spec: Path | None = None, examples: int = 6, score: str | None = None) -> Contents:
    """Gather the contents of a run's report. `examples` is the number of failing inputs shown of each test.

    With `score`, such as "f1", the report is about its mean and not about pass rates.
    """
    stored = run if isinstance(run, Stored) else read_stored(run)
    if stored.tomogram is None:
        raise InputError(f"run file: {stored.path} holds no run yet; start it with: testifai run SPEC.toml")
    tomogram = measured(stored.tomogram).scored(score)
    everything = tomogram.query("order >= 0")
    required, sharing = gates.stored_gates(tomogram), gates.stored_sharing(tomogram)
    queries = standard_queries(tomogram.space)
    asked = tomogram.queries(list(queries.values()))
    shown, note = _failures(spec, tomogram, examples)
    return Contents(
        run=stored.path.name,
        made_of=sources(tomogram.provenance),
        tomogram=tomogram,
        everything=everything,
        by_order=tomogram.by_order(),
        by_class=tomogram.by_class(),
        standard={name: RegionAnswer(queries[name], answer) for name, answer in zip(queries, asked, strict=True)},
        search=worst_regions(tomogram),
        worst=worst_tests(tomogram.estimator, WORST),
        verdicts=tuple(gates.judge(required, tomogram, sharing)),
        trust=recall(tomogram) if everything.inferred else Trust(),
        sweeps=finished(stored.sweeps),
        failures=shown,
        failures_note=note,
        errors=_errors(tomogram),
        benchmark=None if (suite := whole_suite(tomogram.space)) is None else tomogram.benchmark(suite),
        requires_robustness=gates.requires_robustness(required, tomogram),
        sharing=sharing,
        changed=tuple(changed(tomogram, spec)),
    )


def _errors(tomogram: Tomogram) -> Explanation | None:
    if not tells_confusions(tomogram, MOST_CLASSES):
        return None
    from testifai.locality.explain import explain

    try:
        return explain(from_run(tomogram), arity=1, properties=tomogram.space)
    except InputError:  # such as too few inputs under single perturbations
        return None


def _failures(spec: Path | None, tomogram: Tomogram, examples: int) -> tuple[tuple[Failures, ...], str | None]:
    """Failing inputs, or why there are none: a report must not fail because its data are missing."""
    if examples == 0:
        return (), "left out, as asked"
    try:
        found = failures(reopen(tomogram, spec).subject, tomogram, each=examples)
    except InputError as error:
        if spec is not None:  # which the user named for this
            raise
        return (), str(error)
    return found, None if found else "no input failed any test"
