"""huggingface/datasets #3297: a cached result is used again although the imported function was edited.

The code of a user's own plug-in is part of what a result is kept under: of a file the file, of a package
all its files, those that the class only imports from included.
"""

import importlib
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from synthbench.plugins import code as plugin_code
from synthbench.plugins.code import code_of

if TYPE_CHECKING:
    from synthbench.plugins.contracts import Component

PACKAGE = "mapping_of_report_3297"
CLASS = f"""\
from synthbench.plugins.contracts import Component
from {PACKAGE}.mapping import LENGTH

class Cut(Component):
    length: int = LENGTH
"""


@pytest.fixture
def package(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    folder = tmp_path / PACKAGE
    folder.mkdir()
    (folder / "__init__.py").touch()
    (folder / "steps.py").write_text(CLASS, encoding="utf-8")
    (folder / "mapping.py").write_text("LENGTH = 4\n", encoding="utf-8")
    monkeypatch.syspath_prepend(str(tmp_path))
    yield folder
    forget()


def forget() -> None:
    for name in [name for name in sys.modules if name.startswith(PACKAGE)]:
        del sys.modules[name]
    plugin_code._code.cache_clear()
    importlib.invalidate_caches()


def code() -> object:
    forget()
    found: type[Component] = importlib.import_module(f"{PACKAGE}.steps").Cut
    return code_of([("cut", found.model_construct())])


def test_an_edited_import_of_a_plug_in_changes_the_plug_ins_identity(package: Path) -> None:
    before = code()
    assert code() == before
    (package / "mapping.py").write_text("LENGTH = 5\n", encoding="utf-8")
    after = code()
    assert after != before
    (package / "mapping.py").write_text("LENGTH = 4\n", encoding="utf-8")
    assert code() == before
