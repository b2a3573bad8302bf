"""A run for people as one file: page, Markdown, JUnit, PDF."""
