"""The four papers' evaluations, a module to a section of docs/results.md, each with a `write(page, setting)`.

A new section is a module and its name below.
"""

from __future__ import annotations

# In the order of the page.
SECTIONS = ("tomography", "selection", "validity", "operational", "sweeps", "locality", "beyond")
