"""The explorer of runs in the browser, for `testifai explore` alone: its modules need Dash (extra `app`)."""
