"""A folder of documents (Markdown, text, PDF) as passages, each with its file and heading, line or page."""

import os
from bisect import bisect
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from importlib.metadata import version
from importlib.util import find_spec
from itertools import accumulate, islice, pairwise
from pathlib import Path
from typing import ClassVar

from pydantic import Field

from synthbench.base.errors import UserError
from synthbench.base.user_files import check_file
from synthbench.data.reading import Content, Faults, hashes, read_lines
from synthbench.data.records import RecordKind, Sentence, is_unicode
from synthbench.sources.description import Roots, SourceBase
from synthbench.sources.pdf_text import pages_of
from synthbench.tables.characters import HOLDS_NUL, NUL

INSTALL = "pip install 'synthbench[documents]'"
MARKDOWN, TEXT, PDF = (".md", ".markdown"), (".txt",), (".pdf",)
ENDINGS = (*MARKDOWN, *TEXT, *PDF)
SPLITTER, PDF_READER, HEADINGS = "semantic-text-splitter", "pypdf", "markdown-it-py"
_MODULES = ("semantic_text_splitter", "pypdf", "markdown_it")
TOO_SHORT, NO_TEXT = "passage of a few letters", "page without text"
LEAST_LETTERS = 30
"""Fewest letters and digits of a passage, so that headings alone and rules are dropped."""
MOST_FILES, MOST_BYTES, MOST_OF_A_HEADING = 100_000, 50_000_000, 80
_FENCE = "---\n"


class DocumentsSource(SourceBase):
    """A folder of Markdown, text and PDF files, or one such file, cut into passages (sentence records).

    A passage ends at the end of a section or paragraph; long paragraphs are cut after a sentence or word. A
    PDF's passages stay on one page. White space becomes single blanks. Passages of fewer than 30 letters and
    digits are dropped and counted. A passage's id is its file, its location (heading, line or page) and its
    number at this location: `guide.md#Install/1`.
    """

    key: ClassVar[str] = "documents"
    documents: str = Field(
        min_length=1,
        description="the folder or file, relative to the experiment file; `data:PATH`: in the data folder"
        " (--data)",
    )
    size: int = Field(1000, ge=100, le=100_000, description="maximum length of a passage in characters")

    @property
    def own_kind(self) -> RecordKind:
        """Sentences."""
        return RecordKind.SENTENCE

    @property
    def final_split(self) -> str | None:
        """Always "train", even with `part`: passages have no labels, so they only serve for training."""
        return "train"

    def fingerprint(self, roots: Roots) -> dict[str, str]:
        """Return the hash of each file, and the versions of the libraries that determine the passages.

        Raises UserError as `documents_in`.
        """
        files = documents_in(self.path(roots))
        libraries = [SPLITTER, HEADINGS, *([PDF_READER] if _has_pdf(files) else [])]
        return {**hashes(files), **{name: version(name) for name in libraries}}

    def _read(self, roots: Roots) -> Content:
        path = self.path(roots)
        content, problems = Content(), Faults()
        for name, file in documents_in(path).items():
            seen: Counter[str] = Counter()
            try:
                found = _passages_of(file, self.size, _state(file))
            except UserError as error:
                for message in error.messages:
                    problems.add(message)
                continue
            for place, text in found:
                if sum(map(str.isalnum, text)) < LEAST_LETTERS:
                    content.drop(TOO_SHORT if text else NO_TEXT)
                    continue
                at = f"{name}#{place}"
                seen[at] += 1
                content.records.append(Sentence(id=f"{at}/{seen[at]}", split="train", sentence=text))
        problems.raise_if_any()
        if not content.records:
            raise UserError(f"{path}: its documents hold no text")
        return content

    def _own_records(self, roots: Roots) -> int | None:
        try:
            return len(self._read(roots).records)
        except UserError:
            return None


