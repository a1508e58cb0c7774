"""mlflow/mlflow #5784: the token in a project's Git address stood in the logs and in the interface.

Here no address keeps a token or a password, wherever it goes: a result's texts, its settings, its source.
"""

import pytest

from synthbench.base.redaction import masked


@pytest.mark.parametrize(
    ("address", "shown"),
    [
        ("https://name:hush@github.com/a/b", "https://name:***@github.com/a/b"),
        ("https://hush@github.com/a/b#sub", "https://***@github.com/a/b#sub"),
        ("git+https://hush@github.com/a/b@main", "git+https://***@github.com/a/b@main"),
    ],
)
def test_the_token_of_a_git_address_is_masked(address: str, shown: str) -> None:
    assert masked(f"cloning {address} failed") == f"cloning {shown} failed"
