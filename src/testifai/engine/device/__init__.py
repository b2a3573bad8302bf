"""Runs work on a PyTorch device."""

from testifai.engine.device.executor import DeviceExecutor

__all__ = ["DeviceExecutor"]
