"""Mask keys, tokens and passwords in every text for terminal, reports, MLflow, cards and logs.

A secret is recognised by the name before it (`--api-key`, `?sig=`, PGPASSWORD=), by its position (the user
part of a URL, a header), by its form (`hf_...`), or as the value of an environment variable with a
secret's name (`is_secret`).
"""

import os
import re
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any

from synthbench.base.patterns import linear_pattern

MASK = "***"
KEY_VARIABLES = "SYNTHBENCH_KEY_VARIABLES"
"""The environment variable in which users list further variables that hold API keys."""
SHORTEST_SECRET = 8
_CERTAIN_LENGTH = 20
"""Length from which a word counts as a token; a shorter one may be a name."""
_LAST_WORDS = {"secret", "credential", "credentials", "bearer", "jwt"}
_LAST_ENDINGS = ("password", "passwd", "passphrase")
_ENDINGS = (
    *("apikey", "accesskey", "privatekey", "secretkey", "authkey", "accountkey", "storagekey", "hfkey"),
    *("openaikey", "anthropickey", "azurekey", "subscriptionkey", "signingkey", "encryptionkey"),
    *("apikeys", "licensekey", "creds", "connstr"),
    *("authorization", "connectionstring", "connectionstr", "accesskeyid", "authtoken", "accesstoken"),
)
_NO_SECRET = {
    *("pad", "eos", "bos", "unk", "sep", "cls", "mask", "stop", "start", "end", "image", "special"),
    *("per", "each", "first", "last", "max"),
}
"""Prefixes of "token" in harmless setting names: `pad_token`, `usd_per_token`."""
_NO_KEY = {"sort", "primary", "foreign", "public", "group", "cache", "partition"}
_IN_VARIABLES = {"pass", "pat", "dsn", "pwd", "auth", "sas"}

_WORDS = linear_pattern(r"[a-z0-9]+")
_HUMP = linear_pattern(r"(?<=[a-z0-9])(?=[A-Z])")
_VARIABLE = linear_pattern(r"^[A-Z][A-Z0-9_]*\Z")
_BETWEEN_NAMES = linear_pattern(r"[\s,]+")
_QUOTED = r"\"[^\"\n\\]*+\"|'[^'\n\\]*+'"
_ADDRESS = linear_pattern(r"(?<![\w+.-])([\w+.-]++)://([^\s/?#\"'<>\\]*)@")
_PARAMETER = linear_pattern(r"([?&])([\w.-]{1,80})=([^&\s\"'<>#;,)\\]+)")
_OPTION = linear_pattern(
    rf"(?<![\w-])(--?[A-Za-z][\w-]{{0,80}})(=|[ \t]++(?>(?:\\\n[ \t]*+)?))({_QUOTED}|[^\s\"'\\-][^\s\"'\\]*)"
)
_ASSIGNED = linear_pattern(
    r"(?<![\w.$-])([A-Za-z_][\w.-]{0,80})([ \t]{0,3}=[ \t]{0,3}|:[ \t]{1,3})"
    rf"({_QUOTED}|[^\s\"'&;,\\]+)"
)
_IN_QUOTES = linear_pattern(
    rf"[\"'](?:([\w.-]{{1,80}})[\"']\s{{0,3}}:|(--?[\w-]{{1,80}})[\"']\s{{0,3}},)\s{{0,40}}+({_QUOTED})"
)
_HEADER = linear_pattern(
    r"\b((?:proxy-)?authorization[\"']?\s{0,3}[:=]\s{0,3}[\"']?)"
    r"((?:bearer|basic|token|digest|negotiate|apikey|key|aws4-hmac-sha256)\s{1,3})?([^\s\"',;\\]+)",
    re.IGNORECASE,
)
_COOKIE = linear_pattern(r"\b((?:set-)?cookie[\"']?:\s{0,3}[\"']?)([^\r\n\"'\\]+)", re.IGNORECASE)
_BEARER = linear_pattern(r"\b(bearer\s{1,3})([\w.~+/=-]+)", re.IGNORECASE)
_TOKEN = linear_pattern(
    r"(?<![\w-])(?:sk-|hf_|gh[pousr]_|github_pat_|glpat-|gsk_|pypi-|AKIA|ASIA|AIza|xox[abprs]-|eyJ)[\w.-]+"
)


def is_secret(key: str) -> bool:
    """Return whether a name looks like that of a secret: `llm.api_key`, PGPASSWORD, not `max_tokens`.

    Variables that SYNTHBENCH_KEY_VARIABLES lists are secrets, too.
    """
    return _looks_secret(key) or key in named_variables()


def named_variables() -> list[str]:
    """Return the variables that SYNTHBENCH_KEY_VARIABLES lists."""
    named = os.environ.get(KEY_VARIABLES)
    return [name for name in _BETWEEN_NAMES.split(named) if name] if named else []


@lru_cache(10_000)
def _looks_secret(key: str) -> bool:
    return " " not in key and any(map(_names_secret, key.split(".")))


