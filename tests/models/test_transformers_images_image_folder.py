"""Image classifiers in a folder of transformers, small and with random weights, against the library's own way."""

import json

import numpy as np
import pytest

import testifai as ta
from testifai.errors import InputError

torch = pytest.importorskip("torch")
transformers = pytest.importorskip("transformers")
pytest.importorskip("PIL")

from testifai.models.transformers_images import is_image_folder  # noqa: E402

IMAGES = np.random.default_rng(0).integers(0, 256, (5, 40, 50, 3), np.uint8)
NAMES = {0: "cat", 1: "dog", 2: "owl"}


def vit():
    config = transformers.ViTConfig(
        hidden_size=16, num_hidden_layers=1, num_attention_heads=2, intermediate_size=16, image_size=32, patch_size=8,
        num_labels=3, id2label=NAMES,
    )  # fmt: skip
    processor = {"image_processor_type": "ViTImageProcessor", "size": {"height": 32, "width": 32}, "resample": 2,
                 "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}  # fmt: skip
    return transformers.ViTForImageClassification(config), processor, ("vit", "ViTImageProcessorPil")


def convnext():
    config = transformers.ConvNextConfig(hidden_sizes=[8, 8, 8, 8], depths=[1, 1, 1, 1], num_labels=3, id2label=NAMES)
    processor = {"image_processor_type": "ConvNextImageProcessor", "size": {"shortest_edge": 32}, "crop_pct": 0.875,
                 "resample": 3, "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}  # fmt: skip
    return transformers.ConvNextForImageClassification(config), processor, ("convnext", "ConvNextImageProcessorPil")


def resnet():
    config = transformers.ResNetConfig(
        embedding_size=8, hidden_sizes=[8, 8], depths=[1, 1], layer_type="basic", num_labels=3, id2label=NAMES
    )
    processor = {"image_processor_type": "BitImageProcessor", "size": {"shortest_edge": 36}, "resample": 3,
                 "do_center_crop": True, "crop_size": {"height": 32, "width": 32},
                 "image_mean": [0.5, 0.4, 0.3], "image_std": [0.2, 0.3, 0.4]}  # fmt: skip
    return transformers.ResNetForImageClassification(config), processor, ("bit", "BitImageProcessorPil")


def saved(make, folder):
    torch.manual_seed(0)
    network, processor, theirs = make()
    network.eval().save_pretrained(folder)
    (folder / "preprocessor_config.json").write_text(json.dumps(processor))
    return network, processor, theirs


@pytest.mark.parametrize("make", [vit, convnext, resnet])
def test_outputs_are_those_of_the_library(make, tmp_path):
    network, processor, (module, name) = saved(make, tmp_path)
    model = ta.models.wrap(tmp_path)
    found = model(IMAGES)
    assert found.shape == (5, 3)
    assert model.class_values == ["cat", "dog", "owl"]
    theirs = pytest.importorskip(f"transformers.models.{module}.image_processing_pil_{module}")
    ready = getattr(theirs, name)(**processor)(list(IMAGES), return_tensors="pt")["pixel_values"]
    with torch.inference_mode():
        expected = network.eval()(pixel_values=ready).logits.numpy()
    assert np.allclose(found, expected, atol=2e-4)
    # Tensors are resized by torch, which rounds otherwise.
    on_tensors = model.on_tensors(torch.from_numpy(IMAGES)).numpy()
    assert np.allclose(on_tensors, expected, atol=0.02)


def test_a_scan_from_the_folder(tmp_path):
    saved(vit, tmp_path)
    tomogram = ta.scan(
        tmp_path, (IMAGES, ["cat", "dog", "owl", "cat", "dog"]), ta.Space({"fog": "imagenet_c.fog"}), strategy="full"
    )
    assert tomogram.outcomes.total() == 30


def test_grey_images_get_three_channels(tmp_path):
    saved(vit, tmp_path)
    model = ta.models.wrap(tmp_path)
    grey = IMAGES[..., 0]
    assert np.allclose(model(grey), model(np.repeat(grey[..., None], 3, axis=-1)))


def test_what_is_wrong_is_one_line(tmp_path):
    saved(vit, tmp_path)
    assert is_image_folder(tmp_path)
    with pytest.raises(InputError, match=r"model.max_length: is for models of texts"):
        ta.models.load("transformers", tmp_path, max_length=3)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"size": "large"}))
    with pytest.raises(InputError, match="size = 'large'; accepted: height and width, or shortest_edge"):
        ta.models.wrap(tmp_path)
    (tmp_path / "preprocessor_config.json").write_text(json.dumps({"do_pad": True}))
    with pytest.raises(InputError, match="pads images"):
        ta.models.wrap(tmp_path)


def test_a_pipeline_of_images_is_a_model(tmp_path):
    network, processor, (module, name) = saved(vit, tmp_path)
    theirs = pytest.importorskip(f"transformers.models.{module}.image_processing_pil_{module}")
    made = transformers.pipelines.ImageClassificationPipeline(
        model=network, image_processor=getattr(theirs, name)(**processor), task="image-classification"
    )
    model = ta.models.wrap(made)
    assert np.allclose(model(IMAGES), ta.models.wrap(tmp_path)(IMAGES), atol=2e-4)
    assert (model.classes, model.class_values) == (3, ["cat", "dog", "owl"])
    with pytest.raises(InputError, match="takes images; the inputs are texts"):
        model(["a text"])
