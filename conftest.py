"""Keep what needs an extra that is not installed out of the collection of doctests."""

from importlib.util import find_spec

NEED = {
    "dash": ["src/testifai/app/*"],
    "torch": ["src/testifai/perturb/ops_torch/*"],
    "pyagrum": ["src/testifai/locality/network.py", "src/testifai/locality/inference.py"],
}

collect_ignore_glob = [pattern for library, patterns in NEED.items() if not find_spec(library) for pattern in patterns]
