"""`synthbench expand`: print the long form of an experiment file."""

import sys

from synthbench.cli.options import File


def expand(file: File) -> None:
    """Print the long form of a short file, or of a file with recipes, as YAML that runs in the same folder.

    Both forms have the same stage identities. Findings on the data go to standard error.
    """
    from synthbench.config.overrides import Overrides, Request
    from synthbench.config.problems import Problems
    from synthbench.results.collect import to_yaml

    problems = Problems()
    request = Request.read(file, Overrides(), problems)
    problems.raise_if_any()
    for note in (*request.expanded.notes, *request.expanded.findings):
        print(f"note: {note}", file=sys.stderr)
    print(to_yaml(request.file.data), end="")
