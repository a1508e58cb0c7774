"""Secrets are masked by their name, place, form or value; ordinary text stays."""

import random
import string

import pytest

from synthbench.base.redaction import is_secret, masked, without_secrets
from synthbench.base.terminal import ShownStream


class Written(list[str]):
    """A stream that stores all output."""

    def write(self, text: str) -> int:
        self.append(text)
        return len(text)


@pytest.fixture(autouse=True)
def _no_secrets_of_the_machine(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("SYNTHBENCH_KEY_VARIABLES", "OPENAI_API_KEY", "HF_TOKEN", "PGPASSWORD"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "OPENAI_KEY",
            "OPENAI_API_KEY",
            "PGPASSWORD",
            "MYSQL_PWD",
            "DB_PASS",
            "GH_PAT",
            "HF_TOKEN",
            "SENTRY_DSN",
            "OPENAI_API_KEY_2",
            "SQL_CONN_STR",
            "AZURE_SAS",
        ),
        *(
            "AZURE_STORAGE_CONNECTION_STRING",
            "AWS_ACCESS_KEY_ID",
            "AWS_SECRET_ACCESS_KEY",
            "AWS_SESSION_TOKEN",
        ),
        *(
            "X-Amz-Security-Token",
            "X-Amz-Credential",
            "securityToken",
            "openai_key",
            "accountKey",
            "sslpassword",
        ),
    ],
)
def test_names_of_secrets_are_recognised(name: str) -> None:
    assert is_secret(name)


@pytest.mark.parametrize(
    "name",
    [
        *(
            "sort_key",
            "SORT_KEY",
            "PRIMARY_KEY",
            "monkey",
            "MONKEY",
            "turkey",
            "key",
            "KEY",
            "keys",
            "key_variable",
        ),
        *(
            "pad_token",
            "eos_token",
            "usd_per_token",
            "max_tokens",
            "tokenizer",
            "AWS_REGION",
            "AWS_PROFILE",
            "PWD",
        ),
        *(
            "compass",
            "pattern",
            "pat",
            "passage",
            "secretary",
            "PATH",
            "SYNTHBENCH_KEY_VARIABLES",
            "SSH_AUTH_SOCK",
        ),
    ],
)
def test_names_that_only_resemble_secrets_are_not(name: str) -> None:
    assert not is_secret(name)


