"""What cards say of sources, models and costs."""

from types import SimpleNamespace
from typing import Any

import pytest

from synthbench.exporting.cards import _code
from synthbench.exporting.facts import is_on_hub, language
from synthbench.sources.models import TaskSource
from synthbench.sources.tasks import TASKS

COMMIT, HASH = "a" * 40, "a" * 64
NOT_ENGLISH = {
    "STS17-ar-ar",
    "STS17-es-es",
    "STS17-en-ar",
    "STS17-es-en",
    "STS17-en-tr",
    "STS17-en-de",
    "STS17-fr-en",
    "STS17-it-en",
    "STS17-nl-en",
    "STS17-ko-ko",
    "STS14-15-es",
}


@pytest.mark.parametrize("task", TASKS)
def test_a_card_is_english_only_if_its_tasks_are(task: str) -> None:
    source = TaskSource.model_construct(task=task)
    subject: Any = SimpleNamespace(
        run=SimpleNamespace(datasets=()),
        config=SimpleNamespace(parts=[SimpleNamespace(source="own")]),
        experiment=SimpleNamespace(sources={"own": source}),
    )
    assert language(subject) == ("und" if task in NOT_ENGLISH else "en")


@pytest.mark.parametrize(
    ("name", "version", "expected"),
    [
        ("google-bert/bert-base-uncased", COMMIT, True),
        ("bert-base-uncased", COMMIT, True),
        ("bert-base-uncased", HASH, False),
        ("/models/bert", COMMIT, False),
        ("a/b/c", COMMIT, False),
    ],
)
def test_a_hub_model_is_known_by_its_id_and_commit(name: str, version: str, expected: bool) -> None:
    assert is_on_hub(name, version) is expected


@pytest.mark.parametrize(("text", "expected"), [("", "`(empty)`"), ("a|b", "`a\\|b`"), ("`", "`` ` ``")])
def test_code_in_a_card_is_never_without_text(text: str, expected: str) -> None:
    assert _code(text) == expected
