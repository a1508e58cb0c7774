"""An exported folder goes to the hub: a private repository, one revision, and one line where it can't."""

from pathlib import Path

import pytest
from small_hub import REVISION, TOKEN, small_hub
from wording import refused

from synthbench.exporting.push import Repository, listed


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """A folder with a hidden one in it."""
    made = tmp_path / "export"
    (made / ".eval_results").mkdir(parents=True)
    (made / "README.md").write_text("---\nlicense: unknown\n---\n", encoding="utf-8")
    (made / ".eval_results" / "STS12.yaml").write_text("- value: 1\n", encoding="utf-8")
    return made


def test_a_new_repository_is_private_and_gets_every_file_under_one_revision(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_hub(monkeypatch) as hub:
        repository = Repository("me/mine", "model")
        repository.check()
        assert repository.visibility() == "new, private"
        address, revision = repository.upload(folder)
    assert (address, revision) == (f"{hub.address}/me/mine", REVISION)
    stored = hub.repositories["models/me/mine"]
    assert stored["private"]
    assert stored["files"] == {name: (folder / name).read_bytes() for name, _ in listed(folder)}


def test_an_existing_repository_keeps_its_visibility_which_is_shown_before_uploading(
    folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_hub(monkeypatch) as hub:
        hub.repositories["datasets/me/mine"] = {"private": False, "files": {}}
        repository = Repository("me/mine", "dataset")
        assert repository.visibility() == "exists, public"
        repository.upload(folder)
    assert hub.repositories["datasets/me/mine"]["private"] is False


def test_a_new_repository_is_public_only_on_request(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_hub(monkeypatch) as hub:
        repository = Repository("me/mine", "model", is_public=True)
        assert repository.visibility() == "new, public"
        repository.upload(folder)
    assert hub.repositories["models/me/mine"]["private"] is False


@pytest.mark.parametrize("status", [401, 403, 500])
def test_a_hub_that_refuses_is_reported_in_one_line_without_the_token(
    status: int, folder: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with small_hub(monkeypatch) as hub, refused("me/mine", str(status), "folder is kept") as caught:
        hub.refuses = status
        Repository("me/mine", "model").upload(folder)
    assert TOKEN not in str(caught.value)


def test_an_unreachable_hub_is_reported_in_one_line(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with small_hub(monkeypatch):
        pass
    with refused("me/mine", "can't be reached"):
        Repository("me/mine", "model").upload(folder)


@pytest.mark.parametrize("name", ["mine", "me/mi ne", "a/b/c"])
def test_an_invalid_name_is_refused_before_the_hub_is_asked(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HF_TOKEN", TOKEN)
    with refused(f"--push {name}"):
        Repository(name, "model").check()


def test_without_a_token_the_message_says_how_to_get_one(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    from huggingface_hub import constants

    for name in ("HF_TOKEN", "HUGGING_FACE_HUB_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setattr(constants, "HF_TOKEN_PATH", str(tmp_path / "none"))
    with refused("hf auth login", "HF_TOKEN"):
        Repository("me/mine", "model").check()
