"""Run the commands that pages mark, and compare or renew the outputs that the pages show.

A block of code after `<!-- run -->` is run; `<!-- run: heavy -->` marks minutes of work. A line after `$ ` is
a command, and the lines below it are its standard output; "..." matches any lines. A block without `$` lists
commands that must succeed. `<!-- append to FILE -->` appends a block to a file. All blocks of a page run one
after another in one folder, which has the repository's experiments, examples and published tables. `python
website/commands.py PAGE` runs a page's commands in the current folder.
"""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).parents[1]
ANY_LINES = "..."
FAILED = "exit code"
_BLOCK = re.compile(
    r"(?P<mark><!-- (?:run(?P<heavy>: heavy)?|append to (?P<file>\S+)) -->\n)"
    r"(?P<open>```\w*\n)(?P<text>.*?)(?P<close>^```)",
    re.S | re.M,
)
_VOLATILE = (
    (re.compile(r"\d[\d.,]* (?:s|ms|seconds?|minutes?|hours?|h)\b"), "TIME"),
    (re.compile(r"\d[\d.,]* (?:kB|KB|MB|GB|GFLOP/s)"), "SIZE"),
    (re.compile(r"\d\d:\d\d:\d\d"), "CLOCK"),
    (re.compile(r"\b[0-9a-f]{8,64}\b"), "HASH"),
    (re.compile(r"\d+ threads?"), "THREADS"),
    (re.compile(r"^time: .*$|^side by side .*$", re.M), "THIS MACHINE"),
    (re.compile(r"[ \t]+"), " "),
    (re.compile(r"─+"), "─"),
)


@dataclass(frozen=True)
class Block:
    """A marked block: commands with the outputs that the page shows (None: none), or text for a file."""

    text: str
    is_heavy: bool = False
    file: str | None = None

    @property
    def has_output(self) -> bool:
        """Whether the page shows the commands' outputs."""
        return self.file is None and self.text.startswith("$ ")

    def commands(self) -> list[tuple[str, str | None]]:
        """Return each command with the output that the page shows."""
        if self.has_output:
            pieces = re.split(r"^\$ ", self.text, flags=re.M)[1:]
            return [(piece.partition("\n")[0], piece.partition("\n")[2]) for piece in pieces]
        lines = (re.sub(r"\s{2,}#.*", "", line).strip() for line in self.text.splitlines())
        return [(line, None) for line in lines if line and not line.startswith("#")]


def blocks_of(text: str) -> list[Block]:
    """Return a page's marked blocks in order."""
    return [_block(found) for found in _BLOCK.finditer(text)]


def _block(found: re.Match[str]) -> Block:
    return Block(found["text"], found["heavy"] is not None, found["file"])


def run(command: str, folder: Path) -> str:
    """Run one command of a page in the folder; return its standard output without the folder's path.

    If it fails, errors and "exit code 2" follow.
    """
    bin_folder = Path(sys.executable).parent
    environment = {
        **os.environ,
        "PATH": f"{bin_folder}{os.pathsep}{os.environ['PATH']}",
        "SYNTHBENCH_HOME": str(folder / ".synthbench"),
        "COLUMNS": "110",
        "NO_COLOR": "1",
        "TERM": "dumb",
        "HF_HUB_OFFLINE": "1",
    }
    done = subprocess.run(
        command.replace(".venv/bin/", ""),
        shell=True,
        cwd=folder,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    shown = (
        done.stdout if done.returncode == 0 else done.stdout + done.stderr + f"{FAILED} {done.returncode}\n"
    )
    lines = shown.replace(f"{folder}/", "").splitlines()
    return "".join(f"{line.rstrip()}\n" for line in lines)


def is_same(shown: str, actual: str) -> bool:
    """Return whether the actual output equals a page's, ignoring times, sizes and hashes."""
    pieces = [
        re.escape(normalised(piece)) for piece in re.split(rf"^{re.escape(ANY_LINES)}\n", shown, flags=re.M)
    ]
    return re.fullmatch(".*?".join(pieces), normalised(actual), re.S) is not None


def normalised(output: str) -> str:
    """Return the output with each time, size, clock and hash replaced by a word."""
    for pattern, word in _VOLATILE:
        output = pattern.sub(word, output)
    return output


def without_scores(output: str) -> str:
    """Return the output without decimals, since scores are rounded differently on other processors."""
    return re.sub(r"[+−-]?\d+\.\d+", "NUMBER", output)


def shortened(shown: str, actual: str) -> str:
    """Return the actual output with lines left out where the page has "..."."""
    before, dots, after = shown.partition(f"{ANY_LINES}\n")
    if not dots:
        return actual
    lines = actual.splitlines(keepends=True)
    first, last = before.count("\n"), after.count("\n")
    return "".join([*lines[:first], f"{ANY_LINES}\n", *lines[len(lines) - last :]])


def prepare(folder: Path) -> None:
    """Copy into the folder what pages' commands find in a clone."""
    folder.mkdir(parents=True)
    for name in ("experiments", "examples"):
        (folder / name).symlink_to(ROOT / name)
    (folder / "reports").mkdir()
    (folder / "reports" / "published").symlink_to(ROOT / "reports" / "published")


def outcomes(blocks: list[Block], folder: Path) -> Iterator[tuple[str, str | None, str]]:
    """Run the blocks' commands in the folder; yield each with the output shown and the actual one.

    Raises RuntimeError if a command fails whose output the page does not show.
    """
    for block in blocks:
        if block.file is not None:
            with (folder / block.file).open("a", encoding="utf-8") as file:
                file.write(block.text)
            continue
        for command, shown in block.commands():
            actual = run(command, folder)
            if shown is None and FAILED in actual:
                raise RuntimeError(f"{command}: {actual}")
            yield command, shown, actual


def renewed(text: str, folder: Path, *, with_heavy: bool) -> str:
    """Run the page's commands, and return the page with new outputs where they differ."""

    def fresh(found: re.Match[str]) -> str:
        block = _block(found)
        if block.is_heavy and not with_heavy:
            return found[0]
        body = "".join(_fresh(*outcome) for outcome in outcomes([block], folder))
        return f"{found['mark']}{found['open']}{body if block.has_output else block.text}{found['close']}"

    return _BLOCK.sub(fresh, text)


def _fresh(command: str, shown: str | None, actual: str) -> str:
    shown = shown or ""
    return f"$ {command}\n{shown if is_same(shown, actual) else shortened(shown, actual)}"


if __name__ == "__main__":
    for page in sys.argv[1:]:
        for command, _, output in outcomes(blocks_of(Path(page).read_text(encoding="utf-8")), Path.cwd()):
            print(f"$ {command}\n{output}")
