from __future__ import annotations

import logging

import numpy as np
import pytest

torch = pytest.importorskip("torch")

import testifai as ta  # noqa: E402
from testifai import perturb  # noqa: E402
from testifai.engine.device.executor import DeviceExecutor  # noqa: E402
from testifai.engine.plan import Work  # noqa: E402
from testifai.errors import InputError  # noqa: E402
from testifai.models.torch import TorchModel  # noqa: E402
from testifai.oracles import resolve  # noqa: E402
from testifai.session.assembly import session_of  # noqa: E402
from testifai.testing import check_executor  # noqa: E402

RNG = np.random.default_rng(0)
INPUTS = 30
IMAGES = RNG.integers(0, 256, (INPUTS, 8, 8, 3), dtype=np.uint8)
LABELS = RNG.integers(0, 4, INPUTS)
SPACE = ta.Space({"noise": "cifar_c.gaussian_noise", "saturate": "cifar_c.saturate"})


class Net(torch.nn.Module):
    def __init__(self, most=None):
        super().__init__()
        torch.manual_seed(1)
        self.conv = torch.nn.Conv2d(3, 6, 3)
        self.drop = torch.nn.Dropout(0.5)
        self.last = torch.nn.Linear(6, 4)
        self.most, self.sizes = most, []

    def forward(self, x):
        self.sizes.append(len(x))
        if self.most is not None and len(x) > self.most:
            raise torch.OutOfMemoryError(f"CUDA out of memory. Tried to allocate {len(x)} GiB")
        return self.last(self.drop(torch.relu(self.conv(x))).mean(dim=(2, 3)))


def session(model=None, *, labels=LABELS, space=SPACE, data=IMAGES, **options):
    options = {"strategy": "full", "device": "cpu", **options}
    model = model if isinstance(model, TorchModel) else TorchModel(model or Net(), version="1")
    return session_of(model, (data, labels), space, **options)


def measure(made):
    """Every outcome, without what tells the run from others: that looks at all code of the user's."""

    def record(measured):
        made.outcomes.record(measured.configuration, measured.places, measured.passed, measured.kept)

    made.executor.run(made.strategy.propose(made.progress()), made.outcomes, record)


def one_by_one(made, numbers=range(INPUTS)):
    """Every test on tensors, an input at a time, and judged as arrays."""
    subject, found = made.subject, {}
    for configuration, sigma in enumerate(np.ndindex(*(len(axis.severities) for axis in made.space.axes))):
        for place in numbers:
            number = subject.order[[place]]
            clean = image = torch.from_numpy(subject.data.inputs[number])
            for axis, severity in subject.space.steps(sigma):
                perturbation = subject.space.axes[axis].perturbation
                image = perturbation.apply(image, severity, seed=subject.seed, indices=number)
            outputs, reference = (subject.model(one.numpy()) for one in (image, clean))
            expected = None if subject.labels is None else subject.labels[number]
            told = subject.oracle.reference(reference)
            found[configuration, place] = subject.oracle.judge(outputs, expected, told)
    return found


def test_the_contract_of_executors():
    check_executor(DeviceExecutor)


@pytest.mark.parametrize(
    "oracle", ["label", "consistency", {"use": "tolerance", "eps": 0.05}, {"use": "consistency", "threshold": 0.0}]
)
@pytest.mark.parametrize("batch_size", [None, 7])
def test_outcomes_are_those_of_inputs_taken_one_by_one(oracle, batch_size):
    made = session(oracle=oracle, batch_size=batch_size, keep=["value", "predicted"])
    made.executor.chunk = 13
    outcomes = made.run().outcomes
    assert outcomes.total() == INPUTS * SPACE.size
    for (configuration, place), expected in one_by_one(made, (0, 12, 29)).items():
        here = np.array([place])
        assert outcomes.passed(configuration, here)[0] == expected.passed[0]
        if expected.value is not None:
            assert outcomes.kept(configuration, "value")[place] == pytest.approx(expected.value[0], abs=1e-5)


def test_rounds_of_tests_with_inputs_of_their_own(monkeypatch):
    """In pieces, over the tree of the round before where that serves, outcomes are those of the full run."""
    monkeypatch.setattr("testifai.engine.device.executor.APART", 1)
    whole, made, trees = session().run().outcomes, session(), []
    random = np.random.default_rng(2)
    for tests in (np.arange(SPACE.size)[::-1], np.array([5, 35, *range(10, 30)]), np.array([0, 7])):
        work = Work(tests, [random.choice(INPUTS, 9, replace=False) for _ in tests])
        made.executor.run(
            work, made.outcomes, lambda one: made.outcomes.record(one.configuration, one.places, one.passed)
        )
        trees.append(made.executor._grown[1])
        for test, places in zip(tests.tolist(), work.places, strict=True):
            assert made.outcomes.attempted(test, places).all()
    assert trees[0] is trees[1] is not trees[2]
    for test in made.outcomes:
        places, passed = made.outcomes.trials(test)
        assert np.array_equal(passed, whole.passed(test, places))


