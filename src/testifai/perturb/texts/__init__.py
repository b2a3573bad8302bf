"""Kinds of edits of a text: where each can be made, and what it puts there."""