def test_a_variable_that_the_user_lists_is_secret(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_secret("MY_SERVICE")
    monkeypatch.setenv("SYNTHBENCH_KEY_VARIABLES", "OTHER, MY_SERVICE")
    monkeypatch.setenv("MY_SERVICE", "abc-0123456789")
    assert is_secret("MY_SERVICE")
    assert masked("sent abc-0123456789 to it") == "sent *** to it"


@pytest.mark.parametrize(
    ("text", "without"),
    [
        ("https://hush@github.com/a/b.git", "https://***@github.com/a/b.git"),
        ("git+https://hush@host/x", "git+https://***@host/x"),
        ("https://me:hush@host/x?a=1", "https://me:***@host/x?a=1"),
        ("https://hush:@host", "https://***@host"),
        ("aws_secret_access_key = hush", "aws_secret_access_key = ***"),
        ("password: hush-0123456789", "password: ***"),
        ("NPM_AUTH=hush API_KEYS=hush MY_CREDS=hush", "NPM_AUTH=*** API_KEYS=*** MY_CREDS=***"),
        ("x --api-key \\\n  hush --pat hush -v", "x --api-key \\\n  *** --pat *** -v"),
        ("https://h/?pwd=hush", "https://h/?pwd=***"),
        ("redis://:hush@host:6379/0", "redis://:***@host:6379/0"),
        ("https://0123456789hush0123456789:x-oauth-basic@h", "https://***:***@h"),
        ("postgresql://me:hu:sh@host/db", "postgresql://me:***@host/db"),
        ("get https://h/v1?key=hush now", "get https://h/v1?key=*** now"),
        ("https://h/x?a=1&sig=hu%2Fsh&se=2", "https://h/x?a=1&sig=***&se=2"),
        (
            "/b/x?X-Amz-Credential=hush%2F2&X-Amz-Date=1&X-Amz-Signature=hush&X-Amz-Security-Token=hush",
            "/b/x?X-Amz-Credential=***&X-Amz-Date=1&X-Amz-Signature=***&X-Amz-Security-Token=***",
        ),
        ("https://h/?OSSAccessKeyId=hush&Signature=hush", "https://h/?OSSAccessKeyId=***&Signature=***"),
        ("https://h/?token=hush&access_token=hush", "https://h/?token=***&access_token=***"),
        ("vllm serve m --api-key hush --port 1", "vllm serve m --api-key *** --port 1"),
        ("x --api-key=hush -v", "x --api-key=*** -v"),
        ("x --token 'hu sh' --api_key \"hush\"", "x --token *** --api_key ***"),
        ("['vllm', '--api-key', 'hush', '--port', '1']", "['vllm', '--api-key', '***', '--port', '1']"),
        ("OPENAI_KEY=hush PGPASSWORD='hush' python x.py", "OPENAI_KEY=*** PGPASSWORD=*** python x.py"),
        ("curl -H 'Authorization: Bearer hush'", "curl -H 'Authorization: Bearer ***'"),
        ("Authorization: Basic aHVzaA==", "Authorization: Basic ***"),
        ("{'Authorization': 'Bearer hush', 'a': 'b'}", "{'Authorization': '***', 'a': 'b'}"),
        ('{"api_key": "hush", "n": 1}', '{"api_key": "***", "n": 1}'),
        ("x-api-key: hush", "x-api-key: ***"),
        ("HF_TOKEN_1=hush", "HF_TOKEN_1=***"),
        ("with gsk_0123456789hush0123456789", "with ***"),
        ("Cookie: session=hush; a=b", "Cookie: ***"),
        ("refused: bearer hush0123", "refused: bearer ***"),
        ("AccountName=x;AccountKey=hush==;EndpointSuffix=y", "AccountName=x;AccountKey=***;EndpointSuffix=y"),
        ("key hf_hush0123456789abcdef is wrong", "key *** is wrong"),
        ("Incorrect API key provided: sk-proj-hush0123456789", "Incorrect API key provided: ***"),
    ],
)
def test_only_secrets_are_masked(text: str, without: str) -> None:
    assert masked(text) == without
    assert masked(without) == without, "masking twice is masking once"


@pytest.mark.parametrize(
    "text",
    [
        *(
            "the key = value",
            "The password: swordfish.",
            "Is it? key=3",
            "sort_key=name",
            "monkey=value",
            "a==b",
        ),
        *("--max-tokens 5 --sort-key name --pad-token '[PAD]'", "ssh://git@host/x", "git@github.com:a/b.git"),
        *(
            "postgresql://me@host/db",
            "http://h:80/?mail=a@b",
            "me@example.org",
            "https://h/x?page=2&sort_key=a",
        ),
        *(
            "Bearer of bad news",
            "The authorization: none was given.",
            "A cookie: sweet.",
            "sk-learn",
            "C:/models",
        ),
        *(
            "tokens = 5",
            "token_limit=3",
            "key=value",
            "my_key: value",
            "12:30:45",
            "a: b",
            "--",
            "x --api-key",
            "",
        ),
        *("The secret of the key was a token of love & passion?", "score: 5/5", "data.silver.sampler.k=5"),
    ],
)
def test_ordinary_text_is_unchanged(text: str) -> None:
    assert masked(text) == text


def test_sentences_of_common_words_are_unchanged() -> None:
    words = [
        "a",
        "key",
        "=",
        "value",
        "?",
        "token:",
        "secret",
        "password",
        "the",
        "-",
        "--",
        ":",
        ";",
        "'",
        "\n",
    ]
    words += ['"', "(", ")", "&", "https://", "@", "/", ".", "1", "key?", "ok", ","]
    chance = random.Random(0)
    for _ in range(300):
        text = " ".join(chance.choices(words, k=12))
        assert masked(text) == text


def test_masking_twice_is_masking_once_for_any_text() -> None:
    chance = random.Random(1)
    parts = [
        *string.punctuation,
        "key",
        "api_key",
        "token",
        "://",
        "http",
        "--api-key",
        "Bearer ",
        "sig",
        " ",
        "a1",
    ]
    for _ in range(2_000):
        text = "".join(chance.choices(parts, k=10))
        assert masked(masked(text)) == masked(text)


def test_values_of_secret_variables_are_masked_anywhere_in_a_text(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PGPASSWORD", "tr0ub4dor&3")
    monkeypatch.setenv("OTHER_PASSWORD", "training")
    assert masked("login with tr0ub4dor&3 failed in training") == "login with *** failed in training"


def test_a_command_list_loses_the_value_of_a_secret_option() -> None:
    command = ["vllm", "--api-key", "hush", "--port", "1", "--token=hush", "--api-key", "--x"]
    assert without_secrets({"serve": command, "api_key": "hush"}) == {
        "serve": ["vllm", "--api-key", "***", "--port", "1", "--token=***", "--api-key", "--x"]
    }


def test_nothing_secret_is_printed() -> None:
    written = Written()
    ShownStream(written).write("error: http://me:hush@host/?key=hush\n")  # type: ignore[arg-type]
    assert written == ["error: http://me:***@host/?key=***\n"]
