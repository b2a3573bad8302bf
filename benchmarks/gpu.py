"""How much of a device's speed a scan keeps: its rate against that of the bare model, in the same process.

    python benchmarks/gpu.py [TASK ...] [--device cuda] [--inputs N] [--axes N] [--profile] [--out FILE.json]

The bare model is the module alone on tensors that are perturbed, scaled and in place already, at the best of a few
batch sizes and layouts, with the same precision as the scan. A scan does all the rest: it perturbs, prepares, judges,
copies back and records. Tasks:

    lenet5     LeNet-5, the full 4D tomography of MNIST's 10,000 test images
    resnet56   ResNet-56, the same of CIFAR-10's
    resnet50   a network of ResNet-50's size with random weights, random 224 x 224 images, all of imagenet_c by itself
    adaptive   ResNet-56 as above, the default strategy at 1 % of the inferences, planning and fitting included
"""

from __future__ import annotations

import argparse
import json
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager, nullcontext
from pathlib import Path
from typing import Any
from unittest import mock

import numpy as np
import torch
from common import need
from torch import Tensor, nn

import testifai as ta
from testifai import perturb
from testifai.engine.base import BatchOutcome, Executor
from testifai.engine.device.executor import DeviceSubject, DeviceTreeWalk
from testifai.engine.device.streams import AHEAD, DeviceStreams, ResultQueue
from testifai.engine.plan import Work
from testifai.models.onnx_torch import onnx_as_torch
from testifai.models.torch import TorchModel
from testifai.session.assembly import session_of
from testifai.session.session import Session

SIZES = (256, 1024, 4096, 10_000, 16_384)
BARE_SECONDS = 0.5
AXES = {
    "mnist": [f"mnist_c.{name}" for name in ("brightness", "zoom", "motion_blur", "shear")],
    "cifar10": [f"cifar_c.{name}" for name in ("fog", "gaussian_noise", "motion_blur", "saturate")],
}
IMAGENET_INPUTS, IMAGENET_SIZES = 512, (64, 128, 256, 512)
SHARE, TURNS = 0.01, 3  # of the inferences, and runs, for the task adaptive


class Bottleneck(nn.Module):
    """A block of He et al. (CVPR 2016), with three convolutions."""

    def __init__(self, channels: int, width: int, stride: int) -> None:
        super().__init__()
        out = 4 * width
        self.body = nn.Sequential(
            nn.Conv2d(channels, width, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, width, 3, stride, 1, bias=False), nn.BatchNorm2d(width), nn.ReLU(),
            nn.Conv2d(width, out, 1, bias=False), nn.BatchNorm2d(out),
        )  # fmt: skip
        same = channels == out and stride == 1
        self.skip: nn.Module = (
            nn.Identity()
            if same
            else nn.Sequential(nn.Conv2d(channels, out, 1, stride, bias=False), nn.BatchNorm2d(out))
        )

    def forward(self, x: Tensor) -> Tensor:
        made: Tensor = torch.relu(self.body(x) + self.skip(x))
        return made


def resnet50() -> nn.Module:
    """ResNet-50 with random weights: 25.6 million."""
    torch.manual_seed(0)
    layers: list[nn.Module] = [
        nn.Conv2d(3, 64, 7, 2, 3, bias=False), nn.BatchNorm2d(64), nn.ReLU(), nn.MaxPool2d(3, 2, 1)
    ]  # fmt: skip
    channels = 64
    for width, blocks, stride in ((64, 3, 1), (128, 4, 2), (256, 6, 2), (512, 3, 2)):
        for block in range(blocks):
            layers.append(Bottleneck(channels, width, stride if block == 0 else 1))
            channels = 4 * width
    return nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(channels, 1000)).eval()


def settle(device: torch.device) -> None:
    if device.type == "cuda":
        torch.cuda.synchronize(device)


def rate(module: nn.Module, batch: Tensor, precision: str) -> float:
    """Inputs a second of a module on one ready batch, again and again."""
    mixed = torch.autocast(batch.device.type, dtype=torch.bfloat16, enabled=precision == "bf16")
    with torch.inference_mode(), mixed:
        for _ in range(3):
            module(batch)
        settle(batch.device)
        begin, done = time.perf_counter(), 0
        while time.perf_counter() - begin < BARE_SECONDS:
            for _ in range(4):
                module(batch)
            settle(batch.device)
            done += 4 * len(batch)
        return done / (time.perf_counter() - begin)


def bare(module: nn.Module, images: Tensor, sizes: tuple[int, ...], precision: str) -> dict[str, float]:
    """Inputs a second by layout and batch size."""
    found = {}
    for layout in ("contiguous", "channels last"):
        form = torch.contiguous_format if layout == "contiguous" else torch.channels_last
        for size in sizes:
            rows = images[torch.arange(size, device=images.device) % len(images)]
            channels = rows[..., None] if rows.ndim == 3 else rows
            ready = (channels.permute(0, 3, 1, 2).float() / 255).contiguous(memory_format=form)
            found[f"{layout} {size}"] = rate(module, ready, precision)
    return found


