"""A run file that grows when a test says so: the outcomes of a finished run, saved in portions."""

from __future__ import annotations

from testifai.runs import keys
from testifai.runs.outcomes import Outcomes
from testifai.runs.store import Store


class Growing:
    """What a process does that makes a run, one step at a time."""

    def __init__(self, finished, path):
        with Store.open(finished) as source:
            inputs = source.get(keys.INPUTS)
            self.all = source.load(inputs)
            about = {key: source.get(key) for key in (*keys.SHARED, keys.ID)}
            labels = source.get_array(keys.LABELS)
        self.path, self.store = path, Store.create_or_open(path)
        self.store.put(**about)
        self.store.put_array(keys.LABELS, labels)
        self.outcomes = Outcomes(inputs)
        self.tests = sorted(self.all)

    def grow(self, count, inputs=None):
        """So many more tests, on all inputs or on the first of them."""
        some, self.tests = self.tests[:count], self.tests[count:]
        for test in some:
            places, passed = (part[:inputs] for part in self.all.trials(test))
            kept = {name: self.all.kept_at(test, name, places) for name in self.all.kept_names()}
            self.outcomes.record(test, places, passed, kept)
            self.store.touch(test, places)
        self.store.save(self.outcomes)

    def finish(self):
        self.grow(len(self.tests))
        self.store.put(**{keys.FINISHED: self.outcomes.total()})
        self.store.close()

    def stop(self):
        """As a process that was killed: the lock is gone with it."""
        self.store.close()
