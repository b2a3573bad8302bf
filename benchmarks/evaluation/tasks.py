"""The five tasks of the first paper, with our models and recorded grids in place of theirs."""

from __future__ import annotations

from dataclasses import dataclass

from replay import Grid

from evaluation.setting import Setting


@dataclass(frozen=True)
class Task:
    """One row of the paper's Table 1 beside ours."""

    name: str
    title: str
    model: str
    data: str
    axes: tuple[str, ...]
    their_model: str
    their_data: str
    their_accuracy: float
    suite: str

    def grid(self, setting: Setting) -> Grid:
        """All outcomes in four dimensions; raises MissingFileError."""
        return Grid.read(setting.grid(f"{self.name}.npz"))

    def cube(self, setting: Setting) -> Grid:
        """All outcomes in three: the last axis is off."""
        grid = self.grid(setting)
        return grid.sub({grid.axes[-1]: 0})


TASKS = (
    Task(
        "mnist", "MNIST", "LeNet-5", "10,000 digits", ("brightness", "zoom", "motion_blur", "shear"),
        "LeNet-5", "10,000 digits", 0.984, "mnist_c",
    ),
    Task(
        "cifar10", "CIFAR-10", "ResNet-56", "10,000 images",
        ("shot_noise", "brightness", "jpeg_compression", "contrast"),
        "WRN-28-10", "10,000 images", 0.947, "cifar_c",
    ),
    Task(
        "driving", "Driving", "YOLOX nano", "80 photographs of COCO, 815 boxes; right from F1 .5 on",
        ("translate", "scale", "contrast", "brightness"), "YOLOv11s", "1,000 frames (Udacity)", 0.822, "deeptest",
    ),
    Task(
        "gtsrb", "GTSRB", "CNN-SE", "10,000 signs of 12,630", ("darken", "codec_error", "gaussian_blur", "exposure"),
        "CNN-SE", "12,630 signs", 0.976, "cure",
    ),
    Task(
        "qqp", "QQP", "MiniLM with a logistic head", "1,000 pairs", ("synonym", "typo", "contraction", "punctuation"),
        "RoBERTa base", "1,000 pairs", 0.912, "text",
    ),
)  # fmt: skip
