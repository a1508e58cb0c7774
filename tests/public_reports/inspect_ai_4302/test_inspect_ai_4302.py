"""UKGovernmentBEIS/inspect_ai #4302: a remote address was recorded in logs with the token in it.

Here the token goes; what tells nothing secret (the user of ssh, an address in scp's form) stays.
"""

import pytest

from synthbench.base.redaction import masked


def test_a_recorded_address_has_no_token() -> None:
    assert masked("origin: https://x-access-token:hush@github.com/a/b") == (
        "origin: https://x-access-token:***@github.com/a/b"
    )


@pytest.mark.parametrize(
    "address", ["git@github.com:a/b.git", "ssh://git@github.com/a/b", "https://github.com/a"]
)
def test_addresses_without_a_token_are_unchanged(address: str) -> None:
    assert masked(address) == address
