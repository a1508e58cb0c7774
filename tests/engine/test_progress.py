import io
import re
import sys
import threading

import pytest
from fake_stages import carry_out, stage
from rich.console import Console

from synthbench.base.runtime import Runtime
from synthbench.engine import progress
from synthbench.engine.bars import RichProgress
from synthbench.engine.jobs import StageJob
from synthbench.engine.monitor import RunMonitor
from synthbench.engine.progress import PlainProgress, about, in_worker, progress_for_people
from synthbench.engine.store import Store


def test_a_log_shows_progress_as_whole_lines_with_the_time(capsys: pytest.CaptureFixture[str]) -> None:
    PlainProgress().say("running [train] x")
    assert re.fullmatch(r"\d\d:\d\d:\d\d running \[train\] x\n", capsys.readouterr().err)


def test_workers_of_a_quiet_run_are_quiet(capsys: pytest.CaptureFixture[str]) -> None:
    in_worker(progress_for_people(is_quiet=True)).say("half done")
    assert capsys.readouterr().err == ""
    in_worker(RichProgress()).say("half done")
    assert capsys.readouterr().err.endswith("half done\n")


def test_a_log_gets_occasional_lines(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    with PlainProgress().task("encode", 4000) as task:
        task.advance(1000)
        assert capsys.readouterr().err == ""
        monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.0)
        task.advance(1000)
    assert re.search(r"  encode: 2,000/4,000, \d+ s left\n$", capsys.readouterr().err)


def test_a_terminal_shows_nested_tasks_and_lines_above_them(
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


def test_a_terminal_shows_progress_bars(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    assert isinstance(progress_for_people(), RichProgress)


def test_quiet_progress_shows_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    shown = progress_for_people(is_quiet=True)
    with shown.watching(running("a")), shown.task("training", 10) as task:
        task.advance(3)
        shown.say("hello")
    assert capsys.readouterr() == ("", "")


def test_bars_replace_lines_on_starting_stages_unless_people_want_them(
    monkeypatch: pytest.MonkeyPatch, store: Store
) -> None:
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    for is_verbose in (False, True):
        bars = progress_for_people(is_verbose=is_verbose)
        said: list[str] = []
        monkeypatch.setattr(bars, "say", said.append)
        StageJob(store, [stage(f"a{is_verbose}")], Runtime(), bars).run()
        assert any(line.startswith("running work a") for line in said) == is_verbose


def test_a_line_of_a_stage_names_the_stage(capsys: pytest.CaptureFixture[str]) -> None:
    about(PlainProgress(), "train x seed 0").say("  600 pairs")
    assert capsys.readouterr().err[9:] == "  train x seed 0: 600 pairs\n"


def test_bars_of_a_stage_are_below_its_name() -> None:
    bars = RichProgress()
    assert about(bars, "train x seed 0") is bars


def running(*names: str) -> RunMonitor:
    stages = [stage(name) for name in names]
    monitor = RunMonitor()
    monitor.begin(stages)
    monitor.started(stages[:1])
    return monitor


def test_a_log_reports_a_run_whose_stages_print_nothing(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(progress, "SECONDS_BETWEEN_LINES", 0.01)
    said = threading.Event()
    monkeypatch.setattr(PlainProgress, "say", lambda self, message: (print(message), said.set()))
    with PlainProgress().watching(running("a", "b")):
        assert said.wait(60)
    assert "0 of 2 stages, time left unknown; now: work a, 0 s" in capsys.readouterr().out


def test_a_terminal_shows_the_running_stage_the_number_of_stages_and_the_time_left() -> None:
    bars = RichProgress()
    bars.bars.live.console = console = Console(width=100, file=io.StringIO(), force_terminal=True)
    with bars.watching(running("a", "b")), bars.task("training", 10):
        console.print(bars.bars.get_renderable())
    shown = console.file.getvalue()  # type: ignore[attr-defined]
    assert re.search(r"work a, 0 s.*0/2 stages.*time left unknown", shown)
    assert re.search(r"training.*0/10", shown)


def test_several_processes_name_the_stage_of_each_line(
    store: Store, capfd: pytest.CaptureFixture[str]
) -> None:
    carry_out(store, stage("a", behaviour="says hello"), stage("b", behaviour="says hello"), jobs=2)
    told = {line[9:] for line in capfd.readouterr().err.splitlines() if "hello" in line}
    assert told == {"  work a: hello", "  work b: hello"}


@pytest.mark.filterwarnings("ignore::pytest.PytestUnhandledThreadExceptionWarning")
def test_the_end_is_told_at_the_end_even_after_a_failed_call() -> None:
    has_failed, ended = threading.Event(), list[bool]()

    def fail() -> None:
        has_failed.set()
        raise ZeroDivisionError

    is_over = False
    with progress.repeating(fail, lambda: 0.0, lambda: ended.append(is_over)):
        assert has_failed.wait(60)
        is_over = True
    assert ended == [True]
