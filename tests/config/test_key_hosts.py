"""A key is sent to its issuer and this machine; to other hosts only with the user's permission."""

import stat
from pathlib import Path

import pytest
from pydantic import ValidationError
from wording import refused

from synthbench.config.key_hosts import allow_hosts, check_key_hosts
from synthbench.config.llm import EndpointLLM, NamedLLM


def llm(url: str, variable: str | None = "OPENAI_API_KEY", **more: bool) -> NamedLLM:
    settings = EndpointLLM(name="x", base_url=url, model="m", key_variable=variable, **more)
    return NamedLLM("llm", settings)


OWN = "https://llm.example/v1"


@pytest.mark.parametrize(
    "asked",
    [
        llm("https://api.openai.com/v1"),
        llm("https://eu.api.openai.com/v1"),
        llm("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
        llm("http://localhost:8000/v1"),
        llm("http://127.1.2.3:8000/v1"),
        llm("http://[::1]:8000/v1"),
        llm(OWN, None),
        llm(OWN, offline=True),
    ],
)
def test_the_keys_issuer_and_this_machine_need_no_permission(asked: NamedLLM) -> None:
    check_key_hosts([asked])


@pytest.mark.parametrize(
    ("url", "variable", "host"),
    [
        (OWN, "OPENAI_API_KEY", "llm.example"),
        (OWN, "HOUSE_API_KEY", "llm.example"),
        ("http://api.openai.com/v1", "OPENAI_API_KEY", "api.openai.com"),
        ("https://api.openai.com:8443/v1", "OPENAI_API_KEY", "api.openai.com:8443"),
        ("https://api.openai.com.evil.example/v1", "OPENAI_API_KEY", "api.openai.com.evil.example"),
        ("https://api.openai.com/v1", "ANTHROPIC_API_KEY", "api.openai.com"),
        ("https://localhost.evil.example/v1", "OPENAI_API_KEY", "localhost.evil.example"),
    ],
)
def test_other_hosts_need_permission_once(url: str, variable: str, host: str) -> None:
    asked = [llm(url, variable)]
    with refused("llm.base_url", variable, f"--allow-host {host}", "SYNTHBENCH_KEY_HOSTS"):
        check_key_hosts(asked)
    allow_hosts([host], asked)
    check_key_hosts(asked)


def test_permission_for_one_key_is_not_permission_for_another(monkeypatch: pytest.MonkeyPatch) -> None:
    allow_hosts(["llm.example"], [llm(OWN, "HOUSE_API_KEY")])
    with refused("llm.base_url", "OPENAI_API_KEY", "--allow-host llm.example", "SYNTHBENCH_KEY_HOSTS"):
        check_key_hosts([llm(OWN)])
    monkeypatch.setenv("SYNTHBENCH_KEY_HOSTS", "other.example, llm.example")
    check_key_hosts([llm(OWN)])


def test_permission_for_an_unused_host_is_refused() -> None:
    with refused("--allow-host typo.example", "llm.example"):
        allow_hosts(["typo.example"], [llm(OWN)])


def test_permissions_in_the_home_are_ignored(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    allow_hosts(["llm.example"], [llm(OWN)])
    file = tmp_path / "config" / "synthbench" / "key_hosts.json"
    assert stat.S_IMODE(file.parent.stat().st_mode) == 0o700
    (tmp_path / "home").mkdir()
    file.rename(tmp_path / "home" / file.name)
    with refused("llm.base_url", "OPENAI_API_KEY", "--allow-host llm.example", "SYNTHBENCH_KEY_HOSTS"):
        check_key_hosts([llm(OWN)])


@pytest.mark.parametrize(
    "content", ["", "[]", '{"OPENAI_API_KEY": "llm.example"}', '{"A": [7]}', "[" * 10_000]
)
def test_an_invalid_permissions_file_is_refused_and_kept(
    tmp_path: Path, content: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "config" / "synthbench" / "key_hosts.json"
    file.parent.mkdir(parents=True)
    file.write_text(content, encoding="utf-8")
    with refused("key_hosts.json: the allowed hosts can't be read", "mend or delete it"):
        check_key_hosts([llm(OWN)])
    with refused("key_hosts.json: the allowed hosts can't be read", "mend or delete it"):
        allow_hosts(["llm.example"], [llm(OWN)])
    assert file.read_text(encoding="utf-8") == content
    monkeypatch.setenv("SYNTHBENCH_KEY_HOSTS", "llm.example")
    check_key_hosts([llm(OWN)])


@pytest.mark.parametrize("url", ["https://api.openai.com:99999/v1", "http://localhost:abc", "http://a:0"])
def test_an_invalid_port_is_refused(url: str) -> None:
    with pytest.raises(ValidationError, match="its port must be a number"):
        EndpointLLM(name="x", base_url=url, model="m")
