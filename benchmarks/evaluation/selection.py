"""Which tests to train on, and by what model: Figures 7 and 8 of the first paper, its choice of the forest, and spaces
in which the order of application counts."""

from __future__ import annotations

from replay import Grid

from evaluation import selection_curves, selection_sensitive, selection_surrogates
from evaluation.page import Page
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS, Task


def write(page: Page, setting: Setting) -> None:
    page.title("TestifAI: the choice of tests and of the model")
    with page.part("Ordered against random choice of training tests (Figures 7 and 8)"):
        selection_curves.write(page, recorded(page, setting), setting)
    with page.part("Other models in place of the forest"):
        selection_surrogates.write(page, recorded(page, setting), setting)
    with page.part("Where the order of application counts"):
        selection_sensitive.write(page, setting)


def recorded(page: Page, setting: Setting) -> dict[Task, Grid]:
    """The tasks that have a grid (two, to see that all of it runs); of others the page says what is missing."""
    grids, missing = {}, []
    for task in TASKS:
        try:
            grids[task] = task.grid(setting)
        except MissingFileError as error:
            missing.append(str(error))
    if not grids:
        raise MissingFileError(", ".join(missing))
    if missing:
        page.text(f"*Without {', '.join(missing)}: not found.*")
        page.missing += [line for line in missing if line not in page.missing]
    return dict(list(grids.items())[:2]) if setting.tiny else grids
