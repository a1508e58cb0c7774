import re
import sys

import pytest

from synthbench.pipeline import progress
from synthbench.pipeline.progress import PlainProgress, RichProgress, progress_for_people


def test_in_a_log_progress_is_whole_lines_with_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    PlainProgress().say("running [train] x")
    assert re.fullmatch(r"\d\d:\d\d:\d\d running \[train\] x\n", capsys.readouterr().err)


def test_a_log_gets_a_line_now_and_then(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with PlainProgress().task("encode", 4000) as task:
        task.advance(1000)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
        task.advance(1000)
    assert re.search(r"  encode: 2,000/4,000, \d+ s left\n$", capsys.readouterr().err)


def test_tasks_within_tasks_and_lines_above_them_work_on_a_terminal(
    capsys: pytest.CaptureFixture[str],
) -> None:
    bars = RichProgress()
    with bars.task("outer", 2) as outer:
        with bars.task("inner", 3) as inner:
            inner.advance(3)
            bars.say("a [bold] line that is not markup")
        outer.advance()
        assert bars.bars.live.is_started
    assert not bars.bars.live.is_started
    assert "a [bold] line that is not markup" in capsys.readouterr().err


def test_without_a_terminal_progress_is_plain() -> None:
    assert isinstance(progress_for_people(), PlainProgress)


def test_on_a_terminal_bars_are_for_one_process_several_would_write_across_them(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(progress_for_people(), RichProgress)
    assert isinstance(progress_for_people(2), PlainProgress)
