"""How quick the edits of texts are: sentences per second on one core, and how many sentences have no place.

python benchmarks/texts.py

Questions of Quora's pairs (data/qqp_dev.csv in TESTIFAI_DATA) of 8 to 16 words; processor time, best of five turns,
over those that have a place for the edit. In pairs, both texts are edited and both count.
"""

from __future__ import annotations

import statistics
import sys

from common import need, seconds

from testifai.data import load
from testifai.perturb import get
from testifai.perturb.text import KINDS, edits
from testifai.support.batches import Batch

SENTENCES = 20_000
REQUIRED = 30_000


def questions(pairs: list[tuple[str, str]]) -> list[str]:
    """The first questions of ordinary length."""
    return [text for text, _ in pairs if 8 <= len(text.split()) <= 16][:SENTENCES]


def per_second(name: str, batch: Batch, texts: int, severity: int) -> float:
    """Texts per second."""
    subject = get(name)
    # The first call also reads tables.
    subject.apply(batch[:10], severity)
    return texts / seconds(lambda: subject.apply(batch, severity))


def main() -> None:
    (path,) = need("data/qqp_dev.csv")
    pairs = load("csv", path).inputs
    print(f"{len(pairs)} pairs read in {seconds(lambda: load('csv', path)):.3f} s")
    texts = questions(pairs)
    words = statistics.mean(len(text.split()) for text in texts)
    print(f"{len(texts)} questions of {words:.1f} words on average; required: {REQUIRED} per second for one edit\n")
    print(f"{'':18s} {'one edit':>10s} {'in pairs':>10s} {'five edits':>10s}   no place   fewer than five")
    reached = True
    for kind in KINDS:
        name = f"text.{kind}"
        report = edits(name, texts, 5)
        # A text without a place costs less than one with an edit.
        having = [text for text, count in zip(texts, report.counts, strict=True) if count]
        having = having[: len(having) // 2 * 2]
        one, five = (per_second(name, having, len(having), number) for number in (1, 5))
        paired = per_second(name, list(zip(having[::2], having[1::2], strict=True)), len(having), 1)
        missing, short = report.untouched / len(texts), report.short / len(texts)
        reached &= one >= REQUIRED
        print(f"{name:18s} {one:8.0f}/s {paired:8.0f}/s {five:8.0f}/s {missing:9.1%} {short:14.1%}")
    print("\nreached" if reached else "\nMISSED")
    sys.exit(not reached)


if __name__ == "__main__":
    main()
