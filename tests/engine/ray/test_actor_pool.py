"""An actor in this process: what it measures of a task, and what the driver makes of one that is not like it."""

import pickle
import sys
from types import SimpleNamespace

import numpy as np
import pytest

from testifai.data.sample import demo_data, demo_model_path
from testifai.engine.local import LocalExecutor
from testifai.engine.plan import Work
from testifai.engine.ray.actor_pool import ActorPool, _import_path, _Seat
from testifai.engine.ray.jobs import Actor, Measuring, TrialTask
from testifai.errors import InputError
from testifai.models import wrap
from testifai.models.onnx import OnnxModel
from testifai.models.texts.base import RowCache
from testifai.runs.outcomes import Outcomes
from testifai.support.user_code import import_object
from testifai.support.version import VERSION
from testifai.testing.executors import INPUTS, _subject


@pytest.fixture
def actor(monkeypatch):
    monkeypatch.setattr(sys, "path", list(sys.path))
    return Actor(".", [])


@pytest.mark.parametrize("oracle", ["label", "consistency"])
def test_it_measures_what_a_local_executor_does(actor, oracle):
    local = LocalExecutor(_subject(oracle), batch_size=7, workers=1)
    expected = Outcomes(INPUTS)
    local.run(
        Work(np.arange(9), np.arange(INPUTS)), expected, lambda m: expected.record(m.configuration, m.places, m.passed)
    )
    actor.load(Measuring(_subject(oracle), 5, 1.0), 0.0)
    table = np.random.default_rng(0).random((4, INPUTS)) < 0.5
    task = TrialTask.of(np.array([3, 4, 5, 8]), np.arange(INPUTS), table)
    if oracle == "consistency":
        references = local.references.get(task.places)
        task = TrialTask(task.configurations, task.places, task.wanted, references)
    outcomes = list(actor.do(task).outcomes(task))
    assert [one.configuration for one in outcomes] == [3, 4, 5, 8]
    for one, row in zip(outcomes, task.table(), strict=True):
        np.testing.assert_array_equal(one.places, task.places[row])
        np.testing.assert_array_equal(one.passed, expected.passed(one.configuration, one.places))


def test_a_module_goes_to_the_first_gpu_that_the_actor_is_shown(actor, monkeypatch):
    torch = pytest.importorskip("torch")
    module, moved = torch.nn.Linear(3, 3), []
    monkeypatch.setattr(torch.cuda, "is_available", lambda: True)
    monkeypatch.setattr(module, "to", lambda device: moved.append(device) or module, raising=False)
    model = wrap(module)
    actor.load(SimpleNamespace(model=model), 0.0)
    assert moved == []
    actor.load(SimpleNamespace(model=model), 0.5)
    assert moved == ["cuda"]  # without a number: Ray shows an actor its own alone
    assert model.device == torch.device("cuda")


def test_a_node_with_another_version_is_refused():
    pool = ActorPool.__new__(ActorPool)
    pool._ray = SimpleNamespace(get=lambda answer: ("0.0.1", "node7"))
    with pytest.raises(InputError, match=f"workers: node7 has testifai 0.0.1, this is {VERSION}; install the same"):
        pool._check_loaded(_Seat(None, None, None))


def test_modules_of_a_spec_are_found_where_they_were(tmp_path, monkeypatch):
    (tmp_path / "my_ray_module.py").write_text("def model(rows):\n    return rows\n")
    monkeypatch.setattr(sys, "path", list(sys.path))
    import_object("my_ray_module:model", folder=tmp_path)
    assert sys.path[-1] == str(tmp_path.resolve())
    assert str(tmp_path.resolve()) in _import_path()


def test_folders_of_installed_packages_hide_nothing(tmp_path, monkeypatch):
    """Cython has parts of packages that are called like modules of their own."""
    inside = tmp_path / "site-packages" / "sklearn"
    monkeypatch.setitem(sys.modules, "_cyutility", SimpleNamespace(__file__=str(inside / "_cyutility.so")))
    assert str(inside) not in _import_path()


def test_models_of_files_are_opened_again_from_another_folder(tmp_path, monkeypatch):
    monkeypatch.chdir(demo_model_path().parent)
    packed = pickle.dumps(OnnxModel(demo_model_path().name))
    monkeypatch.chdir(tmp_path)
    images = demo_data().inputs[:3]
    np.testing.assert_array_equal(pickle.loads(packed)(images), OnnxModel(demo_model_path())(images))


def test_what_was_worked_out_stays_at_home():
    cache = RowCache(2.5)
    cache.rows(["a"], lambda texts: np.zeros((1, 1)))
    copy = pickle.loads(pickle.dumps(cache))
    assert (copy.limit, len(copy)) == (cache.limit, 0)
