"""Data-set objects of other libraries, handed over as they are."""

import numpy as np
import pytest

import testifai as ta
from testifai.data import from_dataset, wrap
from testifai.errors import InputError

GENERATOR = np.random.default_rng(0)
IMAGES = GENERATOR.integers(0, 256, (12, 16, 16, 3), np.uint8)
LABELS = GENERATOR.integers(0, 3, 12)


class Pairs:
    """A data set of (image, label)."""

    def __init__(self, items):
        self.items, self.read = items, []

    def __len__(self):
        return len(self.items)

    def __getitem__(self, row):
        self.read.append(row)
        return self.items[row]


def pairs(images=IMAGES, labels=LABELS):
    return Pairs([(image, int(label)) for image, label in zip(images, labels, strict=True)])


def darker(batch):
    return np.stack([batch.mean(axis=(1, 2, 3)) > level for level in (0, 100, 120)], axis=1).astype(float)


class TestItems:
    def test_images_and_labels(self):
        data = wrap(pairs())
        assert np.array_equal(data.inputs[np.arange(12)], IMAGES)
        assert data.labels.tolist() == LABELS.tolist()

    def test_images_are_read_when_asked_for(self):
        given = Pairs([(image, 0) for image in IMAGES])
        given.targets = LABELS.tolist()
        data = wrap(given)
        given.read.clear()
        assert data.inputs[np.array([3, 5])].shape == (2, 16, 16, 3)
        assert given.read == [3, 5]
        assert data.labels.tolist() == LABELS.tolist()

    def test_equal_data_have_equal_fingerprints(self):
        assert wrap(pairs()).fingerprint == wrap(pairs()).fingerprint == wrap((IMAGES, LABELS)).fingerprint
        assert wrap(pairs()).fingerprint != wrap(pairs(IMAGES[::-1])).fingerprint

    def test_a_scan(self):
        tomogram = ta.scan(darker, pairs(), ta.Space({"fog": "cifar_c.fog"}), strategy="full")
        other = ta.scan(darker, (IMAGES, LABELS), ta.Space({"fog": "cifar_c.fog"}), strategy="full")
        assert np.array_equal(tomogram.passes, other.passes)

    def test_items_by_name_and_inputs_alone(self):
        data = wrap(Pairs([{"image": image, "label": 1} for image in IMAGES]))
        assert data.labels.tolist() == [1] * 12
        assert wrap(Pairs(list(IMAGES))).labels is None

    def test_texts(self):
        data = wrap(Pairs([("good", 1), ("bad", 0)]))
        assert data.inputs == ["good", "bad"]

    def test_class_names_of_the_data_set(self):
        given = pairs()
        given.classes = ["a", "b", "c"]
        assert wrap(given).classes == ("a", "b", "c")

    @pytest.mark.parametrize(
        ("items", "said"),
        [
            ([(image, 0, 1) for image in IMAGES], "items have 3 parts; say which is what"),
            ([{"left": 1, "right": 2}], "items have left, right; say which is the input"),
            ([{"pixels": 1, "label": 2, "fine_label": 3}], "items have pixels, label, fine_label; say which"),
            ([(image.astype(np.float32) - 100, 0) for image in IMAGES], "leave Normalize out of the data set"),
            ([(object(), 0)], "item 0 is object; accepted: images, tensors, arrays and texts"),
            ([], "has no rows"),
        ],
    )
    def test_what_cannot_be_read_is_one_line(self, items, said):
        with pytest.raises(InputError, match=said):
            wrap(Pairs(items))

    def test_items_of_two_sizes(self):
        data = wrap(Pairs([(IMAGES[0], 0), (IMAGES[1, :8], 1)]))
        with pytest.raises(InputError, match=r"item 1 has shape \(8, 16, 3\), item 0 \(16, 16, 3\)"):
            data.inputs[np.array([1])]

    def test_items_that_change(self):
        class Changing(Pairs):
            def __getitem__(self, row):
                return GENERATOR.integers(0, 256, (8, 8, 3), np.uint8), 0

        with pytest.raises(InputError, match="item 0 of Changing is another each time"):
            wrap(Changing([0, 1]))

    def test_an_item_that_fails_is_named(self):
        class Failing(Pairs):
            def __getitem__(self, row):
                raise OSError("disk on fire")

        with pytest.raises(InputError, match="item 0 cannot be read: OSError: disk on fire"):
            wrap(Failing([0, 1]))


