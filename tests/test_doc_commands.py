"""Commands that pages mark are run: they succeed, and print what the page shows."""

import re
from pathlib import Path

import pytest
from commands import blocks_of, is_same, outcomes, prepare, renewed, without_scores

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").glob("*.md"))]
TEXTS = {page.relative_to(ROOT).as_posix(): page.read_text(encoding="utf-8") for page in PAGES}


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with the files that a clone has for commands."""
    folder = tmp_path.resolve() / "clone"
    prepare(folder)
    return folder


@pytest.mark.parametrize(
    "page", [name for name, text in TEXTS.items() if any(not b.is_heavy for b in blocks_of(text))]
)
def test_light_commands_print_the_output_on_the_page(page: str, clone: Path) -> None:
    blocks = [block for block in blocks_of(TEXTS[page]) if not block.is_heavy]
    for command, shown, actual in outcomes(blocks, clone):
        assert shown is None or is_same(shown, actual), f"{command}: run `make docs`\n{actual}"


@pytest.mark.experiments
@pytest.mark.parametrize(
    "page", [name for name, text in TEXTS.items() if any(b.is_heavy for b in blocks_of(text))]
)
def test_all_commands_print_the_output_on_the_page(page: str, clone: Path) -> None:
    """Scores may differ from one processor to another; all else is the same."""
    for command, shown, actual in outcomes(blocks_of(TEXTS[page]), clone):
        same = shown is None or is_same(without_scores(shown), without_scores(actual))
        assert same, f"{command}: run `make docs`\n{actual}"


def test_every_mark_is_recognised() -> None:
    """A mark with a slip of the pen would leave its block unrun."""
    for name, text in TEXTS.items():
        marks = re.findall(r"^<!-- (?:run|append)\b.*$", text, re.MULTILINE)
        assert len(marks) == len(blocks_of(text)), name


PAGE = """\
<!-- run -->
```console
$ echo a; echo b; echo c
a
...
c
$ echo 3.5 s; false
```

```
never run
```

<!-- append to new.txt -->
```yaml
one: 1
```

<!-- run: heavy -->
```
cat new.txt    # a comment
```
"""


def test_changed_outputs_are_updated(tmp_path: Path) -> None:
    fresh = renewed(PAGE, tmp_path, with_heavy=True)
    assert fresh == PAGE.replace("$ echo 3.5 s; false\n", "$ echo 3.5 s; false\n3.5 s\nexit code 1\n")
    assert renewed(fresh, tmp_path, with_heavy=True) == fresh


def test_a_command_without_output_must_succeed(tmp_path: Path) -> None:
    with pytest.raises(RuntimeError, match=r"cat new\.txt"):
        renewed(PAGE.replace("<!-- append", "<!-- no"), tmp_path, with_heavy=True)


@pytest.mark.parametrize(
    ("shown", "actual", "same"),
    [
        ("done in 3 s\n", "done in 4.5 s\n", True),
        ("store: 3 MB at 12345678abcdef\n", "store: 4.2 GB at 87654321abcdee\n", True),
        ("3 rows\n", "4 rows\n", False),
        ("a\n...\n", "a\nb\nc\n", True),
        ("a\n...\nc\n", "a\nb\n", False),
        ("a\n", "a\nb\n", False),
    ],
)
def test_times_sizes_and_hashes_may_differ(shown: str, actual: str, same: bool) -> None:
    assert is_same(shown, actual) is same
