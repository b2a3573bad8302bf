"""How many blocks and commands of the documentation are run by the tests, and why the others are not.

python -m tests.docs.count
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable

from tests.docs.blocks import Page, Step, pages, read
from tests.docs.running import runs


def summary(counted: Iterable[Page]) -> str:
    """One line, with the reasons by how many they hold back."""
    counted = list(counted)
    steps = [step for page in counted for step in page.steps if step.kind != "material"]
    mentions = [step for page in counted for step in page.mentions]
    reasons = Counter(_short(step) for step in steps if not runs(step))
    told = ", ".join(f"{reason} {count}" for reason, count in reasons.most_common())
    return (
        f"docs: {len(steps) - reasons.total()} blocks and commands executed, "
        f"{reasons.total()} not{f' ({told})' if told else ''}; {len(mentions)} more commands are named in sentences, "
        f"and exist, {sum(step.reason is not None for step in mentions)} where the page says why they are not run"
    )


def _short(step: Step) -> str:
    """'needs a GPU, of any kind' → 'GPU'."""
    if step.reason is None:
        return f"{step.where} is not installed"
    return re.split(r"[,;:(]", re.sub(r"^(it )?needs (an? |the )?", "", step.reason))[0].strip()


if __name__ == "__main__":
    read_pages = [read(path) for path in pages()]
    for page in read_pages:
        if page.steps or page.mentions:
            print(f"{page.name}: {summary([page]).removeprefix('docs: ')}")
    print(summary(read_pages))