def test_several_labels_for_each_input():
    sets = RNG.integers(0, 2, (INPUTS, 4))
    made = session(labels=sets, oracle={"use": "label", "threshold": 0.0, "f1": 0.5}, keep=["value"])
    outcomes = made.run().outcomes
    for (configuration, place), expected in one_by_one(made, (3, 20)).items():
        assert outcomes.passed(configuration, np.array([place]))[0] == expected.passed[0]
        assert outcomes.kept(configuration, "value")[place] == pytest.approx(expected.value[0], abs=1e-6)


def test_an_interrupted_run_is_continued(tmp_path):
    whole = session(oracle="consistency").run().outcomes

    for after in (1, 100, 500):
        store = tmp_path / f"{after}.db"
        first = session(oracle="consistency", batch_size=17)
        first.executor.interrupted = lambda made=first, after=after: made.outcomes.total() > after
        with pytest.raises(KeyboardInterrupt):
            first.run(store)
        assert 0 < first.outcomes.total() < whole.total()
        again = session(oracle="consistency").run(store).outcomes
        assert all(np.array_equal(again.bits(one), whole.bits(one)) for one in whole)


def test_memory_that_does_not_suffice_halves_the_batch(caplog):
    net, whole = Net(most=5), session().run().outcomes
    made = session(net, batch_size=64)
    with caplog.at_level(logging.WARNING):
        found = made.run().outcomes
    assert all(np.array_equal(found.bits(one), whole.bits(one)) for one in whole)
    assert [line for line in caplog.messages if "out of memory" in line] == [
        "device: out of memory with a batch of 64; going on with 32 or fewer"
    ]
    assert made.executor.batch_size.next() == 4
    assert sum(size > 5 for size in net.sizes) == 4  # and not again for every batch
    with pytest.raises(InputError, match=r"^device: cpu has too little memory for a single input \(.*Tried to allo"):
        session(Net(most=0)).run()


def test_memory_that_does_not_suffice_for_a_chunk_halves_it(caplog):
    def greedy(batch, parameter, rng):
        if len(batch) > 9:
            raise torch.OutOfMemoryError("CUDA out of memory")
        return batch

    space = ta.Space({"greedy": ta.Perturbation("greedy", greedy, [0, 1, 2], tensors=True)})
    made = session(space=space)
    with caplog.at_level(logging.WARNING):
        assert made.run().outcomes.total() == 3 * INPUTS
    assert [line for line in caplog.messages if "out of memory" in line] == [
        "device: out of memory when perturbing; going on with 15 inputs at a time, or fewer"
    ]
    assert made.executor.chunk == 7


def test_a_perturbation_that_only_knows_arrays_falls_back_for_itself(caplog):
    def arrays(batch, parameter, rng):
        assert isinstance(batch, np.ndarray)
        return np.minimum(batch.astype(int) + rng.integers(0, parameter, batch.shape[1:]), 255).astype(np.uint8)

    def raises(batch, parameter, rng):
        return batch.astype(int).clip(0, parameter).astype(np.uint8)  # which tensors do not have

    own = {"own": ta.Perturbation("own", arrays, [0, 9]), "cut": ta.Perturbation("cut", raises, [0, 99], tensors=True)}
    space = ta.Space({**own, "saturate": "cifar_c.saturate"})
    found, expected = (session(space=space, device=device) for device in ("cpu", None))
    with caplog.at_level(logging.WARNING):
        measure(found)
    measure(expected)
    lines = [line for line in caplog.messages if line.startswith("device: perturbation")]
    assert [line.split()[2] for line in lines] == ["own", "cut"]
    assert "AttributeError" in lines[1]
    assert all(np.array_equal(found.outcomes.bits(one), expected.outcomes.bits(one)) for one in expected.outcomes)


def test_an_oracle_that_only_knows_arrays_is_asked_in_this_computer(caplog):
    seen = []

    def near(outputs, expected, clean):
        seen.append(type(outputs))
        return np.abs(outputs - clean).max(axis=1) < 0.05

    with caplog.at_level(logging.WARNING):
        found = session(oracle=near).run().outcomes
    expected = session(oracle={"use": "tolerance", "eps": 0.05}).run().outcomes
    assert set(seen) == {np.ndarray}
    assert sum("the oracle function judges" in line for line in caplog.messages) == 1
    assert all(np.array_equal(found.bits(one), expected.bits(one)) for one in expected)


