"""Write the docs site's pages: `python website/stage.py` fills build/pages from docs/ and its link targets.

Linked files outside docs/ (tables, figures, experiment files) become pages or pictures of the site; code
becomes a page with its text. Links are adapted.
"""

import os
import re
import shutil
from collections.abc import Callable
from pathlib import Path, PurePosixPath

from api_pages import as_directives

ROOT = Path(__file__).parents[1]
PAGES = ROOT / "build" / "pages"
_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)
_LINK = re.compile(r"(\]\()([^)\s]+)(\))")
_PICTURES = {".png", ".svg", ".jpg"}
_LANGUAGES = {
    ".yaml": "yaml",
    ".py": "python",
    ".csv": "text",
    ".tsv": "text",
    ".txt": "text",
    ".tex": "latex",
}


def stage(folder: Path, root: Path = ROOT) -> int:
    """Write the site's pages into an emptied folder, and return the number of files.

    Raises FileNotFoundError if a page links to a missing file.
    """
    shutil.rmtree(folder, ignore_errors=True)
    waiting = [each.relative_to(root).as_posix() for each in sorted((root / "docs").rglob("*.md"))]
    seen = set(waiting)
    folder.mkdir(parents=True)
    shutil.copyfile(root / "website" / "site.css", folder / "site.css")
    while waiting:
        for link in _write(waiting.pop(), root, folder):
            if link not in seen:
                seen.add(link)
                waiting.append(link)
    return len(seen)


def _write(file: str, root: Path, folder: Path) -> list[str]:
    """Write one file of the repository as a file of the site, and return the files that it links to."""
    source, target = root / file, folder / site_path(file)
    target.parent.mkdir(parents=True, exist_ok=True)
    if source.suffix in _PICTURES:
        shutil.copyfile(source, target)
        return []
    text = source.read_text(encoding="utf-8")
    if source.suffix != ".md":
        target.write_text(_code_page(file, text), encoding="utf-8")
        return []
    links: list[str] = []

    def moved(link: str) -> str:
        name, hash_, anchor = link.partition("#")
        if not name or "://" in name or name.startswith("mailto:"):
            return link
        linked = os.path.normpath(f"{PurePosixPath(file).parent}/{name}")
        links.append(linked)
        return _relative(site_path(linked), site_path(file)) + hash_ + anchor

    whole = as_directives(_with_heading(file, text, root))
    target.write_text(_outside_code(whole, moved), encoding="utf-8")
    return links


def site_path(file: str) -> str:
    """Return the site's path of a repository file: docs/ is the root, code gets a page."""
    path = file.removeprefix("docs/")
    if PurePosixPath(path).suffix in {".md", *_PICTURES}:
        return "readme.md" if path == "README.md" else re.sub(r"README\.md$", "index.md", path)
    return f"{path}.md"


def _relative(to: str, page: str) -> str:
    return os.path.relpath(to, PurePosixPath(page).parent)


def _outside_code(text: str, change: Callable[[str], str]) -> str:
    """Apply `change` to a page's links outside code blocks."""
    parts = _FENCE.split(text)
    return "".join(
        part if i % 2 else _LINK.sub(lambda found: found[1] + change(found[2]) + found[3], part)
        for i, part in enumerate(parts)
    )


def _code_page(file: str, text: str) -> str:
    language = _LANGUAGES.get(PurePosixPath(file).suffix, "text")
    fence = "````" if "```" in text else "```"
    return f"# {PurePosixPath(file).name}\n\n`{file}`\n\n{fence}{language}\n{text}{fence}\n"


def _with_heading(file: str, text: str, root: Path) -> str:
    """Add a heading, the figure and the other files to a report's table, which has none of its own."""
    path = PurePosixPath(file)
    if re.search(r"^# ", text, re.MULTILINE):
        return text
    title = f"# {path.parent.name}" + (f": {path.stem.replace('_', ' ')}" if path.stem != "table" else "")
    pieces = [title]
    beside = [("table", "table.md"), ("comparisons", "comparisons.md")]
    links = [
        f"[{name}]({other})"
        for name, other in beside
        if other != path.name and (root / path.parent / other).is_file()
    ]
    for experiment in root.glob(f"experiments/**/{path.parent.name}.yaml"):
        links.append(f"[the experiment](../../{experiment.relative_to(root).as_posix()})")
        links.append("[all reports](../../docs/gallery.md)")
    pieces.append("See also: " + ", ".join(links) + "." if links else "")
    if path.stem == "table" and (root / path.parent / "scores.png").is_file():
        pieces.append("![Scores with 95 % intervals over seeds](scores.png)")
    return "\n\n".join([*(each for each in pieces if each), text])


if __name__ == "__main__":
    print(f"{stage(PAGES)} files in {PAGES.relative_to(ROOT)}")
