"""Runs work: a subject, a plan, rules that stop tests, and executors by name, one file and one line here each."""

from __future__ import annotations

from testifai.support.registry import Registry

EXECUTORS = Registry(
    "executor",
    "testifai.executors",
    {
        "local": "testifai.engine.local:LocalExecutor",
        "device": "testifai.engine.device.executor:DeviceExecutor",
        "ray": "testifai.engine.ray.executor:RayExecutor",
    },
)
