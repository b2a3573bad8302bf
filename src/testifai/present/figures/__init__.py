"""Every figure, as a function of what it shows.

`heatmaps.heatmap`, `voxels.voxels`, `curves.severity_curves`, `curves.severity_sum_curve`, `distribution.by_order`,
`dots.worst_tests`, `dots.classes` and `sweeps.sweep_curves`, among others. Each takes `dark=True` for a dark page.
Plotly is imported when the first one is drawn.
"""
