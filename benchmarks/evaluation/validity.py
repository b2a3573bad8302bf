"""Validity of perturbed inputs, the first paper's section 6 (Figures 9 to 11), and what a scan's time is spent on."""

from __future__ import annotations

from evaluation import validity_cost, validity_figures, validity_sheet
from evaluation.page import Page
from evaluation.setting import MissingFileError, Setting
from evaluation.tasks import TASKS
from evaluation.validity_quality import DRAWS, WAYS, recorded


def write(page: Page, setting: Setting) -> None:
    page.title("TestifAI: validity of perturbed inputs, and where the time goes")
    tables, missing = recorded(TASKS, setting)
    page.missing += missing
    with page.part("Quality of all 1,296 tests"):
        if not tables:
            raise MissingFileError("quality_TASK.npz of any task (made by `make papers FULL=1`)")
        validity_figures.measured(page, tables, missing)
    if tables:
        found = [[way.predictions(one, setting.times(DRAWS)) for way in WAYS] for one in tables]
        with page.part("Quality, predicted quality and accuracy drop against the severity sum (Figure 9)"):
            validity_figures.against_sums(page, found)
        with page.part("Errors of predicted quality in four dimensions (Figure 10)"):
            validity_figures.errors(page, found)
        with page.part("Queries with a limit on quality"):
            validity_figures.limits(page, found)
    with page.part("Perturbed examples (Figure 11)"):
        validity_sheet.write(page, setting)
    with page.part("What a scan's time is spent on (section 5.4)"):
        validity_cost.write(page, setting)
