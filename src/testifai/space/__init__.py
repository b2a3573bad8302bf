"""What is asked: axes, configurations and their numbers, the query language, and what a query selects."""

from testifai.space.axes import Axis
from testifai.space.selection import Selection
from testifai.space.space import ENUMERABLE, LISTED, Space

__all__ = ["ENUMERABLE", "LISTED", "Axis", "Selection", "Space"]
