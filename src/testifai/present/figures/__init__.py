"""Every figure, as a function of what it shows; each takes `dark=True` for a dark page and imports plotly itself."""
