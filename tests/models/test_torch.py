from __future__ import annotations

import sys

import numpy as np
import pytest

from testifai import models
from testifai.errors import InputError

torch = pytest.importorskip("torch")

from testifai.models.torch import TorchModel  # noqa: E402

RNG = np.random.default_rng(0)
IMAGES = RNG.integers(0, 256, (4, 6, 5, 3), dtype=np.uint8)


def make():
    torch.manual_seed(0)
    return torch.nn.Sequential(
        torch.nn.Conv2d(3, 2, 3),
        torch.nn.BatchNorm2d(2),
        torch.nn.Dropout(0.5),
        torch.nn.Flatten(),
        torch.nn.Linear(24, 7),
    )


def test_images_are_handed_over_as_nchw_in_0_to_1():
    module = make()
    model = models.wrap(module)
    assert isinstance(model, TorchModel)
    with torch.no_grad():
        expected = module.eval()(torch.tensor(IMAGES).permute(0, 3, 1, 2) / 255).numpy()
    np.testing.assert_allclose(model(IMAGES), expected, rtol=1e-5, atol=1e-6)
    assert np.array_equal(model(IMAGES), model(IMAGES))  # no dropout: the module is in evaluation mode


def test_each_part_is_left_in_the_mode_it_was_in():
    module = make().train()
    module[1].eval()  # frozen, as is usual when fine-tuning
    model = TorchModel(module)
    before = [part.training for part in module.modules()]
    assert np.array_equal(model(IMAGES), model(IMAGES))  # no dropout
    assert isinstance(model.fingerprint, str)
    with pytest.raises(RuntimeError):
        model(IMAGES[:, :1])
    assert [part.training for part in module.modules()] == before == [True, True, False, True, True, True]


def test_the_mode_is_no_part_of_the_fingerprint():
    class Own(torch.nn.Module):
        def forward(self, x):
            return x.flatten(1)

    assert TorchModel(Own().train()).fingerprint == TorchModel(Own().eval()).fingerprint


def test_declared_preprocessing():
    module = torch.nn.Flatten()
    made = TorchModel(module, layout="NHWC", scale="signed", mean=[0.1, 0.2, 0.3], std=0.5)(IMAGES)
    expected = ((IMAGES / 127.5 - 1 - [0.1, 0.2, 0.3]) / 0.5).reshape(4, -1)
    np.testing.assert_allclose(made, expected, rtol=1e-5, atol=1e-5)


def test_tables_and_tokens_are_handed_over_as_they_are():
    table = RNG.normal(size=(3, 4))
    assert TorchModel(torch.nn.Identity())(table).dtype == np.float32
    np.testing.assert_allclose(TorchModel(torch.nn.Identity())(table), table, rtol=1e-6)
    tokens = RNG.integers(0, 9, (3, 4))
    assert np.array_equal(TorchModel(torch.nn.Identity())(tokens), tokens)
    assert TorchModel(torch.nn.Identity(), scale=2.0)(table).max() == pytest.approx(2 * table.max(), rel=1e-6)


def test_half_precision_outputs():
    class Half(torch.nn.Module):
        def forward(self, x):
            return x.flatten(1).to(torch.bfloat16)

    assert TorchModel(Half())(IMAGES).dtype == np.float32


def test_fingerprint_is_of_the_weights():
    module = make()
    same = TorchModel(module).fingerprint
    assert TorchModel(make()).fingerprint == same
    with torch.no_grad():
        module[0].bias[0] += 1
    assert TorchModel(module).fingerprint != same


@pytest.fixture
def factory(tmp_path):
    (tmp_path / "testifai_nets.py").write_text(
        "import torch\ndef make():\n    return torch.nn.Linear(3, 2)\ndef number():\n    return 3\n"
        "def fail():\n    raise OSError('no disk')\nready = torch.nn.Linear(3, 2)\n"
    )
    yield tmp_path
    sys.modules.pop("testifai_nets", None)


@pytest.mark.parametrize("kind", ["pt", "nested.pt", "safetensors"])
def test_weights_are_loaded(factory, kind):
    module = torch.nn.Linear(3, 2)
    if kind == "safetensors":
        save_file = pytest.importorskip("safetensors.torch").save_file
        save_file(module.state_dict(), factory / f"w.{kind}")
    else:
        state = module.state_dict()
        torch.save({"state_dict": state, "epoch": 3} if "nested" in kind else state, factory / f"w.{kind}")
    model = models.load("torch", "testifai_nets:make", folder=factory, weights=f"w.{kind}", scale="raw")
    table = RNG.normal(size=(5, 3)).astype(np.float32)
    np.testing.assert_allclose(model(table), module(torch.tensor(table)).detach().numpy(), rtol=1e-6)


def test_a_module_instead_of_a_factory(factory):
    assert models.load("torch", "testifai_nets:ready", folder=factory)(np.zeros((1, 3))).shape == (1, 2)


class Evil:
    def __reduce__(self):
        return print, ("executed",)


