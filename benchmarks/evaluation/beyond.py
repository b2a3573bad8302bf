"""Future work of the papers, done: inputs prioritised, r of DeepEST chosen by labels, regions for verifiers."""

from __future__ import annotations

from evaluation import beyond_hunting, beyond_shares, beyond_verification
from evaluation.page import Page
from evaluation.setting import Setting


def write(page: Page, setting: Setting) -> None:
    page.title("Beyond the papers: what they leave to future work")
    page.text(
        "TestifAI names input-level prioritisation for the worst case and formal verification as complements of its "
        "tomography (§8); DeepEST fixes r = 0.8 by hand. Each is a part of the product here."
    )
    beyond_hunting.write(page, setting)
    beyond_shares.write(page, setting)
    beyond_verification.write(page, setting)
