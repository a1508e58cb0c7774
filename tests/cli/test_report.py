"""`synthbench report` as far as there is nothing to report; the rest is in end_to_end."""

import pytest
from small_experiment import Place
from wording import worded


def test_before_any_run_it_says_so(place: Place) -> None:
    called = place.call("report", place.file)
    assert (called.code, called.out) == (2, "")
    worded(called.errors, f"sqlite:///{place.home}/mlflow.db", "'small'")
    assert not (place.folder / "reports").exists()
    assert not place.home.exists()


def test_an_unreachable_tracking_server_is_named_without_its_password(
    place: Place, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("MLFLOW_TRACKING_URI", "http://me:secret@127.0.0.1:9")
    monkeypatch.setenv("MLFLOW_HTTP_REQUEST_MAX_RETRIES", "0")
    called = place.call("report", place.file)
    assert (called.code, called.out) == (2, "")
    assert len(called.errors) == 1
    assert "127.0.0.1:9 failed: " in called.errors[0]
    assert "secret" not in called.err
