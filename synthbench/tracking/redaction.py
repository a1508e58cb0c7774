"""Masks passwords and keys in all that is tracked or printed."""

import io
import re
import shlex
from collections.abc import Mapping
from typing import Any
from urllib.parse import unquote, urlsplit

from synthbench.reporting.results import ExperimentResult

MASK = "***"
_SECRET_WORDS = {"password", "passwd", "passphrase", "secret", "token", "credential", "credentials"}
_SECRET_ENDINGS = {"apikey", "accesskey", "privatekey", "secretkey", "authorization"}
_URL_PASSWORD = re.compile(r"(\w[\w+.-]*://[^/\s:@]*):[^\s@/]+@")
_QUERY_SECRET = re.compile(r"([?&][\w.-]*(?:password|passwd|secret|token|api_?key)=)[^&\s]+", re.IGNORECASE)


def is_secret(key: str) -> bool:
    """Tell whether a name in a dotted path looks like a secret's: `llm.api_key`, not `max_tokens`."""
    return any(_names_secret(name) for name in key.split("."))


def mask_urls(text: str) -> str:
    """Return `text` with the passwords of its URLs masked."""
    return _QUERY_SECRET.sub(rf"\1{MASK}", _URL_PASSWORD.sub(rf"\1:{MASK}@", text))


def mask_password_of(uri: str, text: str) -> str:
    """Return `text` without the password of `uri`, plain or quoted."""
    try:
        password = urlsplit(uri).password or ""
    except ValueError:
        password = ""
    for form in {password, unquote(password)} - {""}:
        text = text.replace(form, MASK)
    return mask_urls(text)


def mask_override(text: str) -> str:
    """Return an override, as typed in a shell ("--set train.epochs=1"), the value masked if it is secret."""
    option, _, typed = text.partition(" ")
    key, is_assigned, value = " ".join(shlex.split(typed)).partition("=")
    is_plain = not is_secret(key) and mask_urls(value) == value and _redacted_yaml(value) in (value, "")
    return text if is_plain or not is_assigned else f"{option} {shlex.quote(f'{key}={MASK}')}"


def redacted(result: ExperimentResult) -> ExperimentResult:
    """Return the result without parameters that look like secrets; URL passwords and overrides are masked."""
    runs = tuple(
        run.model_copy(update={"parameters": _without_secrets(run.parameters)}) for run in result.runs
    )
    texts = {name: tuple(map(mask_urls, getattr(result, name))) for name in ("failures", "pending", "notes")}
    return result.model_copy(
        update={
            "runs": runs,
            "environment": _without_secrets(result.environment),
            "source": _redacted_yaml(result.source),
            "overrides": tuple(map(mask_override, result.overrides)),
            "description": mask_urls(result.description),
            **texts,
        }
    )


def _names_secret(name: str) -> bool:
    words = re.findall(r"[a-z0-9]+", re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", name).lower())
    return bool(words) and (
        words[-1] in _SECRET_WORDS or "".join(words[-2:]).endswith(tuple(_SECRET_ENDINGS))
    )


def _without_secrets(values: Mapping[str, Any]) -> dict[str, Any]:
    return {key: _masked(value) for key, value in values.items() if not is_secret(str(key))}


def _masked(value: object) -> object:
    if isinstance(value, str):
        return mask_urls(value)
    if isinstance(value, Mapping):
        return _without_secrets(value)
    if isinstance(value, list | tuple):
        return type(value)(_masked(item) for item in value)
    return value


def _redacted_yaml(text: str) -> str:
    """Return YAML text; with secrets in it, written again without them."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        document = yaml.load(text)
    except YAMLError:
        return ""
    redacted_document = _masked(document)
    if redacted_document == document:
        return text
    yaml.default_flow_style = False
    written = io.StringIO()
    yaml.dump(redacted_document, written)
    return written.getvalue()
