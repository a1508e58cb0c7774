"""Remove passwords and keys from results before they are tracked, reported or exported."""

import io
import shlex
from collections.abc import Iterable, Mapping
from typing import Any, TypeVar
from urllib.parse import unquote, urlsplit

from pydantic import BaseModel

from synthbench.base.redaction import MASK, is_secret, masked, without_secrets
from synthbench.reporting.results import ExperimentResult

_SETTINGS = frozenset({"parameters", "chosen", "settings", "table", "environment"})
"""Fields that map names to values: entries with a secret's name are removed."""
_OF_DATA = frozenset({"excerpts", "side_by_side", "history", "item_noise"})
"""Fields of training sentences or figures, in which no secrets are looked for."""
Model = TypeVar("Model", bound=BaseModel)


def mask_password_of(uri: str, text: str) -> str:
    """Return `text` with secrets masked, among them the password of `uri`, plain or percent-encoded."""
    try:
        password = urlsplit(uri).password or ""
    except ValueError:
        password = ""
    for form in {password, unquote(password)} - {""}:
        text = text.replace(form, MASK)
    return masked(text)


def mask_override(text: str) -> str:
    """Return an override as typed in a shell ("--set train.epochs=1"), its value masked if it is secret."""
    option, _, typed = text.partition(" ")
    key, is_assigned, value = " ".join(shlex.split(typed)).partition("=")
    is_plain = not is_secret(key) and masked(value) == value and _redacted_yaml(value) in (value, "")
    return text if is_plain or not is_assigned else f"{option} {shlex.quote(f'{key}={MASK}')}"


def redacted(result: ExperimentResult) -> ExperimentResult:
    """Return the result without secrets: secret settings removed, secrets in texts and overrides masked."""
    changes = {
        "source": _redacted_yaml(result.source),
        "overrides": tuple(map(mask_override, result.overrides)),
    }
    return _redacted(result, but=changes).model_copy(update=changes)


def _redacted(model: Model, but: Iterable[str] = ()) -> Model:
    changes: dict[str, Any] = {}
    for name in type(model).model_fields:
        value = getattr(model, name)
        if name not in _OF_DATA and name not in but:
            new = without_secrets(value) if name in _SETTINGS else _in_field(value)
            if new != value:
                changes[name] = new
    return model.model_copy(update=changes) if changes else model


def _in_field(value: Any) -> Any:  # noqa: ANN401 - of whatever type a field is
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, BaseModel):
        return _redacted(value)
    if isinstance(value, tuple):
        return tuple(map(_in_field, value))
    if isinstance(value, Mapping):
        return {key: _in_field(child) for key, child in value.items()}
    return value


def _redacted_yaml(text: str) -> str:
    """Return YAML text without secrets, "" if it isn't YAML; removing keys loses comments."""
    from ruamel.yaml import YAML
    from ruamel.yaml.error import YAMLError

    yaml = YAML(typ="safe", pure=True)
    try:
        document = yaml.load(text)
    except YAMLError:
        return ""
    redacted_document = without_secrets(document)
    if redacted_document == document:
        return masked(text)
    yaml.default_flow_style = False
    written = io.StringIO()
    yaml.dump(redacted_document, written)
    return written.getvalue()
