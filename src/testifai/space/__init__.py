"""What is asked: axes, configurations and their numbers, and the query language over them."""

from testifai.space.space import ENUMERABLE, Axis, Space

__all__ = ["ENUMERABLE", "Axis", "Space"]
