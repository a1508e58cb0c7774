import pytest

from synthbench.base.redaction import is_secret, masked
from synthbench.reporting.results import (
    DataExcerpt,
    DatasetSummary,
    ExperimentResult,
    RecordExcerpt,
    RunResult,
)
from synthbench.tracking.redaction import mask_password_of, redacted


@pytest.mark.parametrize(
    "key", ["api_key", "llm.apiKey", "hub-token", "TOKEN", "db.password", "client_secret", "credentials.user"]
)
def test_secret_names_are_recognised(key: str) -> None:
    assert is_secret(key)


@pytest.mark.parametrize(
    "key", ["max_tokens", "tokenizer", "token_limit", "key", "k", "keep_keys", "passage", ""]
)
def test_names_that_resemble_secrets_are_unchanged(key: str) -> None:
    assert not is_secret(key)


@pytest.mark.parametrize(
    ("plain", "without"),
    [
        ("at postgresql://me:pa:ss@host:5432/db now", "at postgresql://me:***@host:5432/db now"),
        ("http://host:80/?mail=a@b", "http://host:80/?mail=a@b"),
        ("postgresql://host/db?user=me&password=x", "postgresql://host/db?user=me&password=***"),
        ("postgresql://host/db?sslpassword=x&sslmode=on", "postgresql://host/db?sslpassword=***&sslmode=on"),
        ("sqlite:////home/mlflow.db", "sqlite:////home/mlflow.db"),
    ],
)
def test_addresses_lose_only_their_password(plain: str, without: str) -> None:
    assert masked(plain) == without


def test_a_password_is_also_found_in_decoded_form() -> None:
    text = mask_password_of("http://me:p%40ss@host", "login me/p@ss at http://me:p%40ss@host failed")

    assert text == "login me/*** at http://me:***@host failed"


def test_only_secrets_are_removed_from_results() -> None:
    run = RunResult(
        variant="v",
        seed=0,
        identity="i",
        parameters={
            "llm": {"api_key": "hush", "url": "http://me:hush@host"},
            "epochs": 1,
            "urls": ["http://a:hush@b"],
        },
        scores=(),
    )
    result = ExperimentResult(
        experiment="e",
        identity="i",
        runs=(run,),
        source="llm:\n  api_key: |\n    hush\n  epochs: 1\n",
        environment={"HF_TOKEN": "hush", "torch": "2"},
    )

    cleaned = redacted(result)

    assert "hush" not in cleaned.model_dump_json()
    assert cleaned.runs[0].parameters == {
        "llm": {"url": "http://me:***@host"},
        "epochs": 1,
        "urls": ["http://a:***@b"],
    }
    assert cleaned.source == "llm:\n  epochs: 1\n"
    assert cleaned.environment == {"torch": "2"}


def test_overrides_and_messages_lose_their_secrets() -> None:
    typed = (
        "--seeds 0",
        "--set data.silver.api_key=hush",
        "--set 'data.silver={method: mine, token: hush}'",
        "--set data.silver.server=http://me:hush@host",
        "--set 'train.note=[odd: @'",
        "--variant token",
    )
    told = ("no answer from http://me:hush@host",)
    result = ExperimentResult(
        experiment="e",
        description="asks http://me:hush@host",
        identity="i",
        runs=(),
        overrides=typed,
        **dict.fromkeys(("failures", "pending", "notes"), told),
    )

    cleaned = redacted(result)

    assert "hush" not in cleaned.model_dump_json() + cleaned.title
    assert cleaned.overrides[:3] == (
        "--seeds 0",
        "--set 'data.silver.api_key=***'",
        "--set 'data.silver=***'",
    )
    assert cleaned.overrides[4:] == typed[4:]
    assert cleaned.notes == ("no answer from http://me:***@host",)


def test_source_without_secrets_is_unchanged() -> None:
    source = "# why\nname:   x\n"
    result = ExperimentResult(experiment="e", identity="i", runs=(), source=source)

    assert redacted(result).source == source


def test_only_sentences_of_a_result_may_contain_a_secret() -> None:
    secret = "http://me:hush@host/?sig=hush"
    command = ("vllm", "serve", "--api-key", "hush")
    data = DatasetSummary(
        part="p",
        kind="pair",
        num_records=1,
        notes=(secret,),
        content_hash="c",
        stage="s",
        dropped={"a token": 1},
    )
    run = RunResult(
        variant="v",
        seed=0,
        identity="i",
        parameters={"llm.serve": command, "llm.base_url": secret, "openai_key": "hush"},
        chosen={"x": secret},
        scores=(),
        datasets=(data,),
        revisions=((secret, "1"),),
    )
    sentence = RecordExcerpt(texts=(("sentence", "see http://me:fine@host/?sig=fine"),))
    result = ExperimentResult(
        experiment="e",
        identity="i",
        runs=(run,),
        source=f"llm:\n  serve: [vllm, --api-key, hush]\n# {secret}\n",
        table={"caption": secret},
        excerpts=(DataExcerpt(stage="s", records=(sentence,), revisions=()),),
        environment={"OPENAI_KEY": "hush", "torch": "2"},
    )

    cleaned = redacted(result)

    assert "hush" not in cleaned.model_dump_json()
    assert cleaned.runs[0].parameters["llm.serve"] == ("vllm", "serve", "--api-key", "***")
    assert cleaned.runs[0].datasets[0].dropped == {"a token": 1}
    assert cleaned.excerpts == result.excerpts
    assert redacted(cleaned) == cleaned