def documents_in(path: Path) -> dict[str, Path]:
    """Return a folder's documents by relative path, in the order of names; for a file, only the file.

    A folder's files come before its subfolders. Hidden files, hidden folders and links to folders are left
    out.

    Raises UserError if there are no documents or too many, or if a folder can't be read. Raises UserError for
    a link that leads out of the folder, a name that is not UTF-8, and a file that is too large. If a library
    is missing, the error names the command that installs it.
    """
    if any(find_spec(module) is None for module in _MODULES):
        raise UserError(f"{path}: documents need libraries that are not installed: {INSTALL}")
    if not path.exists():
        raise UserError(f"{path}: no such file or folder")
    files = _files_below(path) if path.is_dir() else iter([path])
    found = list(islice((file for file in files if file.suffix.lower() in ENDINGS), MOST_FILES + 1))
    if not found:
        holds = "holds no documents" if path.is_dir() else "is no document"
        raise UserError(f"{path}: {holds}; their names end in {', '.join(ENDINGS)}")
    if len(found) > MOST_FILES:
        raise UserError(f"{path}: holds more than {MOST_FILES:,} documents; name a part of it")
    root = path.resolve()
    for file in found:
        check_file(file)
        if not file.resolve().is_relative_to(root):
            raise UserError(f"{file}: is a link that leads out of {path}; put the file there")
        if not is_unicode(str(file)):
            raise UserError(f"{path}: the name {file.name!r} is not UTF-8; rename the file")
        if file.suffix.lower() not in PDF and (size := file.stat().st_size) > MOST_BYTES:
            raise UserError(
                f"{file}: has {size / 1e6:,.0f} MB, more than {MOST_BYTES // 1_000_000}; divide it"
            )
    return {file.relative_to(path if path.is_dir() else path.parent).as_posix(): file for file in found}


def _files_below(folder: Path) -> Iterator[Path]:
    """Yield the files that are not hidden, in the order of names; raises UserError for unreadable folders."""

    def refuse(error: OSError) -> None:
        raise UserError(f"{error.filename}: can't be read: {error.strerror}")

    for parent, inner, names in os.walk(folder, onerror=refuse):
        inner[:] = sorted(name for name in inner if not name.startswith("."))
        yield from (Path(parent, name) for name in sorted(names) if not name.startswith("."))


def _has_pdf(files: Mapping[str, Path]) -> bool:
    return any(file.suffix.lower() in PDF for file in files.values())


def _state(file: Path) -> tuple[int, int]:
    """Return a file's modification time and size, which change with its content."""
    found = file.stat()
    return found.st_mtime_ns, found.st_size


@lru_cache(MOST_FILES)
def _passages_of(file: Path, size: int, state: tuple[int, int]) -> list[tuple[str, str]]:
    """Return the result of `_passages` as a list; cached, since a command reads its sources several times."""
    return list(_passages(file, size))


def _passages(file: Path, size: int) -> Iterator[tuple[str, str]]:
    """Yield location and text of each passage, also of short ones; a PDF page without text gives "".

    Raises UserError for a file that can't be read.
    """
    from semantic_text_splitter import MarkdownSplitter, TextSplitter

    ending = file.suffix.lower()
    if ending in PDF:
        for number, page in enumerate(pages_of(file), start=1):
            for text in TextSplitter(size).chunks(page) or [""]:
                yield f"page {number}", _in_one_line(text)
        return
    lines = read_lines(file)
    whole = "\n".join(lines)
    if NUL in whole:
        raise UserError(f"{file}: {HOLDS_NUL}")
    starts = list(accumulate((len(line) + 1 for line in lines), initial=0))
    if ending in TEXT:
        for offset, text in TextSplitter(size).chunk_indices(whole):
            yield f"line {bisect(starts, offset)}", _in_one_line(text)
        return
    whole = _without_front_matter(whole)
    headings = [(0, "top"), *_headings(whole)]
    for offset, text in MarkdownSplitter(size).chunk_indices(whole):
        line = bisect(starts, offset) - 1
        yield headings[bisect(headings, line, key=lambda each: each[0]) - 1][1], _in_one_line(text)


def _without_front_matter(text: str) -> str:
    """Return a Markdown text with its YAML front matter blanked out; offsets and lines stay the same."""
    end = max(text.find(f"\n{_FENCE}"), 0) + len(_FENCE) if text.startswith(_FENCE) else 0
    return "".join(letter if letter == "\n" else " " for letter in text[:end]) + text[end:]


def _headings(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line, from 0, and text of each heading of a Markdown text."""
    from markdown_it import MarkdownIt

    parser = MarkdownIt("commonmark")
    # Emphasis and links inside a line say nothing of headings, and a stranger's take long.
    parser.core.ruler.disable("inline")
    tokens = parser.parse(text)
    for heading, inline in pairwise(tokens):
        if heading.type == "heading_open" and heading.map is not None:
            yield heading.map[0], _in_one_line(inline.content)[:MOST_OF_A_HEADING] or "untitled"


def _in_one_line(text: str) -> str:
    return " ".join(text.split())
