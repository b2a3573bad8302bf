"""What a run means: the finished result, its answers, and what can be concluded from it."""

from testifai.tomogram.answers import Answer, Excluded, Sigma
from testifai.tomogram.tomogram import Tomogram

__all__ = ["Answer", "Excluded", "Sigma", "Tomogram"]
