"""Documents as passages: Markdown, text and PDF files, their places, and what is refused."""

import io
import os
from importlib.metadata import version
from pathlib import Path

import pytest
from pypdf import PdfWriter
from wording import refused

from synthbench.data.records import Sentence
from synthbench.sources import documents, pdf_text
from synthbench.sources.description import Roots
from synthbench.sources.documents import NO_TEXT, TOO_SHORT, DocumentsSource
from synthbench.sources.guessing import guess

DOCS = Path(__file__).parents[2] / "docs"
LEVER = "The pump starts when the red lever is pulled down twice."
OIL = "Oil is changed after every four hundred hours of work."
GUIDE = f"""---
title: A guide that nobody reads
---
{OIL}

# Pumps

{LEVER}

## Oil *and* water

```
# no heading, but a comment in code that is long enough
```

{OIL}
"""


def pdf(*pages: str, stream_keys: str = "") -> bytes:
    """Return a PDF by hand: its objects, the table of their offsets, and the trailer."""
    kids = " ".join(f"{4 + 2 * number} 0 R" for number in range(len(pages)))
    objects = [
        "<< /Type /Catalog /Pages 2 0 R >>",
        f"<< /Type /Pages /Kids [{kids}] /Count {len(pages)} >>",
        "<< /Type /Font /Subtype /Type1 /BaseFont /Helvetica >>",
    ]
    for number, text in enumerate(pages):
        stream = f"BT /F1 12 Tf 72 720 Td ({text}) Tj ET" if text else ""
        objects.append(
            "<< /Type /Page /Parent 2 0 R /MediaBox [0 0 612 792] /Resources << /Font << /F1 3 0 R >> >>"
            f" /Contents {5 + 2 * number} 0 R >>"
        )
        objects.append(f"<< /Length {len(stream)}{stream_keys} >>\nstream\n{stream}\nendstream")
    whole, offsets = "%PDF-1.4\n", []
    for number, content in enumerate(objects, start=1):
        offsets.append(len(whole))
        whole += f"{number} 0 obj\n{content}\nendobj\n"
    table = "".join(f"{offset:010d} 00000 n \n" for offset in offsets)
    size = len(objects) + 1
    return (
        f"{whole}xref\n0 {size}\n0000000000 65535 f \n{table}"
        f"trailer\n<< /Size {size} /Root 1 0 R >>\nstartxref\n{len(whole)}\n%%EOF\n"
    ).encode()


def read(folder: Path, **settings: object) -> dict[str, str]:
    source = DocumentsSource.model_validate({"documents": folder.name, **settings})
    records = source.read(Roots(base=folder.parent)).records
    return {record.id: record.sentence for record in records if isinstance(record, Sentence)}


def test_each_passage_has_its_file_and_heading_line_or_page(tmp_path: Path) -> None:
    folder = tmp_path / "manual"
    (folder / "inner").mkdir(parents=True)
    (folder / "guide.md").write_text(GUIDE, encoding="utf-8")
    (folder / "inner" / "notes.txt").write_text(f"Notes\n\n\n{LEVER}\n{'word ' * 30}", encoding="utf-8")
    (folder / "oil.PDF").write_bytes(pdf(OIL, "", LEVER, stream_keys=" /F (/etc/hostname)"))
    (folder / ".hidden.md").write_text(LEVER, encoding="utf-8")
    (folder / "table.csv").write_text(LEVER, encoding="utf-8")
    source = DocumentsSource(documents="manual", size=100)
    data = source.load(Roots(base=tmp_path))
    found = {record.id: record.sentence for record in data}
    assert found["guide.md#top/1"] == OIL
    assert found["guide.md#Pumps/1"] == f"# Pumps {LEVER}"
    assert found["guide.md#Oil *and* water/2"] == OIL
    assert found["inner/notes.txt#line 4/1"] == LEVER
    assert found["inner/notes.txt#line 5/1"] == " ".join(["word"] * 20)
    assert (found["oil.PDF#page 1/1"], found["oil.PDF#page 3/1"]) == (OIL, LEVER)
    assert {name.partition("#")[0] for name in found} == {"guide.md", "inner/notes.txt", "oil.PDF"}
    assert data.manifest.dropped == {NO_TEXT: 1, TOO_SHORT: 1}
    assert data.manifest.revisions.keys() == {
        "guide.md", "inner/notes.txt", "oil.PDF", "semantic-text-splitter", "markdown-it-py", "pypdf"
    }  # fmt: skip
    assert data.manifest.revisions["pypdf"] == version("pypdf")
    assert {record.split for record in data} == {"train"}


