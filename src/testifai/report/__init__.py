"""A run for people: figures, and the one-file report made of them.

The figures are functions of a tomogram: `heatmaps.heatmap`, `voxels.voxels`, `curves.severity_curves` and
`curves.severity_sum_curve`, `distribution.by_order`, `dots.worst_tests`, `dots.classes`,
`sweeps.sweep_curves`. Each takes `dark=True` for a dark page. Plotly is imported when the first one is drawn.
"""
