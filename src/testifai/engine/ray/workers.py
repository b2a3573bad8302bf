"""Actors of a Ray cluster as workers: found when first needed, kept between inquiries, and ended with what began."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import closing, contextmanager
from typing import Any

from testifai.engine.ray.cluster import Cluster
from testifai.engine.ray.crew import Crew, Wanted
from testifai.engine.ray.cutting import Pace
from testifai.engine.ray.inquiries import Bundled, threads_of
from testifai.engine.workers import Inquiry, Job, Said, Workers
from testifai.support import checks


class RayWorkers(Workers):
    """Actors of a Ray cluster, each with the inquiry of the moment in memory.

    `address` is that of a running cluster ("auto": the one on this machine; "ray://HOST:10001": through its client
    server); without one a cluster on this machine is used and, where there is none, started until this is closed.
    `actors` (or `workers`) is their number, by default as many as the cluster has room for, each with so many CPUs and
    GPUs.
    """

    def __init__(
        self,
        *,
        workers: int | None = None,
        interrupted: Callable[[], bool] = lambda: False,
        address: str | None = None,
        actors: int | None = None,
        cpus: float = 1.0,
        gpus: float = 0.0,
    ) -> None:
        told = workers if actors is None else checks.whole("executor: actors", actors, least=1)
        self.wanted = Wanted(
            told,
            checks.number("executor: cpus", cpus, above=0),
            checks.number("executor: gpus", gpus, least=0),
        )
        self.interrupted, self._address = interrupted, address
        self._crew: Crew | None = None
        self._loaded: Inquiry[Any, Any] | None = None
        self._end: weakref.finalize[..., RayWorkers] | None = None

    def crew(self, inquiry: Inquiry[Any, Any]) -> Crew:
        """Actors that have the inquiry, or will have it before they are asked."""
        crew = self._crew or self._start()
        if inquiry is not self._loaded:
            with self.ended_by_errors():
                crew.load(inquiry)
            self._loaded = inquiry
        return crew

    def map(
        self, inquiry: Inquiry[Job, Said], jobs: Iterable[Job], *, alone: bool = False
    ) -> Generator[Said, None, None]:
        waiting = list(jobs)
        if not waiting:
            return
        pace, cut, handed_on = Pace(first=1, shortest=0.05), 0, 0
        arrived: dict[int, list[Said]] = {}

        def bundle(actors: int) -> tuple[int, list[Job]] | None:
            nonlocal cut
            begin = cut
            cut = min(len(waiting), begin + pace.trials(len(waiting) - begin, actors))
            return (begin, waiting[begin:cut]) if cut > begin else None

        crew = self.crew(self._bundled(inquiry, alone))
        with self.ended_by_errors(), closing(crew.run(bundle, self.interrupted)) as answers:
            for (begin, asked), (said, seconds) in answers:
                pace.note(len(asked), seconds)
                arrived[begin] = said
                while handed_on in arrived:
                    ready = arrived.pop(handed_on)
                    handed_on += len(ready)
                    yield from ready

    def close(self) -> None:
        """End the actors, and leave the cluster as it was found; a later call starts anew."""
        if self._end is not None:
            self._end()
        self._crew, self._loaded, self._end = None, None, None

    @contextmanager
    def ended_by_errors(self) -> Iterator[None]:
        """Whatever goes wrong in here ends the actors: they may be in the middle of something."""
        try:
            yield
        except BaseException:
            self.close()
            raise

    def _bundled(self, inquiry: Inquiry[Any, Any], alone: bool) -> Bundled:
        threads = 1 if alone else threads_of(inquiry.model, self.wanted.cpus)
        loaded = self._loaded
        if isinstance(loaded, Bundled) and loaded.inquiry is inquiry and loaded.threads == threads:
            return loaded
        return Bundled(inquiry, threads)

    def _start(self) -> Crew:
        cluster = Cluster(self._address)
        try:
            crew = Crew(cluster, self.wanted)
        except BaseException:
            cluster.close()
            raise
        # Whatever becomes of these workers, nothing of them stays on the cluster.
        self._end = weakref.finalize(self, _end, crew, cluster)
        self._crew = crew
        return crew


def _end(crew: Crew, cluster: Cluster) -> None:
    crew.close()
    cluster.close()
