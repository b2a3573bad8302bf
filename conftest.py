"""Keep what needs an extra that is not installed out of the collection of doctests."""

from importlib.util import find_spec

collect_ignore_glob = [] if find_spec("torch") else ["src/testifai/perturb/ops_torch/*"]
