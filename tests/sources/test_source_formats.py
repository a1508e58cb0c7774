"""Files in formats of their own: an importer that anybody installs reads them."""

import json
from importlib.metadata import EntryPoint
from pathlib import Path

import pytest
from pydantic import ValidationError
from wording import refused

from synthbench.data.reading import Content, Faults, read_lines
from synthbench.data.records import RecordKind, Sentence
from synthbench.plugins import loading as plugin_loading
from synthbench.plugins.importers import Importer, ImportOptions
from synthbench.sources import formats
from synthbench.sources.description import Roots
from synthbench.sources.models import FileSource


class PoemFile(Importer):
    """A verse a line."""

    version = 3
    title = "poems"
    suffix = ".txt"
    kinds = (RecordKind.SENTENCE,)
    columns = ("verse",)

    def read(self, file: Path, kind: RecordKind | None, options: ImportOptions) -> Content:
        lines = enumerate(read_lines(file), start=1)
        return Content([Sentence(id=str(n), split=options.split, sentence=line) for n, line in lines])


@pytest.fixture
def poem(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A poem's file, and an importer of poems that is installed."""
    point = EntryPoint("poem", f"{__name__}:PoemFile", "synthbench.importers")
    found = plugin_loading.offered
    plugin_loading.installed_component.cache_clear()
    offered = {**found("importers"), "poem": (point,)}
    monkeypatch.setattr(plugin_loading, "offered", lambda group: offered)
    (tmp_path / "poem.txt").write_text("One.\nTwo.\n", encoding="utf-8")
    return tmp_path / "poem.txt"


def test_a_plug_ins_importer_reads_a_source_and_changes_its_identity(poem: Path) -> None:
    source = FileSource(file=poem.name, format="poem", split="dev")
    data = source.load(Roots(base=poem.parent))
    assert [(one.id, one.split, one.sentence) for one in data] == [("1", "dev", "One."), ("2", "dev", "Two.")]
    assert source.version == PoemFile.version
    assert [*source.fingerprint(Roots(base=poem.parent))] == ["poem.txt", __name__]
    assert formats.code_of_format("dino") == {}
    assert "--format poem" in formats.format_hint(["verse", "year"])


def test_an_importer_refuses_other_formats(poem: Path) -> None:
    with pytest.raises(ValidationError, match="where: poems knows its own"):
        FileSource(file=poem.name, format="poem", where={"a": 1})
    with pytest.raises(ValidationError, match=r"a file in poems is a \.txt file"):
        FileSource(file="poem.csv", format="poem")
    with refused("--score", "poems"):
        formats.import_in_format(poem, "poem", None, {"good": 1.0})
    data = formats.import_in_format(poem, "poem", None, None)
    assert data.manifest.notes == ["imported from poem.txt, in poems"]
    with refused("poems", "read"):
        PoemFile().write(data, poem)


def test_an_importer_that_returns_no_records_is_reported(poem: Path) -> None:
    poem.write_text("", encoding="utf-8")
    with refused("poem.txt", "poems"):
        formats.import_in_format(poem, "poem", None, None)


def test_a_hint_skips_importers_that_cant_be_loaded(poem: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    broken = EntryPoint("broken", "no_such_module:Importer", "synthbench.importers")
    offered = {"broken": (broken,), **plugin_loading.offered("importers")}
    monkeypatch.setattr(plugin_loading, "offered", lambda group: offered)
    assert "--format poem" in formats.format_hint(["verse"])


def test_ten_faults_of_a_file_are_shown_and_the_others_counted(tmp_path: Path) -> None:
    (tmp_path / "bad.txt").write_bytes(b"\xff\n" * 12)
    with refused("bad.txt:10", "2 more"):
        read_lines(tmp_path / "bad.txt")
    faults = Faults()
    faults.raise_if_any()
    assert json.dumps(faults.messages) == "[]"
