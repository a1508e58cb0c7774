"""`llm: PROVIDER/MODEL` in any file, OPENAI_BASE_URL, and a `.env` beside the file."""

import os
from pathlib import Path

import pytest
from experiment_files import ExperimentFile
from faulty_server import answer, error, faulty_server, said
from wording import refused, worded

from synthbench.base.errors import UserError
from synthbench.base.redaction import masked
from synthbench.config.env_file import env_file
from synthbench.config.key_hosts import check_key_hosts
from synthbench.config.llm import EndpointLLM
from synthbench.config.permissions import what_is_sent
from synthbench.llm.connection import ErrorReader
from synthbench.llm.endpoint_check import check_endpoint

KEY = "sk-very-private-4711-0815"
ADDRESSES = {
    "openai/gpt-5-mini": ("openai", "https://api.openai.com/v1", "gpt-5-mini", "OPENAI_API_KEY"),
    "anthropic/claude-x": ("anthropic", "https://api.anthropic.com/v1", "claude-x", "ANTHROPIC_API_KEY"),
    "openrouter/qwen/qwen3-8b": (
        *("openrouter", "https://openrouter.ai/api/v1", "qwen/qwen3-8b", "OPENROUTER_API_KEY"),
    ),
    "ollama/llama3.2:1b": ("ollama", "http://localhost:11434/v1", "llama3.2:1b", None),
    "vllm/Qwen/Qwen3-8B": ("vllm", "http://localhost:8000/v1", "Qwen/Qwen3-8B", None),
}


