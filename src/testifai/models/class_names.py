"""What a network's own config calls its classes."""

from __future__ import annotations

from typing import Any


def class_names(config: Any) -> list[str] | None:
    """The names in the order of the outputs; None where the config only numbers them."""
    names = [str(config.id2label[number]) for number in range(config.num_labels)]
    return None if names == [f"LABEL_{number}" for number in range(len(names))] else names