def _names_secret(name: str) -> bool:
    words = _WORDS.findall(_HUMP.sub("_", name).lower())
    while len(words) > 1 and words[-1].isdecimal():  # API_KEY_2
        words.pop()
    if not words:
        return False
    last, before = words[-1], words[-2] if len(words) > 1 else ""
    if last == "token":
        return before not in _NO_SECRET
    is_in_variable = last in _IN_VARIABLES or (last == "key" and before not in _NO_KEY)
    return (
        (is_in_variable and bool(before) and _VARIABLE.match(name) is not None)
        or last in _LAST_WORDS
        or last.endswith(_LAST_ENDINGS)
        or (last == "pat" and bool(before))
        or "".join(words[-3:]).endswith(_ENDINGS)
    )


def masked(text: str) -> str:
    """Return the text with every secret masked; masking the result again changes nothing."""
    for value in secret_values():
        if value in text:
            text = re.sub(rf"(?<!\w){re.escape(value)}(?!\w)", MASK, text)
    if "://" in text:
        text = _ADDRESS.sub(_address, text)
    if "=" in text or ":" in text or "--" in text:
        text = _PARAMETER.sub(_parameter, text)
        text = _HEADER.sub(_header, text)
        text = _COOKIE.sub(_cookie, text)
        text = _OPTION.sub(_option, text)
        text = _IN_QUOTES.sub(_in_quotes, text)
        text = _ASSIGNED.sub(_assigned, text)
    text = _BEARER.sub(lambda found: found[1] + MASK if _may_be_token(found[2]) else found[0], text)
    return _TOKEN.sub(_token, text)


def without_secrets(value: Any) -> Any:  # noqa: ANN401 - plain data, whatever they hold
    """Return plain data without the keys that name secrets, and with the secrets in all texts masked.

    In a list, such as a command line, the value after a secret's option (`--api-key`) is masked.
    """
    if isinstance(value, str):
        return masked(value)
    if isinstance(value, Mapping):
        return {key: without_secrets(child) for key, child in value.items() if not is_secret(str(key))}
    if isinstance(value, list | tuple):
        return type(value)(_items(value))
    return value


def _items(values: "list[Any] | tuple[Any, ...]") -> Iterator[Any]:
    is_value = False
    for each in values:
        is_option = isinstance(each, str) and each.startswith("-")
        yield MASK if is_value and isinstance(each, str) and not is_option else without_secrets(each)
        is_value = is_option and not {"=", " "} & {*each} and _is_secret_option(each)


def secret_values() -> Iterator[str]:
    """Yield the values of secret environment variables, longest first; leave out short or plain words."""
    named = named_variables()
    values = {os.environ[name] for name in os.environ if _looks_secret(name) or name in named}
    for value in sorted(values, key=len, reverse=True):
        if len(value) >= (_CERTAIN_LENGTH if value.isalpha() else SHORTEST_SECRET):
            yield value


def _may_be_token(word: str) -> bool:
    has_digit = any(map(str.isdigit, word))
    return len(word) >= SHORTEST_SECRET and (has_digit or len(word) >= _CERTAIN_LENGTH)


def _token(found: re.Match[str]) -> str:
    is_whole = len(found[0]) >= _CERTAIN_LENGTH and any(map(str.isdigit, found[0]))
    return MASK if is_whole else found[0]


def _address(found: re.Match[str]) -> str:
    scheme, user = found[1], found[2]
    name, colon, password = user.partition(":")
    if password:
        return f"{scheme}://{MASK if len(name) >= _CERTAIN_LENGTH else name}:{MASK}@"
    is_token = colon or "http" in scheme.lower() or len(name) >= _CERTAIN_LENGTH
    return f"{scheme}://{MASK}@" if user and is_token else found[0]


def _parameter(found: re.Match[str]) -> str:
    words = _WORDS.findall(found[2].lower())
    is_named = words[-1:] in (["sig"], ["signature"]) or words in (["key"], ["auth"], ["pwd"])
    return f"{found[1]}{found[2]}={MASK}" if is_named or is_secret(found[2]) else found[0]


def _option(found: re.Match[str]) -> str:
    return f"{found[1]}{found[2]}{MASK}" if _is_secret_option(found[1]) else found[0]


def _is_secret_option(option: str) -> bool:
    name = option.lstrip("-")
    return is_secret(name) or name in ("key", "pat", "pwd")


def _assigned(found: re.Match[str]) -> str:
    name, sign, value = found.groups()
    is_compound = any(mark in name for mark in "_-.") or name.isupper() or _HUMP.search(name) is not None
    is_signature = name.lower() == "signature" and len(value) >= _CERTAIN_LENGTH
    is_certain = sign == "=" or is_compound or _may_be_token(value)
    is_name = is_signature or (is_secret(name) and is_certain)
    return f"{name}{sign}{MASK}" if is_name else found[0]


def _in_quotes(found: re.Match[str]) -> str:
    name, option, value = found.groups()
    is_name = is_secret(name) if name else _is_secret_option(option)
    return f"{found[0][: -len(value)]}{value[0]}{MASK}{value[0]}" if is_name else found[0]


def _header(found: re.Match[str]) -> str:
    begins, scheme, value = found[1], found[2] or "", found[3]
    return f"{begins}{scheme}{MASK}" if scheme or _may_be_token(value) else found[0]


def _cookie(found: re.Match[str]) -> str:
    return f"{found[1]}{MASK}" if "=" in found[2] else found[0]
