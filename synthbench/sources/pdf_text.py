"""The text of a PDF's pages, read by pypdf in a process of its own, since the file is untrusted.

The process has limits on time and memory, even if its parent is killed. It writes no file.
pypdf opens no URL, and reads only the text of a PDF's pages: no attachment, script or form.
"""

import json
import resource
import subprocess
import sys
from pathlib import Path

from synthbench.base.errors import UserError

MOST_BYTES, MOST_PAGES, MOST_CHARACTERS = 200_000_000, 5_000, 50_000_000
MOST_SECONDS, MOST_MEMORY = 120, 4_000_000_000
OTHERWISE = "divide it, or save its text as a .txt file"


def pages_of(path: Path, seconds: float = MOST_SECONDS) -> list[str]:
    """Return the text of each page.

    Raises UserError if the file is no readable PDF, is encrypted, has no text, or exceeds a limit: on bytes,
    pages, characters, time or memory.
    """
    if (size := path.stat().st_size) > MOST_BYTES:
        raise UserError(f"{path}: has {size / 1e6:,.0f} MB, more than {MOST_BYTES // 1_000_000}; {OTHERWISE}")
    try:
        done = subprocess.run(
            [sys.executable, "-P", "-B", "-m", __name__, str(path.resolve())],
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=seconds,
        )
    except subprocess.TimeoutExpired:
        raise UserError(f"{path}: was not read in {seconds:g} seconds; {OTHERWISE}") from None
    if done.returncode:
        said = done.stderr.decode(errors="replace").strip().rpartition("\n")[2].rpartition(": ")[2]
        raise UserError(f"{path}: not a readable PDF ({said[:200] or f'exit code {done.returncode}'})")
    found: list[str] | str = json.loads(done.stdout)
    if isinstance(found, str):
        raise UserError(f"{path}: {found}")
    if not any(map(str.strip, found)):
        raise UserError(f"{path}: has no text on its {len(found)} pages: a scan? Let OCR add its text")
    return found


def _read(path: str) -> list[str] | str:
    """Return the text of each page, or an error message."""
    from pypdf import PdfReader
    from pypdf.errors import DependencyError, FileNotDecryptedError

    encrypted = "is encrypted; save it without a password"
    try:
        pages = PdfReader(path).pages
        if len(pages) > MOST_PAGES:
            return f"has {len(pages):,} pages, more than {MOST_PAGES:,}; {OTHERWISE}"
        texts: list[str] = []
        for page in pages:
            texts.append(_clean(page.extract_text()))
            if sum(map(len, texts)) > MOST_CHARACTERS:
                return f"has more than {MOST_CHARACTERS:,} characters; {OTHERWISE}"
    except (DependencyError, FileNotDecryptedError):
        return encrypted
    except MemoryError:
        return f"needs more than {MOST_MEMORY / 1e9:g} GB of memory; {OTHERWISE}"
    return texts


def _clean(text: str) -> str:
    """Return a text with "?" for unpaired surrogates and a space for U+0000; damaged fonts give these."""
    return text.encode(errors="replace").decode().replace("\0", " ")


def _main() -> None:
    import logging

    logging.disable()
    resource.setrlimit(resource.RLIMIT_CPU, (MOST_SECONDS, MOST_SECONDS))
    resource.setrlimit(resource.RLIMIT_AS, (MOST_MEMORY, MOST_MEMORY))
    resource.setrlimit(resource.RLIMIT_FSIZE, (0, 0))
    sys.stdout.write(json.dumps(_read(sys.argv[1])))


if __name__ == "__main__":
    _main()