def test_labels_alone_are_judged_as_arrays():
    class Labels(Net):
        def forward(self, x):
            return super().forward(x).argmax(dim=1)

    found, expected = (session(net).run().outcomes for net in (Labels(), Net()))
    assert all(np.array_equal(found.bits(one), expected.bits(one)) for one in expected)

    class Wrong(Net):
        def forward(self, x):
            return super().forward(x).argmax(dim=1) + 9

    with pytest.raises(InputError, match=r"model returned label"):
        session(Wrong()).run()


def test_a_model_of_arrays_is_asked_in_this_computer(caplog):
    model = TorchModel(Net())
    with caplog.at_level(logging.WARNING):
        scan = ta.scan(lambda x: model(x), (IMAGES, LABELS), SPACE, strategy="full", device="cpu")
    assert sum("takes arrays" in line for line in caplog.messages) == 1
    expected = session().run().outcomes
    assert all(np.array_equal(scan.outcomes.bits(one), expected.bits(one)) for one in expected)


def test_what_is_wrong_with_outputs_is_one_line():
    class Bad(Net):
        def __init__(self, change):
            super().__init__()
            self.change = change

        def forward(self, x):
            return self.change(super().forward(x))

    cases = {
        "model returned NaN for 30 of 30 inputs": lambda y: y * np.nan,
        "model returned outputs of shape (30, 4, 1) for 30 inputs": lambda y: y[:, :, None],
        "model returned 29 outputs for 30 inputs": lambda y: y[1:],
        "model returned list; a tensor": lambda y: [y],
        "model: raised ZeroDivisionError: division by zero (batch of 30 inputs, configuration": lambda y: 1 / 0,
    }
    for text, change in cases.items():
        with pytest.raises(InputError) as caught:
            session(Bad(change), space=ta.Space({"saturate": "cifar_c.saturate"}), batch_size=INPUTS).run()
        assert text in str(caught.value)
        assert "\n" not in str(caught.value)


def test_what_was_measured_before_a_failure_counts(tmp_path):
    class Tires(Net):
        def forward(self, x):
            return super().forward(x) * (np.nan if len(self.sizes) > 9 else 1)

    made = session(Tires(), batch_size=20)
    with pytest.raises(InputError, match="NaN"):
        made.run(tmp_path / "run.db")
    assert made.outcomes.total() >= 9 * 20


def test_a_module_that_writes_into_its_batch_changes_nothing_else():
    class Writes(torch.nn.Module):
        def forward(self, x):
            return x.mul_(-1)

    rows = RNG.normal(size=(INPUTS, 4)).astype(np.float32)
    shift = ta.Perturbation("shift", lambda x, by, rng: x + by, [0.0, 0.1, 0.2], tensors=True)
    made = session(Writes(), space=ta.Space({"shift": shift}), data=rows, keep=["predicted"])
    outcomes = made.run().outcomes
    for test in range(3):
        np.testing.assert_array_equal(outcomes.kept(test, "predicted"), (-rows).argmax(axis=1)[made.subject.order])


def test_the_module_is_left_in_its_mode_and_answers_without_dropout():
    net = Net().train()
    assert session(net).run().outcomes.total() == INPUTS * SPACE.size
    assert net.training
    assert net.drop.training


def test_mixed_precision_changes_little():
    exact, mixed = session(keep=["value"]).run(), session(keep=["value"], precision="bf16").run()
    values = [made.outcomes.kept(0, "value") for made in (exact, mixed)]
    assert not np.array_equal(*values)
    np.testing.assert_allclose(*values, atol=0.05)


def test_draws_follow_the_input_on_a_device_too():
    numbers = torch.tensor([5, 2, 9])
    batch = torch.from_numpy(IMAGES[[5, 2, 9]])
    for name in ("cifar_c.gaussian_noise", "cifar_c.motion_blur", "imagenet_c.frost"):
        one = perturb.get(name)
        assert torch.equal(one.apply(batch, 3, indices=numbers), one.apply(batch, 3, indices=[5, 2, 9]))


def test_tensor_judges_exist_for_the_oracles_that_need_speed():
    from testifai.oracles.base import on_tensors

    class Own(type(resolve("label"))):
        pass

    assert on_tensors(resolve("label"), 4) is not None
    assert on_tensors(resolve("label"), 0) is None
    assert on_tensors(Own(), 4) is None  # it may judge otherwise
    Own.tensors = True
    assert on_tensors(Own(), 4) is not None
