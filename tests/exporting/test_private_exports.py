"""Exports reveal no keys, no user name and no paths of the user's files."""

from pathlib import Path

import pytest
from wording import refused

from synthbench.exporting.privacy import check_public, public


@pytest.fixture
def alice(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """The folder of a user, in which the working folder lies."""
    home = tmp_path / "people" / "alice"
    (home / "study").mkdir(parents=True)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.chdir(home / "study")
    return home


def test_the_names_of_the_users_folders_are_removed(alice: Path) -> None:
    text = f"{alice}/models/bert and {alice}/study/gold.tsv"
    assert public(text) == "~/models/bert and ./gold.tsv"


@pytest.mark.parametrize("home", ["/home/bob", "/Users/bob", "C:\\Users\\bob", "/root"])
def test_the_names_of_other_users_folders_are_removed(home: str) -> None:
    assert public(f"model: {home}/bert") == "model: ~/bert"


def test_a_name_that_only_begins_with_a_folders_name_is_unchanged(alice: Path) -> None:
    text = f"{alice}/study2/a, {alice}/study.old/b and {alice}/study."
    assert public(text) == "~/study2/a, ~/study.old/b and .."


def test_a_password_in_an_address_is_masked() -> None:
    assert public("http://me:hush@host/x") == "http://me:***@host/x"


def test_other_text_is_unchanged() -> None:
    text = "The root of /usr/share is at home: 3/4 users."
    assert public(text) == text


def test_a_file_with_a_key_from_the_environment_is_refused_without_showing_the_key(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "sk-0123456789")
    (tmp_path / "README.md").write_text("key: sk-0123456789", encoding="utf-8")
    with refused("README.md", "$OPENAI_API_KEY") as caught:
        check_public(tmp_path)
    assert "0123456789" not in str(caught.value)


def test_a_file_with_the_users_folder_is_refused(alice: Path, tmp_path: Path) -> None:
    (tmp_path / "config.json").write_text(f'{{"_name_or_path": "{alice}/bert"}}', encoding="utf-8")
    with refused("config.json", "your own folder"):
        check_public(tmp_path)


def test_a_vocabulary_may_hold_any_word(alice: Path, tmp_path: Path) -> None:
    (tmp_path / "tokenizer.json").write_text(f'["{alice}/"]', encoding="utf-8")
    check_public(tmp_path)
