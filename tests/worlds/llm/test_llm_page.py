"""docs/sandbox_llm.md describes the effect of each request parameter correctly."""

import json
import re
from pathlib import Path

import pytest

from synthbench.worlds.sandbox.llm import MODEL
from synthbench.worlds.sandbox.llm.answering import NOT_OF_CONTENT
from synthbench.worlds.sandbox.llm.requests import CompletionBody, RequestError, read_request

PAGE = (Path(__file__).parents[3] / "docs" / "sandbox_llm.md").read_text(encoding="utf-8")
SECTION = PAGE.partition("## Parameters of a request")[2].partition("## ")[0]


def named(row: str) -> list[str]:
    """Return the parameters in the second cell of the row whose first cell begins so."""
    cell = next(line for line in SECTION.splitlines() if line.startswith(f"| {row}")).split("|")[2]
    return re.findall(r"`(\w+)`", cell)


def test_the_page_lists_every_parameter_of_the_server_once() -> None:
    taken = [*named("heeded |"), *named("heeded, but"), *named("taken with"), *named("ignored")]
    assert sorted(taken) == sorted(CompletionBody.model_fields)


def test_ignored_parameters_do_not_change_an_answer() -> None:
    assert set(named("ignored")) <= NOT_OF_CONTENT


@pytest.mark.parametrize("parameter", named("refused"))
def test_refused_parameters_are_named(parameter: str) -> None:
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}], parameter: {}}
    with pytest.raises(RequestError, match=f"unsupported parameter: '{parameter}'") as refused:
        read_request(json.dumps(body).encode())
    assert (refused.value.status, refused.value.body["error"]["param"]) == (400, parameter)


@pytest.mark.parametrize(
    ("parameter", "nothing", "something"),
    [
        ("stream", False, True),
    ],
)
def test_unsupported_parameters_are_accepted_only_at_neutral_values(
    parameter: str, nothing: object, something: object
) -> None:
    assert parameter in named("taken with")
    body = {"model": MODEL, "messages": [{"role": "user", "content": "Hi"}]}
    read_request(json.dumps({**body, parameter: nothing}).encode())
    with pytest.raises(RequestError):
        read_request(json.dumps({**body, parameter: something}).encode())
