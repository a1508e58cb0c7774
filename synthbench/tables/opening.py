"""Open text files that users provide, plain or compressed by gzip, as streams."""

import csv
import gzip
import io
import zlib
from pathlib import Path
from typing import TextIO

from synthbench.base.errors import UserError
from synthbench.base.user_files import check_file

GZIP = ".gz"
_GZIP_BEGINS = b"\x1f\x8b"
_UTF16_BEGINS = (b"\xff\xfe", b"\xfe\xff")
MOST_BYTES_OF_ANY = 100_000_000
MOST_TIMES = 200
"""Largest ratio of unpacked to packed size: texts have about 10, repeated lines 100, zeros 1,000."""
MOST_CHARACTERS_OF_A_CELL = 2**31 - 1


def ending(name: str | Path) -> str:
    """Return a file name's suffix, such as .csv, ignoring a final .gz."""
    path = Path(name)
    return path.with_suffix("").suffix if path.suffix == GZIP else path.suffix


def open_text(path: Path, *, newline: str = "\n", errors: str = "strict") -> TextIO:
    """Open a UTF-8 file as a text stream, unpacked if its name ends in .gz.

    Raises UserError if the file can't be read or is UTF-16, or if its name and content disagree on gzip.
    Reading raises UserError if a .gz file is damaged, cut off, or unpacks to more than `MOST_TIMES` its size
    and 100 MB. By default, reading raises UnicodeDecodeError for bytes that are not UTF-8 (`errors` as
    in `open`).
    """
    return io.TextIOWrapper(open_bytes(path), encoding="utf-8-sig", newline=newline, errors=errors)


def open_bytes(path: Path) -> "io.BufferedReader":
    """Open a file as `open_text` does, but as a stream of bytes."""
    check_file(path)
    try:
        with path.open("rb") as stream:
            begins = stream.read(2)
        _check_name(path, begins)
        return io.BufferedReader(_Unpacked(path), 1 << 16) if path.suffix == GZIP else path.open("rb")
    except OSError as error:
        raise UserError(f"{path}: can't be read: {error.strerror or error}") from error


def allow_long_cells() -> None:
    """Let `csv` read cells of more than 131,072 characters."""
    csv.field_size_limit(MOST_CHARACTERS_OF_A_CELL)


def _check_name(path: Path, begins: bytes) -> None:
    if path.suffix == GZIP and begins != _GZIP_BEGINS:
        raise UserError(f"{path}: its name ends in .gz, but it is not compressed by gzip")
    if path.suffix != GZIP and begins == _GZIP_BEGINS:
        raise UserError(f"{path}: is compressed by gzip; let its name end in {path.suffix}{GZIP}")
    if begins in _UTF16_BEGINS or b"\0" in begins:
        raise UserError(f"{path}:1: is UTF-16, not UTF-8; convert the file to UTF-8")


class _Unpacked(io.RawIOBase):
    """The unpacked bytes of a file compressed by gzip."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._most = max(MOST_BYTES_OF_ANY, MOST_TIMES * path.stat().st_size)
        self._number = 0
        self._stream = gzip.GzipFile(path, "rb")

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "bytearray | memoryview") -> int:  # type: ignore[override]
        try:
            chunk = self._stream.read(len(buffer))
        except EOFError:
            raise UserError(f"{self._path}: is cut off: the end of the compressed file is missing") from None
        except (OSError, zlib.error) as error:
            raise UserError(f"{self._path}: is damaged, not readable as gzip: {error}") from error
        self._number += len(chunk)
        if self._number > self._most:
            raise UserError(
                f"{self._path}: unpacks to more than {MOST_TIMES} times its size, as no text does; unpack it"
                " if you trust it"
            )
        buffer[: len(chunk)] = chunk
        return len(chunk)

    def close(self) -> None:
        self._stream.close()
        super().close()
