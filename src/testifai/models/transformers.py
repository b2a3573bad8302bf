"""A folder of Hugging Face's transformers in a spec: a classifier of texts, or of images."""

from __future__ import annotations

from pathlib import Path
from typing import ClassVar

from testifai.errors import InputError
from testifai.models.base import Model
from testifai.models.image_folder import TransformersImageModel, is_image_folder
from testifai.models.texts.base import NetworkPart
from testifai.models.texts.classifier import TransformersModel
from testifai.support.fields import File


class TransformersPart(NetworkPart):
    """A classifier of texts, or of images, in a folder of transformers."""

    transformers: File
    """The folder, as `save_pretrained` writes it."""

    FILES: ClassVar = ("transformers",)

    def load(self, folder: Path) -> Model:
        options = self.told(folder)
        if is_image_folder(Path(options["transformers"])):
            for_texts = [name for name in ("max_length", "cache_mb") if name in options]
            if for_texts:
                raise InputError(f"model.{for_texts[0]}: is for models of texts; {self.transformers} takes images")
            return TransformersImageModel(options.pop("transformers"), **options)
        return TransformersModel(options.pop("transformers"), **options)