class TestTorch:
    @pytest.fixture(autouse=True)
    def torch(self):
        return pytest.importorskip("torch")

    def test_a_tensor_of_images_as_torch_lays_them_out(self, torch):
        floats = torch.from_numpy(IMAGES).movedim(-1, 1).float() / 255
        assert np.array_equal(wrap(floats).inputs, IMAGES)
        data = wrap((floats, torch.from_numpy(LABELS)))
        assert np.array_equal(data.inputs, IMAGES)
        assert data.labels.tolist() == LABELS.tolist()

    def test_a_normalised_tensor_is_refused(self, torch):
        with pytest.raises(InputError, match=r"say mean=…, std=… to ta.models.from_torch"):
            wrap(torch.randn(4, 3, 8, 8))

    def test_data_sets_and_loaders(self, torch):
        floats = torch.from_numpy(IMAGES).movedim(-1, 1).float() / 255
        dataset = torch.utils.data.TensorDataset(floats, torch.from_numpy(LABELS))
        for shuffle in (False, True):
            data = wrap(torch.utils.data.DataLoader(dataset, batch_size=4, shuffle=shuffle))
            assert np.array_equal(data.inputs[np.arange(12)], IMAGES)
            assert data.labels.tolist() == LABELS.tolist()

    def test_a_loader_that_draws_is_refused(self, torch):
        dataset = torch.utils.data.TensorDataset(torch.zeros(4, 3, 8, 8))
        sampler = torch.utils.data.WeightedRandomSampler([1.0] * 4, 4)
        with pytest.raises(InputError, match="draws with WeightedRandomSampler"):
            wrap(torch.utils.data.DataLoader(dataset, sampler=sampler))

    def test_a_stream_is_refused(self, torch):
        class Stream(torch.utils.data.IterableDataset):
            def __iter__(self):
                return iter(())

        with pytest.raises(InputError, match="Stream has no length"):
            wrap(Stream())


class TestHuggingFace:
    @pytest.fixture(autouse=True)
    def datasets(self):
        return pytest.importorskip("datasets")

    def test_images_with_named_classes(self, datasets):
        kinds = datasets.Features(
            {
                "img": datasets.Image(),
                "id": datasets.Value("int64"),
                "label": datasets.ClassLabel(names=["a", "b", "c"]),
            }
        )
        given = datasets.Dataset.from_dict(
            {"img": list(IMAGES), "id": list(range(12)), "label": LABELS.tolist()}, features=kinds
        )
        data = wrap(given)
        assert np.array_equal(data.inputs[np.arange(12)], IMAGES)
        assert (data.labels.tolist(), data.classes) == (LABELS.tolist(), ("a", "b", "c"))
        with pytest.raises(InputError, match="inputs: there is no column 'image'"):
            from_dataset(given, inputs="image")

    def test_texts_pairs_and_splits(self, datasets):
        one = datasets.Dataset.from_dict({"text": ["good", "bad"], "label": [1, 0]})
        assert (wrap(one).inputs, wrap(one).labels.tolist()) == (["good", "bad"], [1, 0])
        two = datasets.Dataset.from_dict({"q1": ["a", "b"], "q2": ["c", "d"], "label": [1, 0]})
        assert wrap(two).inputs == [("a", "c"), ("b", "d")]
        with pytest.raises(InputError, match=r"holds the splits train, test; hand over one, such as data\['test'\]"):
            wrap(datasets.DatasetDict({"train": one, "test": one}))
        with pytest.raises(InputError, match="which of the columns a, b, c holds the inputs"):
            wrap(datasets.Dataset.from_dict({"a": ["x"], "b": ["y"], "c": ["z"], "label": [0]}))
