"""Trusted certificates are read once for all tests: hundreds of clients would read them again, 20 ms each."""

import functools
import sys

import pytest


@pytest.fixture(autouse=True)
def certificates_are_read_once() -> None:
    """Cache the TLS context of all clients, which no client changes."""
    transport = sys.modules.get("httpcore2")
    if transport is not None and not hasattr(transport.default_ssl_context, "__wrapped__"):
        transport.default_ssl_context = functools.cache(transport.default_ssl_context)
