from __future__ import annotations

import numpy as np
import pytest

import testifai as ta
from testifai import data, models
from testifai.engine import backend
from testifai.errors import InputError
from testifai.session.assembly import session_of
from testifai.testing.executors import _subject

ROWS = np.random.default_rng(0).normal(size=(20, 3))
SPACE = ta.Space({"shift": ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.5], tensors=True)})


def refused(executor=None, device=None, precision="float32", inputs=ROWS):
    model = models.wrap(lambda batch: np.zeros(len(batch), int))
    with pytest.raises(InputError) as caught:
        backend.choose(executor, device, precision, model, data.wrap(inputs))
    return str(caught.value)


def test_without_a_device_a_run_is_what_it_was():
    chosen = backend.choose(None, None, "float32", _subject().model, data.wrap(ROWS))
    assert (chosen.executor, chosen.options, chosen.identity) == ("local", {}, {})
    assert backend.choose("local", None, "float32", _subject().model, data.wrap(ROWS)).executor == "local"
    assert backend.choose({"use": "other"}, None, "float32", _subject().model, data.wrap(ROWS)).executor == {
        "use": "other"
    }
    session = session_of(lambda batch: np.zeros(len(batch), int), (ROWS, np.zeros(20, int)), SPACE)
    assert not {"backend", "precision", "device"} & set(session.identity())


def test_what_does_not_go_together_is_one_line():
    assert refused("local", "cpu") == (
        "device, precision: the executor 'local' has none; leave them out, or the executor"
    )
    assert refused(precision="bf16") == "precision: 'bf16' is for runs on a device; say which, such as device = 'cuda'"
    with pytest.raises(InputError, match=r"^precision: must be one of float32, bf16, got 'half'$"):
        session_of(lambda batch: np.zeros(len(batch), int), (ROWS, np.zeros(20, int)), SPACE, precision="half")


def test_devices_and_inputs_that_do_not_fit():
    torch = pytest.importorskip("torch")
    assert refused(device="cuda:7").startswith("device: 'cuda:7' is not there; accepted: cpu")
    assert refused(device="cpu", inputs=["a", "b"]).startswith("device: 'cpu' is for inputs that are numbers; texts")
    assert refused(device="cpu", inputs=ROWS.astype(np.longdouble)).startswith("device: inputs of dtype float128 do")
    if not torch.cuda.is_available():
        assert refused(device="cuda") == "device: 'cuda' is not there; accepted: cpu"


def test_a_torch_module_on_the_cpu_keeps_its_runs_and_a_device_makes_another(tmp_path):
    torch = pytest.importorskip("torch")
    labels = ROWS.argmax(axis=1)

    def scan(store, **options):
        return ta.scan(torch.nn.Identity(), (ROWS, labels), SPACE, strategy="full", store=store, **options)

    old = scan(tmp_path / "old.db")
    assert "backend" not in old.provenance["identity"]
    with pytest.raises(InputError, match=r"belongs to another run: backend was null, now tensors; undo"):
        scan(tmp_path / "old.db", device="cpu")
    new = scan(tmp_path / "new.db", device=torch.device("cpu"))
    assert new.provenance["identity"]["backend"] == "tensors"
    assert scan(tmp_path / "new.db", executor="device").inferences == new.inferences
    with pytest.raises(InputError, match=r"belongs to another run: precision was null, now bf16; undo"):
        scan(tmp_path / "new.db", device="cpu", precision="bf16")
    with pytest.raises(InputError, match=r"backend was tensors, now null"):
        scan(tmp_path / "new.db")


def test_a_module_is_asked_where_the_run_is_and_stays_where_it_was():
    torch = pytest.importorskip("torch")
    module = torch.nn.Linear(3, 2)
    model = models.wrap(module)
    assert model.placed("cpu") is model
    elsewhere = model.placed("meta")
    assert (elsewhere.place, model.place) == ("meta", "cpu")
    assert module.weight.device.type == "cpu"
