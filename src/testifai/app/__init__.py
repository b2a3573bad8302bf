"""The explorer: runs in the browser, served from this machine to this machine.

Imported by `testifai explore` alone: its modules need Dash (extra `app`).
"""