def test_refused(factory, capsys):
    def refused(message, name="make", **options):
        with pytest.raises(InputError, match=message) as caught:
            models.load("torch", f"testifai_nets:{name}", folder=factory, **options)
        assert "\n" not in str(caught.value)

    refused("made a int", name="number")
    refused("failed: OSError: no disk", name="fail")
    refused(r"none\.pt does not exist", weights="none.pt")
    refused("unknown key 'model.weigths' for torch; did you mean 'weights'", weigths="w.pt")
    (factory / "bad.pt").write_bytes(b"hello")
    refused("not a file of weights alone", weights="bad.pt")
    torch.save(torch.nn.Linear(4, 2).state_dict(), factory / "other.pt")
    refused("does not fit the module", weights="other.pt")
    torch.save({"weight": Evil()}, factory / "evil.pt")
    refused("not a file of weights alone", weights="evil.pt")
    assert "executed" not in capsys.readouterr().out
    refused("device 'no-such-device' cannot be used", device="no-such-device")
    refused("threads: must be a whole number, at least 1, got 0", threads=0)
    with pytest.raises(InputError, match=r"int is not a torch\.nn\.Module"):
        TorchModel(3)


def test_a_tuple_is_no_output():
    class Two(torch.nn.Module):
        def forward(self, x):
            return x, x

    with pytest.raises(InputError, match="Two: model returned tuple"):
        TorchModel(Two())(np.zeros((1, 3)))


def test_traces_of_a_submodule():
    module = make()
    model = TorchModel(module)
    outputs, traces = model.traced(IMAGES, "3")
    np.testing.assert_allclose(outputs, model(IMAGES))
    with torch.no_grad():
        np.testing.assert_allclose(module[4](torch.tensor(traces)).numpy(), outputs, rtol=1e-5, atol=1e-6)
    _, maps = model.traced(IMAGES, "0")
    with torch.no_grad():
        whole = module[0](torch.tensor(IMAGES).permute(0, 3, 1, 2) / 255).numpy()
    np.testing.assert_allclose(maps, whole.mean(axis=(2, 3)), rtol=1e-5, atol=1e-6)
    assert not module[0]._forward_hooks  # nothing is left behind
    with pytest.raises(InputError, match="'9' is not a submodule"):
        model.traced(IMAGES, "9")


@pytest.mark.parametrize(
    "told",
    [
        {},
        {"layout": "NHWC", "scale": "signed", "mean": [0.1, 0.2, 0.3], "std": 0.5},
        {"layout": "flat", "scale": "raw"},
        {"layout": "NCHW", "scale": 0.5, "std": [1.0, 2.0, 3.0]},
    ],
)
@pytest.mark.parametrize("batch", [IMAGES, IMAGES.astype(np.int64), IMAGES / 255])
def test_tensors_are_prepared_as_arrays_are(told, batch):
    model = TorchModel(torch.nn.Flatten(), **told)
    found = model.on_tensors(torch.from_numpy(batch)).numpy()
    np.testing.assert_allclose(found, model(batch), rtol=1e-6, atol=1e-6)


def test_a_module_gets_tensors_of_its_own():
    class Writes(torch.nn.Module):
        def forward(self, x):
            return x.zero_().flatten(1)

    for batch in (torch.ones(2, 3), torch.ones(2, 3, 3, dtype=torch.uint8), torch.ones(2, 3, dtype=torch.int64)):
        TorchModel(Writes()).on_tensors(batch)
        assert bool((batch == 1).all())


def test_what_does_not_fit_a_layout_is_refused_on_tensors_too():
    with pytest.raises(InputError, match=r"mean, std: have 3 values; the inputs \(N, 6, 5, 2\) have another number"):
        TorchModel(torch.nn.Flatten(), mean=[1, 2, 3]).on_tensors(torch.zeros(4, 6, 5, 2, dtype=torch.uint8))


def test_a_module_may_find_boxes_on_images_of_any_size():
    class Finder(torch.nn.Module):
        def forward(self, images):
            """One box for each image, half as large as it is."""
            sizes = [(image.shape[2] / 2, image.shape[1] / 2) for image in images]
            return [
                {"boxes": torch.tensor([[0, 0, *size]]), "labels": torch.tensor([1]), "scores": torch.tensor([0.5])}
                for size in sizes
            ]

    model = TorchModel(Finder())
    found = model([np.zeros((8, 6, 3), np.uint8), np.zeros((4, 4, 3), np.uint8)])
    assert found[:, 0].tolist() == [[0, 0, 3, 4, 0.5, 1], [0, 0, 2, 2, 0.5, 1]]
    assert model(np.zeros((2, 8, 6, 3), np.uint8))[1, 0].tolist() == [0, 0, 3, 4, 0.5, 1]


def test_a_module_and_how_it_wants_to_be_fed_in_one_call():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 4 * 4, 2))
    images = np.random.default_rng(0).integers(0, 256, (3, 4, 4, 3), np.uint8)
    mean, std = [0.5, 0.4, 0.3], [0.2, 0.3, 0.4]
    model = models.from_torch(module, mean=mean, std=std)
    ready = (torch.from_numpy(images).movedim(-1, 1).float() / 255 - torch.tensor(mean)[:, None, None]) / torch.tensor(
        std
    )[:, None, None]
    assert np.allclose(model(images), module(ready).detach().numpy(), atol=1e-5)
    assert model.preprocessing == {"mean": mean, "std": std}


def test_a_pretrained_config_is_read_and_can_be_overruled():
    module = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(3 * 4 * 4, 2))
    module.pretrained_cfg = {"mean": (0.5, 0.5, 0.5), "std": (0.25, 0.25, 0.25), "input_size": (3, 4, 4)}
    assert models.wrap(module).preprocessing == {"mean": [0.5] * 3, "std": [0.25] * 3}
    assert models.from_torch(module, mean=0.1, std=1.0).preprocessing == {"mean": 0.1, "std": 1.0}
