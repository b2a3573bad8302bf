"""What is in many files, told by hashes; a file that did not change since is not read again."""

from __future__ import annotations

import hashlib
import os
import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np

from testifai.data.contents import HASH_BYTES
from testifai.data.lazy import Digests
from testifai.errors import InputError

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
