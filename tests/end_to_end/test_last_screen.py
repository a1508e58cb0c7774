"""The last screen of `run` and `report` on a terminal of 80 x 24."""

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from small_experiment import Called, Project

WIDTH, HEIGHT = 80, 24
COMMANDS = ("run", "report")
END = "the command has ended"
# One process for both commands: each would import MLflow and matplotlib.
PROGRAM = f"""
import sys
from synthbench.cli.main import main
for command in {COMMANDS}:
    sys.argv = ["synthbench", command, "small.yaml", "--output", "screens"]
    try:
        main()
    except SystemExit as ended:
        assert not ended.code
    print("{END}")
"""


@pytest.fixture(scope="module")
def screens(finished_run: tuple[Project, Called]) -> dict[str, list[str]]:
    """What each command writes on a terminal: its lines, without colours."""
    project, _ = finished_run
    leader, follower = pty.openpty()
    fcntl.ioctl(follower, termios.TIOCSWINSZ, struct.pack("HHHH", HEIGHT, WIDTH, 0, 0))
    plain = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM],
        cwd=project.folder,
        env={**plain, "SYNTHBENCH_HOME": str(project.home), "TERM": "xterm-256color"},
        stdin=follower,
        stdout=follower,
        stderr=follower,
    )
    os.close(follower)
    written = b""
    while True:
        try:
            piece = os.read(leader, 65536)
        except OSError:
            break
        if not piece:
            break
        written += piece
    os.close(leader)
    assert process.wait() == 0, written.decode()
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", written.decode())
    lines = [line.rpartition("\r")[2] for line in text.replace("\r\n", "\n").split("\n")]
    found = {}
    for command in COMMANDS:
        end = lines.index(END)
        found[command], lines = lines[:end], lines[end + 1 :]
    assert lines == [""]
    return found


def height_of(lines: list[str]) -> int:
    return sum(max(1, -(-len(line) // WIDTH)) for line in lines)


@pytest.mark.parametrize("command", COMMANDS)
def test_the_last_screen_is_table_and_plot_and_four_lines(
    screens: dict[str, list[str]], command: str
) -> None:
    lines = screens[command]
    caption = next(number for number, line in enumerate(lines) if line.startswith("What silver pairs do"))
    header, rule, gold, augsbert, title, forest, *closing = lines[caption + 1 :]
    assert header.split() == ["variant", "test"]
    assert set(rule) == {"─"}
    assert gold.startswith("gold-only ")
    assert augsbert.startswith("augsbert ")
    assert title.startswith("Primary differences × 100 on test")
    assert forest.startswith("augsbert − gold-only  ")
    assert [line.partition(": ")[0] for line in closing] == ["registration", "page", "notes", "next"]
    assert closing[3] == "next: synthbench dashboard small.yaml (every run in MLflow)"
    assert "; read first: " in closing[2]
    assert height_of([*lines[caption:], "$ "]) <= HEIGHT
