"""`synthbench expand`: print the long form of an experiment file."""

import sys

from synthbench.cli.options import File


def expand(file: File) -> None:
    """Print a file with what its recipes and its short form stand for, as YAML that runs in the same folder.

    Both files give the same identities. What was found in the data goes to standard error.
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
