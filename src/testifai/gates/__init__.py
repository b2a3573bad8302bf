"""Requirements on a tomogram, and measuring until they are decided."""

from testifai.gates.verdicts import Verdict, judge

__all__ = ["Verdict", "judge"]
