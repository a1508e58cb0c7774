"""yaml/pyyaml #614: a mapping as a key ends in a traceback of the library.

Here every file of settings says in one line, with its place, that a key must be text.
"""

from pathlib import Path

import pytest
from small_experiment import Project

from synthbench.base.errors import UserError
from synthbench.base.yaml_loading import load_yaml


@pytest.mark.parametrize("text", ["a: 1\n? {b: {c: d}}\n: e\n", "a: 1\n{b: 1}: e\n", "a: 1\n? [b, c]\n: e\n"])
def test_a_key_that_is_not_text_is_reported_with_its_line(text: str) -> None:
    with pytest.raises(UserError, match=r"^x\.yaml:2: a key must be text, is a (mapping|list)$"):
        load_yaml(text, "x.yaml")


def test_an_experiment_file_with_a_key_that_is_not_text_is_refused(project: Project) -> None:
    file = Path(project.file)
    file.write_text("? {a: {b: c}}\n: d\n" + file.read_text(encoding="utf-8"), encoding="utf-8")
    called = project.call("validate", project.file)
    assert (called.code, called.out) == (2, "")
    assert called.errors == [f"{project.file}:1: a key must be text, is a mapping"]
