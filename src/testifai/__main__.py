"""python -m testifai is the command testifai."""

from testifai.cli import main

main()
