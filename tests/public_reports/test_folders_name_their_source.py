"""Each folder holds the case of one public report, which its test module names by project and number."""

import ast
import re
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent
CASES = sorted(path for path in FOLDER.iterdir() if path.is_dir() and not path.name.startswith(("_", ".")))
SOURCE = re.compile(r"(?P<owner>[\w.-]+)/(?P<name>[\w.-]+) #(?P<number>\d+): \S")
FEWEST = 60


def snake_case(project: str) -> str:
    words = re.sub(r"(?<=[a-z])(?=[A-Z][a-z])", "_", project)
    return re.sub(r"\W+", "_", words.lower())


def test_at_least_thirty_reports_are_tested() -> None:
    assert len(CASES) >= FEWEST


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.name)
def test_a_folder_has_the_name_of_its_report(case: Path) -> None:
    (module,) = case.glob("test_*.py")
    assert module.name == f"test_{case.name}.py"
    told = ast.get_docstring(ast.parse(module.read_text(encoding="utf-8"))) or ""
    first, _, rest = told.partition("\n\n")
    source = SOURCE.match(first)
    assert source, "the docstring begins as owner/name #number: what was reported"
    assert case.name == f"{snake_case(source['name'])}_{source['number']}"
    assert rest, "then it says what holds here"
