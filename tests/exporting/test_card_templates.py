"""Templates of cards join no two lines."""

from importlib.resources import files

import pytest

TEMPLATES = sorted(
    each.name
    for each in (files("synthbench.exporting") / "templates").iterdir()
    if each.name.endswith(".jinja")
)


@pytest.mark.parametrize("name", TEMPLATES)
def test_no_line_of_text_ends_with_a_tag_that_removes_its_line_break(name: str) -> None:
    """After a tag jinja leaves out the end of the line (`trim_blocks`), unless it ends with `+%}`."""
    lines = (files("synthbench.exporting") / "templates" / name).read_text("utf-8").splitlines()
    joined = [
        line
        for line, following in zip(lines, [*lines[1:], ""], strict=True)
        if line.endswith("%}")
        and not line.endswith("+%}")
        # A line that holds only template tags does not appear in the card.
        and not line.lstrip().startswith("{%")
        and following.strip()
    ]
    assert joined == []
