"""Expands `llm: PROVIDER/MODEL` into the provider's settings."""

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from synthbench.config.documents import Document, KeyPath
from synthbench.config.env_file import FILE, env_file

LLM, LLMS = "llm", "llms"


@dataclass(frozen=True)
class Provider:
    """A service or local server with OpenAI's API.

    The environment variable `address_variable` overrides `base_url`.
    """

    base_url: str
    key_variable: str = ""
    address_variable: str = ""


PROVIDERS: Mapping[str, Provider] = {
    "anthropic": Provider("https://api.anthropic.com/v1", "ANTHROPIC_API_KEY"),
    "ollama": Provider("http://localhost:11434/v1"),
    "openai": Provider("https://api.openai.com/v1", "OPENAI_API_KEY", "OPENAI_BASE_URL"),
    "openrouter": Provider("https://openrouter.ai/api/v1", "OPENROUTER_API_KEY"),
    "vllm": Provider("http://localhost:8000/v1"),
}
"""PROVIDER in `llm: PROVIDER/MODEL` -> base URL and key variable."""


def with_providers(document: Document, folder: Path) -> Document:
    """Return a file's document with each LLM's `PROVIDER/MODEL` expanded to a section.

    OPENAI_BASE_URL, from the environment or else the `.env` in `folder`, overrides OpenAI's base URL. The
    schema reports unknown providers. Raises UserError if the `.env` can't be read.
    """
    for path in ((LLM,), *((LLMS, name) for name in document.mapping(LLMS))):
        given = document.at(path)
        provider, slash, model = given.partition("/") if isinstance(given, str) else ("", "", "")
        if not slash or provider not in PROVIDERS:
            continue
        found = PROVIDERS[provider]
        address, origin = _address(found, folder)
        section = {"name": provider, "base_url": address, "model": model}
        section |= {"key_variable": found.key_variable} if found.key_variable else {}
        location = document.location(path)
        at_keys: dict[KeyPath, str] = {(*path, key): location for key in section}
        if origin:
            at_keys[(*path, "base_url")] = f"{location}: {origin}"
        document = document.replaced(path, section, at_keys)
    return document


def _address(provider: Provider, folder: Path) -> tuple[str, str]:
    """Return the base URL and the variable that set it; the variable is "" for the provider's own URL."""
    variable = provider.address_variable
    if not variable:
        return provider.base_url, ""
    if typed := os.environ.get(variable, "").strip():
        return typed, variable
    if written := env_file(folder).get(variable):
        return written, f"{variable} in {FILE}"
    return provider.base_url, ""