def test_this_projects_pages_become_passages_within_the_size(tmp_path: Path) -> None:
    source = DocumentsSource(documents=str(DOCS), size=600)
    content = source.read(Roots())
    texts = [text for record in content.records for text in record.texts()]
    assert max(map(len, texts)) <= 600
    assert content.dropped.keys() == {TOO_SHORT}
    ids = [record.id for record in content.records]
    assert len({*ids}) == len(ids)
    assert "gpl.md#InPars/1" in ids
    whole = "".join("".join(path.read_text("utf-8").split()) for path in sorted(DOCS.rglob("*.md")))
    assert sum(len("".join(text.split())) for text in texts) > 0.97 * len(whole)


def test_another_content_is_another_source_and_another_size_too(tmp_path: Path) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    (folder / "a.txt").write_text(LEVER, encoding="utf-8")
    source, roots = DocumentsSource(documents="manual"), Roots(base=tmp_path)
    before = source.fingerprint(roots)
    (folder / "a.txt").write_text(OIL, encoding="utf-8")
    assert source.fingerprint(roots) != before
    assert "pypdf" not in before
    assert source.model_dump() != DocumentsSource(documents="manual", size=500).model_dump()


def test_faults_of_all_files_are_said_in_a_line_each(tmp_path: Path) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    (folder / "scan.pdf").write_bytes(pdf("", ""))
    (folder / "cut.pdf").write_bytes(pdf(OIL)[:60])
    writer = PdfWriter(clone_from=io.BytesIO(pdf(OIL)))
    writer.encrypt("secret", algorithm="RC4-128")
    writer.write(folder / "locked.pdf")
    (folder / "latin.txt").write_bytes("Öl wird gewechselt.".encode("latin-1"))
    (folder / "binary.md").write_bytes(b"abc\0def")
    with refused("scan.pdf", "cut.pdf", "locked.pdf", "latin.txt:1", "binary.md"):
        read(folder)


def test_what_holds_no_documents_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "manual"
    with refused("manual", "no such"):
        read(folder)
    folder.mkdir()
    with refused("manual", ".md"):
        read(folder)
    (folder / "a.txt").write_text("Hm.", encoding="utf-8")
    with refused("manual", "no text"):
        read(folder)
    (folder / "table.csv").write_text(LEVER, encoding="utf-8")
    with refused("table.csv", ".pdf"):
        read(folder / "table.csv")
    secret = tmp_path / "secret.txt"
    secret.write_text(LEVER, encoding="utf-8")
    (folder / "b.txt").symlink_to(secret)
    with refused("b.txt", "link"):
        read(folder)
    monkeypatch.setattr(documents, "_MODULES", ("no_such_module",))
    with refused("pip install 'synthbench[documents]'"):
        read(folder)


def test_limits_of_time_size_and_number_hold(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = tmp_path / "manual"
    folder.mkdir()
    (folder / "a.pdf").write_bytes(pdf(OIL))
    with refused("a.pdf", "0 seconds"):
        pdf_text.pages_of(folder / "a.pdf", seconds=0)
    monkeypatch.setattr(pdf_text, "MOST_BYTES", 10)
    with refused("a.pdf", "MB"):
        pdf_text.pages_of(folder / "a.pdf")
    os.truncate(folder / "a.pdf", 0)
    (folder / "b.txt").write_text(OIL, encoding="utf-8")
    monkeypatch.setattr(documents, "MOST_FILES", 1)
    with refused("manual", "1"):
        read(folder)
    monkeypatch.setattr(documents, "MOST_BYTES", 10)
    with refused("b.txt", "MB"):
        read(folder / "b.txt")


def test_the_reader_of_pdfs_counts_pages_and_characters(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In this process, where the limits can be small."""
    file = tmp_path / "a.pdf"
    file.write_bytes(pdf(OIL, LEVER))
    assert pdf_text._read(str(file)) == [OIL, LEVER]
    monkeypatch.setattr(pdf_text, "MOST_CHARACTERS", 60)
    assert "characters" in pdf_text._read(str(file))
    monkeypatch.setattr(pdf_text, "MOST_PAGES", 1)
    assert "2 pages" in pdf_text._read(str(file))

    def exhausted(_: str) -> None:
        raise MemoryError

    monkeypatch.setattr("pypdf.PdfReader", exhausted)
    assert "4 GB of memory" in pdf_text._read(str(file))


def test_init_takes_a_folder_of_documents_as_passages(tmp_path: Path) -> None:
    (tmp_path / "a.md").write_text(f"# Pumps\n\n{LEVER} {OIL}", encoding="utf-8")
    (tmp_path / "b.txt").write_text(f"{OIL} {LEVER}", encoding="utf-8")
    found = guess(tmp_path, "passages")
    assert found.settings == {"documents": str(tmp_path)}
    assert found.findings == ("2 passages of at most 1,000 characters, from 1 .md, 1 .txt",)
    assert found.language == "en"
    with refused("nowhere", "no such"):
        guess(tmp_path / "nowhere", "passages")
