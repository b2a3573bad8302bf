"""DeepEST's evaluation on its five published subjects, and the same on our own models: an accuracy from few labels."""

from __future__ import annotations

from evaluation import operational_curves, operational_ours, operational_tables
from evaluation.operational_study import Study
from evaluation.page import Page
from evaluation.setting import Setting


def write(page: Page, setting: Setting) -> None:
    page.title("DeepEST: an accuracy and many failures from few labels")
    page.text(
        "The five tables published with the paper (10,000 examples each, auxiliary values and outcomes) and three "
        "models of our own on drifted streams. Draws and estimates are those of `testifai.operational`; weights of "
        "links follow the authors' implementation, whose results the published tables are, not the paper's text "
        "(below: what the text would give). MSE is told over that of simple random sampling without replacement "
        "(Eq. 3), which is exact. CES needs activations, which the published tables do not hold: it runs on our own "
        "models only, and on the published subjects its figures are the paper's.",
    )
    study = Study(setting)
    for part in (*operational_tables.PARTS, *operational_ours.PARTS, *operational_curves.PARTS):
        with page.part(part.title):
            part.write(page, study)
            page.say(part.title)
