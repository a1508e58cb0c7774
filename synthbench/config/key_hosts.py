"""Which hosts may get API keys: a key's issuer, this machine, and hosts that the user has allowed.

The allowed hosts are stored per user, outside any folder that another person may have made:
`~/.config/synthbench/key_hosts.json`, or below `$XDG_CONFIG_HOME`.
"""

import ipaddress
import json
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from urllib.parse import SplitResult, urlsplit

from pydantic import TypeAdapter, ValidationError

from synthbench.base.durability import write_atomically
from synthbench.base.errors import UserError, first_fault
from synthbench.config.llm import EndpointLLM, NamedLLM

VARIABLE = "SYNTHBENCH_KEY_HOSTS"
"""The environment variable that allows further hosts, for unattended runs."""
_FILE = "key_hosts.json"
_ALLOWED = TypeAdapter(dict[str, list[str]])
_OWN_HOSTS = {
    "OPENAI_API_KEY": ("api.openai.com",),
    "ANTHROPIC_API_KEY": ("api.anthropic.com",),
    "AZURE_OPENAI_API_KEY": ("openai.azure.com", "services.ai.azure.com"),
    "CEREBRAS_API_KEY": ("api.cerebras.ai",),
    "CO_API_KEY": ("api.cohere.com", "api.cohere.ai"),
    "COHERE_API_KEY": ("api.cohere.com", "api.cohere.ai"),
    "DASHSCOPE_API_KEY": ("dashscope.aliyuncs.com", "dashscope-intl.aliyuncs.com"),
    "DEEPINFRA_API_KEY": ("api.deepinfra.com",),
    "DEEPSEEK_API_KEY": ("api.deepseek.com",),
    "FIREWORKS_API_KEY": ("api.fireworks.ai",),
    "GEMINI_API_KEY": ("generativelanguage.googleapis.com",),
    "GOOGLE_API_KEY": ("generativelanguage.googleapis.com",),
    "GROQ_API_KEY": ("api.groq.com",),
    "MISTRAL_API_KEY": ("api.mistral.ai",),
    "MOONSHOT_API_KEY": ("api.moonshot.ai", "api.moonshot.cn"),
    "NVIDIA_API_KEY": ("integrate.api.nvidia.com",),
    "OPENROUTER_API_KEY": ("openrouter.ai",),
    "PERPLEXITY_API_KEY": ("api.perplexity.ai",),
    "SAMBANOVA_API_KEY": ("api.sambanova.ai",),
    "TOGETHER_API_KEY": ("api.together.xyz", "api.together.ai"),
    "XAI_API_KEY": ("api.x.ai",),
}
"""The issuing host of each key, by the key's usual environment variable; subdomains count, too."""


def is_here(host: str | None) -> bool:
    """Return whether a host is this machine: localhost or a loopback address."""
    try:
        return host == "localhost" or ipaddress.ip_address(host or "").is_loopback
    except ValueError:
        return False


def check_key_hosts(llms: Iterable[NamedLLM]) -> None:
    """Raise UserError with a line for each key that would go to a host that the user has not allowed."""
    messages = [
        f"{llm.section}.base_url: the key in {variable} would go to {host} for the"
        f" first time; if you want that, say so once with --allow-host {host}, or list {host} in {VARIABLE}"
        for llm, variable, host in _unallowed(llms)
    ]
    if messages:
        raise UserError(*messages)


def unallowed_hosts(llms: Iterable[NamedLLM]) -> frozenset[str]:
    """Return the hosts that the user would have to allow before a run."""
    return frozenset(host for _, _, host in _unallowed(llms))


def _unallowed(llms: Iterable[NamedLLM]) -> Iterator[tuple[NamedLLM, str, str]]:
    named = frozenset(os.environ.get(VARIABLE, "").lower().replace(",", " ").split())
    sent = [(llm, *to) for llm in llms for to in _sent(llm) if to[1] not in named]
    allowed = _allowed() if sent else {}
    yield from (each for each in sent if each[2] not in allowed.get(each[1], ()))


def _sent(llm: NamedLLM) -> Iterator[tuple[str, str]]:
    """Yield (key variable, host) if the LLM's key goes neither to its issuer's host nor to this machine."""
    settings = llm.settings
    if not isinstance(settings, EndpointLLM) or settings.offline or settings.key_variable is None:
        return
    address = urlsplit(settings.base_url)
    if not is_here(address.hostname) and not _is_own(settings.key_variable, address):
        yield settings.key_variable, address.netloc.lower()


def _is_own(variable: str, address: SplitResult) -> bool:
    host = address.hostname or ""
    is_its = any(host == own or host.endswith(f".{own}") for own in _OWN_HOSTS.get(variable, ()))
    return is_its and address.scheme == "https" and address.port in (None, 443)


def allow_hosts(hosts: Iterable[str], llms: Iterable[NamedLLM]) -> None:
    """Store in the user's file that the keys of these LLMs may go to these hosts.

    Raises UserError for a host to which no key goes, or if the file can't be read or written.
    """
    sent = [(variable, host) for llm in llms for variable, host in _sent(llm)]
    allowed = _allowed()
    for host in dict.fromkeys(host.lower() for host in hosts):
        variables = {variable for variable, its in sent if its == host}
        if not variables:
            asked = ", ".join(dict.fromkeys(its for _, its in sent)) or "none"
            raise UserError(f"--allow-host {host}: the file sends no key there, but to: {asked}")
        for variable in variables:
            allowed[variable] = sorted({*allowed.get(variable, ()), host})
    file = _file()
    try:
        file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        write_atomically(file, json.dumps(allowed, indent=1, sort_keys=True) + "\n")
    except OSError as error:
        raise UserError(
            f"{file}: can't be written: {error.strerror or error}; list the host in {VARIABLE} instead"
        ) from error


def _allowed() -> dict[str, list[str]]:
    """Return key variable -> hosts that the user allowed; raises UserError for an unreadable file."""
    file = _file()
    try:
        return _ALLOWED.validate_json(file.read_bytes())
    except FileNotFoundError:
        return {}
    except (OSError, ValidationError) as error:
        reason = error.strerror if isinstance(error, OSError) else first_fault(error)
        raise UserError(f"{file}: the allowed hosts can't be read: {reason}; mend or delete it") from error


def _file() -> Path:
    folder = os.environ.get("XDG_CONFIG_HOME", "")
    base = Path(folder) if Path(folder).is_absolute() else Path.home() / ".config"
    return base / "synthbench" / _FILE
