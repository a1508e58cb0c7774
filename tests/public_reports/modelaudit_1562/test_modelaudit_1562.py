"""promptfoo/modelaudit #1562: a redaction of errors must leave `monkey=value`, paths, and plain `@`.

Here the same texts stay as they are.
"""

import pytest

from synthbench.base.redaction import masked


@pytest.mark.parametrize(
    "text",
    ["monkey=value", "key=value", "C:/models/bert", "mail me@example.org", "authentication failed", "a@b:c"],
)
def test_text_without_secrets_is_unchanged(text: str) -> None:
    assert masked(text) == text
