"""What a fit learned is kept in the run file, gives the same answers to the last bit, and is never that of another."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

import testifai as ta
from testifai.runs import keys
from testifai.runs.store import Store
from testifai.session.stored_runs import open_run
from testifai.surrogates.process import input_correlation, marginal_likelihood, posterior, process
from testifai.tomogram import estimator
from testifai.tomogram.trust import keep

QUERIES = ("order >= 0", "a >= 2 and b == 1", "order == 1")


@pytest.fixture(scope="module", params=["outcomes alone", "margins too"])
def run_file(request, tmp_path_factory):
    path = tmp_path_factory.mktemp("run") / "run.db"
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by * rng.normal(size=x.shape[1:]), [0.0, 0.15, 0.3])
    rows = np.random.default_rng(0).normal(size=(120, 2))

    def model(x):
        scores = np.stack([x.sum(axis=1), -x.sum(axis=1)], axis=1)
        return scores if request.param == "margins too" else scores.argmin(axis=1)

    labels = (rows.sum(axis=1) < 0).astype(int)
    ta.scan(model, (rows, labels), ta.Space({"a": shift, "b": shift, "c": shift}), budget=600, store=path)
    keep(path, open_run(path))
    return path


def answers(tomogram):
    asked = [tomogram.query(text).as_dict() for text in QUERIES]
    return asked, tomogram.estimate.tobytes(), tomogram.low.tobytes(), tomogram.high.tobytes()


@pytest.fixture
def learning(monkeypatch):
    """How often something was learned."""
    found = []
    for module in (process, posterior):
        real = module.maximise
        monkeypatch.setattr(module, "maximise", lambda *given, real=real: found.append("parameters") or real(*given))
    monkeypatch.setattr(
        process, "fit_same_input", lambda *given: found.append("inputs") or input_correlation.fit_same_input(*given)
    )
    real_ratios = marginal_likelihood._ratios
    monkeypatch.setattr(marginal_likelihood, "_ratios", lambda *given: found.append("draws") or real_ratios(*given))
    return found


def test_a_kept_fit_answers_as_the_first_did_without_learning(run_file, learning):
    kept = open_run(run_file)
    found = answers(kept)
    assert not learning
    plain = replace(kept, provenance={**kept.provenance, keys.FIT: None})
    assert answers(plain) == found
    assert {"parameters", "draws"} <= set(learning)


@pytest.mark.parametrize("change", ["one outcome", "seed", "population", "version", "method", "levels"])
def test_what_another_fit_learned_is_not_taken(run_file, learning, change, monkeypatch):
    tomogram = open_run(run_file)
    if change == "one outcome":
        outcomes, test = tomogram.outcomes.snapshot(), int(tomogram.estimator.measured_ids[3])
        tried, _ = tomogram.outcomes.bits(test)
        free = int(np.flatnonzero(~np.unpackbits(tried)[: outcomes.inputs].astype(bool))[0])
        outcomes.record(test, np.array([free]), np.array([True]))
        tomogram = replace(tomogram, outcomes=outcomes)
    elif change == "seed":
        tomogram = replace(tomogram, settings=replace(tomogram.settings, seed=tomogram.settings.seed + 1))
    elif change == "population":
        tomogram = replace(tomogram, settings=replace(tomogram.settings, population="data"))
    elif change in ("version", "method"):
        monkeypatch.setattr(estimator, change.upper(), "another")
    else:
        axes = {name: ta.Perturbation("x", lambda x, by, rng: x, range(5)) for name in "abc"}
        tomogram = replace(tomogram, space=ta.Space(axes))
    tomogram.estimator.fitted()
    assert "parameters" in learning


def test_a_fit_that_cannot_be_is_learned_again(run_file, tmp_path, learning):
    tomogram = open_run(run_file)
    expected, kept = answers(tomogram), tomogram.provenance[keys.FIT]
    for spoilt in (["no", "number"], [1.0], [float("nan")] * 30, {"a": 1}, None):
        learned = dict.fromkeys(kept["learned"], spoilt)
        again = replace(tomogram, provenance={**tomogram.provenance, keys.FIT: {**kept, "learned": learned}})
        assert answers(again) == expected
    assert "parameters" in learning


def test_an_unreadable_fit_is_a_damaged_file(run_file, tmp_path):
    copied = tmp_path / "run.db"
    copied.write_bytes(run_file.read_bytes())
    with Store.create_or_open(copied) as store:
        store.put(**{keys.FIT: {"of": 3}})
    with pytest.raises(ta.InputError, match="damaged"):
        open_run(copied)
