"""What is asked: axes, configurations and their numbers, the query language, and what a query selects."""

from testifai.space.selection import Selection
from testifai.space.space import ENUMERABLE, LISTED, Axis, Space

__all__ = ["ENUMERABLE", "LISTED", "Axis", "Selection", "Space"]