@pytest.fixture(autouse=True)
def nothing_set(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI_BASE_URL", "OPENAI_API_KEY", "ANTHROPIC_API_KEY", "SYNTHBENCH_KEY_HOSTS"):
        monkeypatch.setenv(name, "")
    monkeypatch.setattr("synthbench.config.env_file._taken", {})


@pytest.fixture
def asking(experiment: ExperimentFile) -> ExperimentFile:
    """A long file whose row silver asks the LLM."""
    return experiment.change("      method: fake\n", "      method: fake-llm\n").change("      size: 3\n", "")


def settings(experiment: ExperimentFile, *assignments: str) -> EndpointLLM:
    found = experiment.load(*assignments).llms["llm"].settings
    assert isinstance(found, EndpointLLM)
    return found


@pytest.mark.parametrize("given", ADDRESSES)
def test_one_line_is_the_written_out_section(asking: ExperimentFile, given: str) -> None:
    name, base_url, model, variable = ADDRESSES[given]
    short = settings(asking.append(f"llm: {given}\n"))
    written = {"name": name, "base_url": base_url, "model": model, "key_variable": variable}
    assert short == EndpointLLM.model_validate(written)
    assert short.identity() == EndpointLLM.model_validate(written).identity()


def test_the_resolved_file_holds_the_section_so_results_of_both_are_one_request(
    asking: ExperimentFile,
) -> None:
    text = asking.file.read_text("utf-8")
    short = asking.append("llm: vllm/m\n").load().resolved
    asking.file.write_text(text + "llm: {name: vllm, base_url: 'http://localhost:8000/v1', model: m}\n")
    assert short == asking.load().resolved


def test_each_of_several_llms_may_be_one_line(asking: ExperimentFile) -> None:
    asking.change("      method: fake-llm\n", "      method: fake-llm\n      llm: small\n")
    loaded = asking.append("llms: {small: openai/gpt-5-nano, large: openai/gpt-5}\n").load("llms.large=null")
    assert loaded.llms["small"].settings.address().model == "gpt-5-nano"


def test_the_command_line_sets_the_llm_and_its_keys(asking: ExperimentFile) -> None:
    asking.append("llm: openai/gpt-5-mini\n")
    assert settings(asking, "llm.budget_tokens=1000").budget_tokens == 1000
    found = settings(asking, "llm=ollama/qwen3", "llm.concurrency=2")
    assert (found.base_url, found.concurrency) == ("http://localhost:11434/v1", 2)


def test_a_profile_replaces_it(asking: ExperimentFile) -> None:
    asking.profile("here", "substitute: {llm: sandbox}\n")
    loaded = asking.append("llm: openai/gpt-5-mini\n").load(profile="here")
    assert loaded.llms["llm"].settings.identity()["endpoint"] == "sandbox"


@pytest.mark.parametrize(
    ("given", "facts"),
    [
        ("opnai/gpt-5-mini", ("'opnai'", "'openai'")),
        ("gpt-5-mini", ("openai/gpt-5-mini", "sandbox")),
        ("openai/", ("llm.model",)),
    ],
)
def test_an_unknown_provider_is_reported_with_its_line(
    asking: ExperimentFile, given: str, facts: tuple[str, ...]
) -> None:
    (fault,) = asking.append(f"llm: {given}\n").faults()
    worded(fault, f"study.yaml:{asking.line('llm:')}: llm", *facts)


def test_openai_base_url_is_the_address_of_openais_models_alone(
    asking: ExperimentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", " http://localhost:4000/v1 ")
    asking.append("llm: openai/gpt-5-mini\n")
    assert settings(asking).base_url == "http://localhost:4000/v1"
    assert settings(asking, "llm=vllm/m").base_url == "http://localhost:8000/v1"
    assert settings(asking, "llm.base_url=https://api.openai.com/v1").base_url == "https://api.openai.com/v1"


def test_a_wrong_openai_base_url_is_named_without_its_password(
    asking: ExperimentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_BASE_URL", "https://me:hush@llm.example/v1")
    (fault,) = asking.append("llm: openai/gpt-5-mini\n").faults()
    worded(fault, f"study.yaml:{asking.line('llm:')}", "OPENAI_BASE_URL", "password")
    assert "hush" not in fault


def test_a_key_and_an_address_are_read_from_the_env_file_beside_the_experiment(
    asking: ExperimentFile,
) -> None:
    asking.append("llm: openai/gpt-5-mini\n")
    with faulty_server(lambda number, body: answer(said(body)), lambda path: error(404)) as server:
        (asking.folder / ".env").write_text(
            f"# mine\nexport OPENAI_API_KEY='{KEY}'\nOPENAI_BASE_URL={server.base_url}\nOTHER=x\n"
        )
        loaded = asking.load()
        check_endpoint(loaded.llms["llm"].endpoint())
        assert server.keys == [f"Bearer {KEY}"]
    assert "OTHER" not in os.environ
    (line,) = what_is_sent(loaded)
    assert line.endswith("prompts and the key in OPENAI_API_KEY (from .env), for the LLM 'openai'")
    assert masked(f"the log has {KEY}") == "the log has ***"


def test_the_environment_comes_before_the_env_file(
    asking: ExperimentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    (asking.folder / ".env").write_text(f"OPENAI_API_KEY={KEY}\nOPENAI_BASE_URL=http://localhost:1/v1\n")
    monkeypatch.setenv("OPENAI_API_KEY", "typed")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://localhost:2/v1")
    assert settings(asking.append("llm: openai/gpt-5-mini\n")).base_url == "http://localhost:2/v1"
    assert os.environ["OPENAI_API_KEY"] == "typed"


def test_another_folders_env_file_replaces_the_first_ones_key(asking: ExperimentFile, tmp_path: Path) -> None:
    asking.append("llm: openai/gpt-5-mini\n")
    for key in ("first-key-0001", "second-key-0002"):
        (asking.folder / ".env").write_text(f"OPENAI_API_KEY={key}\n")
        endpoint = asking.load().llms["llm"].endpoint()
        assert ErrorReader(endpoint).key == key


def test_a_strangers_env_file_sends_no_key_to_a_host_of_its_own(
    asking: ExperimentFile, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    monkeypatch.setenv("SECRET_OF_MINE", "hush-hush-123")
    (asking.folder / ".env").write_text(
        "OPENAI_BASE_URL=https://evil.example/${SECRET_OF_MINE}\nSYNTHBENCH_KEY_HOSTS=evil.example\n"
    )
    asking.append("llm: openai/gpt-5-mini\n")
    assert settings(asking).base_url == "https://evil.example/${SECRET_OF_MINE}"
    with refused("OPENAI_API_KEY", "evil.example", "--allow-host"):
        check_key_hosts([asking.load().llms["llm"]])


@pytest.mark.parametrize("content", [b"\xff\xfe", b"OPENAI_API_KEY=sk-a\0b", b"A=" + b"x" * 70_000])
def test_an_unreadable_env_file_is_reported_in_one_line(asking: ExperimentFile, content: bytes) -> None:
    (asking.folder / ".env").write_bytes(content)
    with pytest.raises(UserError) as raised:
        asking.append("llm: openai/gpt-5-mini\n").load()
    assert ".env: " in raised.value.messages[0]


def test_a_folder_called_env_is_no_env_file(tmp_path: Path) -> None:
    (tmp_path / ".env").mkdir()
    assert env_file(tmp_path) == {}


@pytest.mark.parametrize("key", ["sk-private\nX-More: 1", "sk-private\x07"], ids=["newline", "bell"])
def test_a_key_that_no_header_can_hold_is_refused_before_a_request(asking: ExperimentFile, key: str) -> None:
    (asking.folder / ".env").write_text(f'OPENAI_API_KEY="{key}"\n')
    endpoint = asking.append("llm: openai/gpt-5-mini\n").load().llms["llm"].endpoint()
    with refused("OPENAI_API_KEY", "holds no key") as error:
        check_endpoint(endpoint)
    assert "private" not in str(error.value)


def test_a_budget_without_a_price_names_keys_of_its_own_section(asking: ExperimentFile) -> None:
    asking.change("      method: fake-llm\n", "      method: fake-llm\n      llm: small\n")
    (fault,) = asking.append("llms: {small: openai/nobody-knows}\n").faults("llms.small.budget_usd=1")
    worded(fault, "llms.small", "budget_usd", "nobody-knows", "give price", "budget_tokens")
    assert "llm.price" not in fault


def test_a_provider_without_a_key_is_refused_with_the_variable(asking: ExperimentFile) -> None:
    endpoint = asking.append("llm: anthropic/claude-x\n").load().llms["llm"].endpoint()
    with refused("ANTHROPIC_API_KEY", ".env"):
        check_endpoint(endpoint)
