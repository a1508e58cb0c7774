"""snowflakedb/ArcticTraining #85: of a key that a file gives twice the last value counted, without a word.

Here it is refused with the line of the second, also where one is text and one a number; no value is repeated.
"""

import pytest

from synthbench.base.errors import UserError
from synthbench.base.yaml_loading import load_yaml


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        ("data:\n  max_length: 1024\n  max_length: 262144\n", "x.yaml:3: data.max_length: is given twice"),
        ("1: a\n'1': b\n", "x.yaml:2: 1: is given twice"),
        ("api_key: hush\napi_key: hush\n", "x.yaml:2: api_key: is given twice"),
    ],
)
def test_a_duplicate_key_is_refused(text: str, fault: str) -> None:
    with pytest.raises(UserError) as caught:
        load_yaml(text, "x.yaml")
    assert caught.value.messages == (fault,)
