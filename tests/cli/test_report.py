"""`synthbench report` without results; the rest is in end_to_end."""

import pytest
from small_experiment import Project
from wording import worded


def test_without_any_tracked_result_it_is_an_error(project: Project) -> None:
    called = project.call("report", project.file)
    assert (called.code, called.out) == (2, "")
    worded(called.errors, f"sqlite:///{project.home}/mlflow.db", "'small'")
    assert not (project.folder / "reports").exists()
    assert not project.home.exists()


def test_an_unreachable_tracking_server_is_named_without_its_password(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    called = project.call("report", project.file)
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert "127.0.0.1:9 failed: " in called.errors[0]
    assert "secret" not in called.err
