"""What is in many files, told by hashes; a file that did not change since is not read again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import cast

import numpy as np

from testifai.data.lazy import HASH_BYTES, Digests, LazyInputs
from testifai.data.table_columns import Table
from testifai.errors import InputError
from testifai.support.batches import Images, Pair, Side, are_images, are_pairs
from testifai.support.types import Array

_CHUNK_BYTES = 1 << 24


def chunks(inputs: Array | LazyInputs) -> Iterator[Array]:
    """The inputs a few megabytes at a time, so that a memory-mapped file is never held whole."""
    bytes_per_row = max(1, int(np.prod(inputs.shape[1:])) * inputs.dtype.itemsize)
    step = max(1, _CHUNK_BYTES // bytes_per_row)
    for start in range(0, len(inputs), step):
        yield np.asarray(inputs[start : start + step])


def fingerprint(
    inputs: Array | list[str] | list[Pair] | Images | LazyInputs,
    labels: Array | None = None,
    classes: tuple[str, ...] | None = None,
    side: Side = "both",
    table: Table | None = None,
    *,
    former: bool = False,
    whole: bool = False,
) -> str:
    """BLAKE2b over dtype, shape and contents of inputs and labels, little-endian; and the side of pairs of texts, and
    the names and kinds of columns of a table.

    `former` asks for what version 0.1.0 found, `whole` for all contents also of data too large to be told by them.

    >>> fingerprint(["a", "bc"]) == fingerprint(["ab", "c"])
    False
    """
    digest = hashlib.blake2b(digest_size=16)
    if are_pairs(inputs):
        digest.update(f"pairs {len(inputs)} {side}\n".encode())
        for pair in inputs:
            for text in pair:
                _add_text(digest, text)
    elif are_images(inputs):
        digest.update(f"images {len(inputs)}\n".encode())
        for image in inputs:
            _add_array(digest, image)
    elif isinstance(inputs, list):
        digest.update(f"texts {len(inputs)}\n".encode())
        for text in cast(list[str], inputs):
            _add_text(digest, text)
    elif isinstance(inputs, LazyInputs) and (identity := _identity(inputs, former, whole)) is not None:
        digest.update(identity)
    else:
        _add_array(digest, inputs)
    if table is not None:
        _add_text(digest, table.identity())
    digest.update(b"labels\n")
    if labels is not None:
        _add_array(digest, labels)
    for name in classes or ():
        _add_text(digest, name)
    return digest.hexdigest()


def _identity(inputs: LazyInputs, former: bool, whole: bool) -> bytes | None:
    if former:
        return inputs.former_identity()
    return inputs.whole_identity() if whole and inputs.contents is not None else inputs.identity()


def _add_text(digest: hashlib.blake2b, text: str) -> None:
    data = text.encode("utf-8", "surrogatepass")
    digest.update(f"{len(data)}\n".encode() + data)


def _add_array(digest: hashlib.blake2b, array: Array | LazyInputs) -> None:
    dtype = array.dtype.newbyteorder("<")
    digest.update(f"{dtype.str} {tuple(int(size) for size in array.shape)}\n".encode())
    for chunk in chunks(array):
        digest.update(np.ascontiguousarray(chunk.astype(dtype, copy=False)).data)


_STAT, _MASK = 4, (1 << 64) - 1
# A file changed so lately may change again without its times telling: clocks of file systems are coarse.
_SETTLED = 2_000_000_000  # nanoseconds
_THREADS = 4  # reading waits, and hashing lets other threads run

Stat = tuple[int, int, int, int]


class FileDigests:
    """Hashes of files, with what tells from outside whether a file is still the one that was hashed."""

    def __init__(self) -> None:
        self._known: dict[Stat, bytes] = {}
        self._lately: set[Stat] = set()
        self.read = 0  # files that were read

    def recall(self, digests: Digests) -> None:
        """Take over what `table` gave in an earlier process."""
        for row in np.ascontiguousarray(digests, "<u8"):
            size, changed, entry, inode = row[:_STAT].tolist()
            self._known.setdefault((size, changed, entry, inode), row[_STAT:].tobytes())

    def of(self, files: Sequence[Path]) -> list[bytes]:
        """The hash of each file's content."""
        stats = [stat_of(file) for file in files]
        unknown = [place for place, stat in enumerate(stats) if stat not in self._known]
        found = [self._known.get(stat, b"") for stat in stats]
        if unknown:
            with ThreadPoolExecutor(_THREADS, thread_name_prefix="testifai") as pool:
                hashes = pool.map(_hash, [files[place] for place in unknown])
                for place, digest in zip(unknown, hashes, strict=True):
                    found[place] = digest
                    self.learn(stats[place], digest)
        return found

    def table(self, files: Sequence[Path]) -> Digests:
        """What is worth knowing of these files another time."""
        rows = []
        for file in files:
            stat = stat_of(file)
            known = None if stat in self._lately else self._known.get(stat)
            if known is not None:
                rows.append([*stat, *np.frombuffer(known, "<u8").tolist()])
        return np.array(rows, np.uint64).reshape(len(rows), _STAT + HASH_BYTES // 8)

    def learn(self, stat: Stat, digest: bytes) -> None:
        """Take in the hash of a file that was read, and how the file looked from outside before."""
        self.read += 1
        if stat[-1] == 0:  # a file system without inodes: two files could look the same from outside
            return
        self._known[stat] = digest
        if time.time_ns() - max(stat[1:3]) < _SETTLED:
            self._lately.add(stat)


def stat_of(file: Path | str) -> Stat:
    """How a file looks from outside."""
    try:
        found = os.stat(file)
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None
    # The entry's time too: unlike that of the content, nobody can set it back.
    size, changed, entry, inode = found.st_size, found.st_mtime_ns, found.st_ctime_ns, found.st_ino
    return size & _MASK, changed & _MASK, entry & _MASK, inode & _MASK


def _hash(file: Path) -> bytes:
    digest = hashlib.blake2b(digest_size=HASH_BYTES)
    try:
        with file.open("rb") as stream:
            while chunk := stream.read(1 << 20):
                digest.update(chunk)
    except OSError as error:
        raise InputError(f"data: {file} cannot be read ({error.strerror})") from None
    return digest.digest()
