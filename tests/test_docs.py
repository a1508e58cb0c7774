"""Links, headings, files and code that the docs name exist."""

import re
from pathlib import Path

import pytest
from shipped_files import SHIPPED

ROOT = Path(__file__).parents[1]
NAMES = (
    "README.md",
    "CONTRIBUTING.md",
    "CHANGELOG.md",
    "benchmarks/README.md",
    "reports/published/README.md",
)
PAGES = [*(ROOT / name for name in NAMES), *sorted((ROOT / "docs").rglob("*.md"))]
FOLDERS = "synthbench|methods|evaluators|benchmarks|experiments|examples|tests|docs|website"
MAP = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")


WAYS = {
    "own data": ("own_data", "recommend"),
    "own method": ("own_method", "own_llm_method"),
    "a paper's table": ("papers", "gpu_box"),
    "own model": ("own_model", "exporting"),
}
"""The pages that each way needs."""
MOST_WORDS = 1_500


def without_code(page: Path) -> str:
    return re.sub(r"```.*?```", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)


def anchors(page: Path) -> set[str]:
    """The anchors that GitHub gives to the page's headings."""
    headings = re.findall(r"^#+ (.*)$", without_code(page), re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_links_have_existing_targets(page: Path) -> None:
    for link in re.findall(r"\]\(([^)\s]+)\)", without_code(page)):
        name, _, anchor = link.partition("#")
        if "://" in name:
            continue
        target = page.parent / name if name else page
        assert target.exists(), link
        assert not anchor or anchor in anchors(target), link


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.relative_to(ROOT).as_posix())
def test_files_named_in_the_docs_exist(page: Path) -> None:
    for name in re.findall(rf"`((?:{FOLDERS})/[\w/.*-]+)`", without_code(page)):
        assert any(ROOT.glob(name.rstrip("/"))), name


@pytest.mark.parametrize("way", WAYS)
def test_each_way_is_short_enough_to_read(way: str) -> None:
    texts = [(ROOT / "docs" / f"{page}.md").read_text(encoding="utf-8") for page in WAYS[way]]
    assert sum(len(text.split()) for text in texts) <= MOST_WORDS


def test_the_architecture_page_names_existing_code() -> None:
    """In "Where is ...?" every module, class and function exists."""
    section = MAP.partition("## Where is ...?")[2].partition("\n## ")[0]
    modules = [path for folder in ("synthbench", "methods") for path in (ROOT / folder).rglob("*.py")]
    code = "\n".join(path.read_text(encoding="utf-8") for path in modules)
    names = re.findall(r"`([\w./]+)`", section)
    assert len(names) > 30
    for name in names:
        if name.endswith(".py"):
            assert any(path.as_posix().endswith(f"/{name}") for path in modules), name
        elif "/" not in name:
            for part in name.split("."):
                assert re.search(rf"^\s*(?:class|(?:async )?def) {part}\b", code, re.MULTILINE), name


GONE = (
    "huggingface-cli",
    "transformers-cli",
    "HUGGING_FACE_HUB_TOKEN",
    "use_auth_token",
    "torch.distributed.launch",
)
"""Commands and options that the tools have deprecated."""


def test_pages_and_messages_name_only_existing_commands() -> None:
    code = [
        *(ROOT / "synthbench").rglob("*.py"),
        *(ROOT / "methods").rglob("*.py"),
        *ROOT.glob("evaluators/*/*.py"),
    ]
    for page in (*PAGES, *code, *SHIPPED.values()):
        text = page.read_text(encoding="utf-8")
        assert [name for name in GONE if name in text] == [], page
