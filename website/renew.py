"""Renew the outputs, figures, tables and lists that pages show: `python website/renew.py [--heavy]`."""

import sys
import tempfile
from pathlib import Path

from api_pages import with_tables
from commands import blocks_of, prepare, renewed
from figures import committed, filled
from gallery import with_reports

ROOT = Path(__file__).parents[1]


def renew(page: Path, *, with_heavy: bool) -> bool:
    """Rewrite a page if the outputs, tables or lists on it have changed; return whether it was rewritten."""
    text = page.read_text(encoding="utf-8")
    fresh = filled(with_reports(with_tables(text)), committed())
    blocks = blocks_of(text)
    if blocks:
        with tempfile.TemporaryDirectory() as temporary:
            folder = Path(temporary).resolve() / "clone"
            prepare(folder)
            fresh = renewed(fresh, folder, with_heavy=with_heavy)
    if fresh != text:
        page.write_text(fresh, encoding="utf-8")
    return fresh != text


if __name__ == "__main__":
    for page in [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]:
        if renew(page, with_heavy="--heavy" in sys.argv):
            print(f"renewed {page.relative_to(ROOT)}")
