"""hydra-ecosystem/hydra #1000: 1e-05 is read as a text, not as a number.

Numbers in YAML without a point, as 2e-5, are numbers, in files and in `--set`; so is what Python prints.
"""

import pytest

from synthbench.base.yaml_loading import load_yaml
from synthbench.config.documents import parse_document

FORMS = {"2e-5": 2e-5, "1e-05": 1e-5, "1E3": 1000.0, "5e+2": 500.0, "1.5e-4": 1.5e-4, "-3e-7": -3e-7}


@pytest.mark.parametrize(("written", "number"), FORMS.items())
def test_a_value_with_an_exponent_is_a_number(written: str, number: float) -> None:
    found = parse_document(f"learning_rate: {written}\n", "own.yaml").data["learning_rate"]
    assert isinstance(found, float)
    assert found == number
    assert load_yaml(f"[{written}, {number!r}]", "own.yaml") == [number, number]


def test_a_quoted_number_is_a_text() -> None:
    assert parse_document('name: "1e5"\n', "own.yaml").data == {"name": "1e5"}