PARTS = ("perturb", "infer", "judge", "copy", "record")


class TimeSplit:
    """Seconds for each part of the work. It waits for the device after every step, so the whole takes longer."""

    def __init__(self, device: str) -> None:
        self.streams = DeviceStreams(device)
        self.seconds = dict.fromkeys(PARTS, 0.0)

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Time the methods of device executors."""
        finished, stream_results = ResultQueue.finished, Executor.stream_results

        def finish(queue: ResultQueue, ahead: int = AHEAD) -> Iterator[BatchOutcome]:
            return iter(list(finished(queue, ahead)))

        def stream(executor: Executor, results: Any, hand_over: Callable[..., Any]) -> None:
            stream_results(executor, results, self._timed("record", hand_over))

        parts = (
            (DeviceSubject, "perturb", self._timed("perturb", DeviceSubject.perturb)),
            (DeviceSubject, "ask", self._timed("infer", DeviceSubject.ask)),
            (DeviceTreeWalk, "judge", self._timed("judge", DeviceTreeWalk.judge)),
            (ResultQueue, "send", self._timed("copy", ResultQueue.send)),
            (ResultQueue, "finished", self._timed("copy", finish)),
            (Executor, "stream_results", stream),
        )
        with ExitStack() as patches:
            for owner, name, method in parts:
                patches.enter_context(mock.patch.object(owner, name, method))
            yield

    def _timed(self, part: str, run: Callable[..., Any]) -> Callable[..., Any]:
        def timed(*arguments: Any, **options: Any) -> Any:
            self.streams.wait()
            begin = time.perf_counter()
            try:
                return run(*arguments, **options)
            finally:
                self.streams.wait()
                self.seconds[part] += time.perf_counter() - begin

        return timed

    def __str__(self) -> str:
        total = sum(self.seconds.values()) or 1.0
        return ", ".join(f"{part} {100 * spent / total:.1f} %" for part, spent in self.seconds.items())


class Bench:
    """One device, what is printed about it, and the figures."""

    def __init__(self, options: argparse.Namespace) -> None:
        self.options, self.device = options, torch.device(options.device)
        self.figures: dict[str, Any] = {}
        cuda = self.device.type == "cuda"
        self.machine = torch.cuda.get_device_name(self.device) if cuda else f"CPU, {torch.get_num_threads()} threads"
        print(f"{self.machine}; torch {torch.__version__}; precision {options.precision}", flush=True)

    def bare(self, name: str, module: nn.Module, images: Any, sizes: tuple[int, ...]) -> float:
        fitting = tuple(size for size in sizes if size <= self.options.largest)
        found = bare(module, torch.from_numpy(images).to(self.device), fitting, self.options.precision)
        best = max(found, key=lambda key: found[key])
        self.figures[f"{name} bare"] = found
        print(f"{name}: bare {found[best]:,.0f}/s at {best}", flush=True)
        return found[best]

    def report(self, name: str, inferences: int, seconds: float, reference: float, **more: Any) -> None:
        ratio = inferences / seconds / reference
        self.figures[name] = {"inferences": inferences, "seconds": seconds, "ratio": ratio, **more}
        told = "".join(f"; {key} {value}" for key, value in more.items())
        print(
            f"{name}: {inferences:,} inferences in {seconds:.2f} s, {inferences / seconds:,.0f}/s, "
            f"{ratio:.3f} of bare{told}",
            flush=True,
        )

    def session(self, model: TorchModel, data: Any, axes: list[str], **options: Any) -> Session:
        space = ta.Space({perturb.get(axis).name.partition(".")[2]: axis for axis in axes})
        return session_of(model, data, space, device=str(self.device), precision=self.options.precision, **options)

    @contextmanager
    def seconds(self) -> Iterator[Callable[[], float]]:
        settle(self.device)
        begin, end = time.perf_counter(), 0.0
        yield lambda: end - begin
        settle(self.device)
        end = time.perf_counter()

    def full(self, name: str, model_file: str, data: str, sizes: tuple[int, ...] = SIZES) -> None:
        """The full tomography."""
        model, arrays, axes = self.subject(model_file, data)
        reference = self.bare(name, model.module, arrays[0], sizes)
        self.session(model, tuple(one[:256] for one in arrays), axes, strategy="full").run()  # what is made once
        made = self.session(model, arrays, axes, strategy="full")
        with self.seconds() as taken:
            made.run()
        size, chunk = made.executor.batch_size.next(), made.executor.chunk
        self.report(name, made.outcomes.total(), taken(), reference, batch=size, chunk=chunk)
        if self.options.profile:
            self.profile(name, self.session(model, arrays, axes, strategy="full"))

    def adaptive(self) -> None:
        """The default at a share of the inferences: what the executor takes, and what planning and fitting do."""
        model, arrays, axes = self.subject("cifar10_resnet56", "cifar10")
        reference = self.bare("adaptive", model.module, arrays[0], SIZES)
        self.session(model, arrays, axes, budget=2000).run()
        budget = int(SHARE * 6 ** len(axes) * len(arrays[0]))
        for turn in range(TURNS):
            made = self.session(model, arrays, axes, budget=budget)
            spent: list[float] = []
            made.executor.run = self.noting(made.executor.run, spent)  # type: ignore[method-assign]
            with self.seconds() as taken:
                made.run()
            inferences = made.outcomes.total()
            share = inferences / sum(spent) / reference
            self.report(
                f"adaptive, turn {turn + 1}", inferences, taken(), reference,
                executor=f"{sum(spent):.2f} s in {len(spent)} rounds ({share:.3f} of bare)",
                planning=f"{taken() - sum(spent):.2f} s",
            )  # fmt: skip
        if self.options.profile:
            self.profile("adaptive", self.session(model, arrays, axes, budget=budget))

    @staticmethod
    def noting(run: Callable[..., None], spent: list[float]) -> Callable[..., None]:
        """A function that notes how long each of its calls takes."""

        def timed(*arguments: Any) -> None:
            begin = time.perf_counter()
            run(*arguments)
            spent.append(time.perf_counter() - begin)

        return timed

    def imagenet(self) -> None:
        """Each perturbation of imagenet_c at each severity by itself, and clean: no step is shared."""
        module = resnet50().to(self.device)
        inputs = min(IMAGENET_INPUTS, self.options.inputs)
        images = np.random.default_rng(0).integers(0, 256, (inputs, 224, 224, 3), dtype=np.uint8)
        labels = np.arange(inputs) % 1000
        reference = self.bare("resnet50", module, images, IMAGENET_SIZES)
        axes = perturb.names("imagenet_c")[: 15 if self.options.axes == 4 else self.options.axes]
        model = TorchModel(module, version="random")
        for profile in (False, True) if self.options.profile else (False,):
            made = self.session(model, (images, labels), axes, strategy="full")
            work = Work(made.space.ids_up_to(1), np.arange(inputs))
            done = [0]

            def count(measured: Any, done: list[int] = done) -> None:
                done[0] += len(measured.places)

            made.executor.run(Work(work.configurations, np.arange(8)), made.outcomes, lambda measured: None)
            split = TimeSplit(str(self.device))
            with split.watching() if profile else nullcontext(), self.seconds() as taken:
                made.executor.run(work, made.outcomes, count)
            if profile:
                self.figures["resnet50 split"] = split.seconds
                print(f"resnet50: {split} (waiting after every step)", flush=True)
            else:
                self.report("resnet50", done[0], taken(), reference, batch=made.executor.batch_size.next())

    def subject(self, model_file: str, data: str) -> tuple[TorchModel, Any, list[str]]:
        path, arrays = need(f"models/{model_file}.onnx", f"data/{data}_test.npz")
        loaded, most = np.load(arrays), self.options.inputs
        module = onnx_as_torch(path).to(self.device)
        pair = loaded["x"][:most], loaded["y"][:most].astype(np.int64)
        return TorchModel(module, version=model_file), pair, AXES[data][: self.options.axes]

    def profile(self, name: str, made: Session) -> None:
        split = TimeSplit(str(self.device))
        with split.watching():
            made.run()
        self.figures[f"{name} split"] = split.seconds
        print(f"{name}: {split} (waiting after every step)", flush=True)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    tasks = ("lenet5", "resnet56", "resnet50", "adaptive")
    parser.add_argument("tasks", nargs="*", metavar="TASK", help=f"of {', '.join(tasks)} (default: all)")
    parser.add_argument("--device", default="cuda")
    parser.add_argument("--precision", default="float32")
    parser.add_argument("--inputs", type=int, default=10_000)
    parser.add_argument("--axes", type=int, default=4, help="of the tomographies (default: 4)")
    parser.add_argument("--largest", type=int, default=max(SIZES), help="batch of the bare model")
    parser.add_argument("--profile", action="store_true", help="also what the time goes to")
    parser.add_argument("--out", type=Path, help="figures as JSON")
    options = parser.parse_args()
    bench = Bench(options)
    for task in options.tasks or tasks:
        if task == "lenet5":
            bench.full("lenet5", "mnist_lenet5", "mnist")
        elif task == "resnet56":
            bench.full("resnet56", "cifar10_resnet56", "cifar10")
        elif task == "resnet50":
            bench.imagenet()
        elif task == "adaptive":
            bench.adaptive()
        else:
            parser.error(f"task: {task!r} is not known; accepted: {', '.join(tasks)}")
        if options.out is not None:
            options.out.write_text(json.dumps({"machine": bench.machine, **bench.figures}, indent=1))


if __name__ == "__main__":
    main()
