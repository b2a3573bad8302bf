"""How quick the edits of texts are: sentences per second on one core, and how many sentences have no place.

python benchmarks/texts.py

Questions of Quora's pairs (data/qqp_dev.csv in TESTIFAI_DATA) of 8 to 16 words; processor time, best of five turns,
over those that have a place for the edit.
"""

from __future__ import annotations

import csv
import statistics
import sys
import time

from common import need

from testifai.perturb import get
from testifai.perturb.text import KINDS, edits

SENTENCES = 20_000
TURNS = 5
REQUIRED = 30_000


def questions() -> list[str]:
    """The first questions of ordinary length."""
    (path,) = need("data/qqp_dev.csv")
    with path.open(newline="", encoding="utf-8") as lines:
        found = [row["question1"] for row in csv.DictReader(lines)]
    return [text for text in found if 8 <= len(text.split()) <= 16][:SENTENCES]


def per_second(name: str, texts: list[str], severity: int) -> float:
    """Texts per second of processor time: other programs on the machine do not count."""
    subject = get(name)
    # The first call also reads tables.
    subject.apply(texts[:10], severity)
    times = []
    for _ in range(TURNS):
        begin = time.process_time()
        subject.apply(texts, severity)
        times.append(time.process_time() - begin)
    return len(texts) / min(times)


def main() -> None:
    texts = questions()
    words = statistics.mean(len(text.split()) for text in texts)
    print(f"{len(texts)} questions of {words:.1f} words on average; required: {REQUIRED} per second for one edit\n")
    print(f"{'':18s} {'one edit':>10s} {'five edits':>10s}   no place   fewer than five")
    reached = True
    for kind in KINDS:
        name = f"text.{kind}"
        report = edits(name, texts, 5)
        # A text without a place costs less than one with an edit.
        having = [text for text, count in zip(texts, report.counts, strict=True) if count]
        one, five = per_second(name, having, 1), per_second(name, having, 5)
        missing, short = report.untouched / len(texts), report.short / len(texts)
        reached &= one >= REQUIRED
        print(f"{name:18s} {one:8.0f}/s {five:8.0f}/s {missing:9.1%} {short:14.1%}")
    print("\nreached" if reached else "\nMISSED")
    sys.exit(not reached)


if __name__ == "__main__":
    main()
