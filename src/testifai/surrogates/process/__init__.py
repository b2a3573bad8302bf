"""The surrogate `process`: a Gaussian process over the severities."""

from testifai.surrogates.process.outlier_tests import sketch
from testifai.surrogates.process.process import Process

__all__ = ["Process", "sketch"]
