"""How many blocks and commands of the documentation are run by the tests, and why the others are not.

python -m tests.docs.count
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tests.docs.blocks import Page, pages, read
from tests.docs.running import runs


def summary(counted: Iterable[Page]) -> str:
    """One line, with the reasons by how many they hold back."""
    executed, mentioned, reasons = 0, 0, Counter()
    for page in counted:
        for step in (*page.steps, *page.mentions):
            if step.kind == "material":
                continue
            if not runs(step):
                reasons[_short(step.reason) if step.reason else f"{step.where} is not installed"] += 1
            elif step.kind == "mention":
                mentioned += 1
            else:
                executed += 1
    told = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    return (
        f"docs: {executed} blocks and commands executed, {reasons.total()} not{f' ({told})' if told else ''}; "
        f"{mentioned} more commands are named in sentences, and exist"
    )


def _short(reason: str) -> str:
    """'needs a GPU, of any kind' → 'GPU'."""
    return re.split(r"[,;:(]", re.sub(r"^(it )?needs (an? |the )?", "", reason))[0].strip()


if __name__ == "__main__":
    read_pages = [read(path) for path in pages()]
    for page in read_pages:
        if page.steps or page.mentions:
            print(f"{page.name}: {summary([page]).removeprefix('docs: ')}")
    print(summary(read_pages))
