"""Runs work on a device of torch: inputs go there once, are perturbed, shown to the model and judged there."""

from testifai.engine.device.executor import DeviceExecutor

__all__ = ["DeviceExecutor"]
