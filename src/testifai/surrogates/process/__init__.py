"""The surrogate `process`: a Gaussian process over the severities."""

from testifai.surrogates.process.process import Process
from testifai.surrogates.process.rough import sketch

__all__ = ["Process", "sketch"]
