"""Models that read texts, or pairs of texts.

Composite perturbations repeat most texts: each is worked out once (`cache`). Texts run in batches of equal length
(`tokens`), without padding, so that what comes out for a text does not follow from its neighbours.
"""
