"""Measures anew what `papers.py` works from: the recorded grids and tables of benchmarks/grids.

    python benchmarks/record.py --out benchmarks/grids [--only NAME ...] [--device cpu|cuda] [--inputs N]
                                [--against FOLDER]

Models and data come from TESTIFAI_DATA; what is missing is said, and the rest goes on. An accelerator is used where
there is one (and torch). Names are the modules of `evaluation/recording`, each a family of files. `--inputs` cuts
those short that can be, and `--against` compares the grids with those of a folder: so a few inputs tell whether the
committed ones can be had again.
"""

from __future__ import annotations

import argparse
import importlib
import inspect
import pkgutil
import sys
import time
from pathlib import Path
from typing import Any

import evaluation.recording
from common import FOLDER
from evaluation.setting import MissingFileError
from replay import Grid

from testifai.errors import InputError
from testifai.support.bits import unpack

MEGABYTE = 1_000_000
LIMIT = 2 * MEGABYTE
# What a family says where something is not there.
MISSING = (MissingFileError, FileNotFoundError, ImportError, InputError)


def families() -> list[str]:
    """The names of the modules that measure something, in the order of the alphabet."""
    return sorted(one.name for one in pkgutil.iter_modules(evaluation.recording.__path__) if one.name[0] != "_")


def accelerator() -> str:
    """The device of torch's that is quickest here."""
    try:
        import torch
    except ImportError:
        return "cpu"
    return "cuda" if torch.cuda.is_available() else "cpu"


def record(name: str, out: Path, data: Path, device: str, inputs: int | None) -> None:
    """The files of one family; raises one of MISSING for what is not there."""
    measure = importlib.import_module(f"evaluation.recording.{name}").record
    fewer: dict[str, Any] = {}
    if inputs is not None and "inputs" in inspect.signature(measure).parameters:
        fewer["inputs"] = inputs
    measure(out, data, device, **fewer)


def compare(out: Path, against: Path) -> None:
    """Print how many outcomes differ, for every grid that is in both folders, on the inputs that are in both."""
    for path in sorted(out.glob("*.npz")):
        try:
            ours, theirs = Grid.read(path), Grid.read(against / path.name)
        except InputError:  # no grid, or not in both
            continue
        if (ours.axes, ours.levels) != (theirs.axes, theirs.levels):
            print(f"{path.name}: {', '.join(theirs.axes)} {theirs.levels} in {against}: other tests")
            continue
        inputs = min(ours.inputs, theirs.inputs)
        differing = unpack(ours.passes, inputs) != unpack(theirs.passes, inputs)
        print(f"{path.name}: {differing.sum():,} of {differing.size:,} outcomes differ ({inputs} inputs)")


def main() -> None:
    known = families()
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--out", type=Path, required=True, help="where measured files go")
    parser.add_argument("--only", nargs="+", choices=known, metavar="NAME", help=f"of {', '.join(known)}")
    parser.add_argument("--device", help="of torch (default: cuda where there is one, else cpu)")
    parser.add_argument("--inputs", type=int, help="so many at most")
    parser.add_argument("--against", type=Path, metavar="FOLDER", help="grids to compare with")
    options = parser.parse_args()
    options.out.mkdir(parents=True, exist_ok=True)
    device = options.device or accelerator()
    for name in options.only or known:
        begin = time.perf_counter()
        try:
            record(name, options.out.resolve(), FOLDER.resolve(), device, options.inputs)
        except MISSING as error:
            print(f"not measured: {name}: {error}", file=sys.stderr, flush=True)
        else:
            print(f"{name}: {time.perf_counter() - begin:.0f} s ({device})", flush=True)
    for path in sorted(options.out.iterdir()):
        if (size := path.stat().st_size) > LIMIT:
            told = f"{size / MEGABYTE:.1f} MB (at most {LIMIT / MEGABYTE:g})"
            print(f"too large to be committed: {path.name}: {told}", file=sys.stderr)
    if options.against is not None:
        compare(options.out, options.against)


if __name__ == "__main__":
    main()
