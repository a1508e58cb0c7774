"""A run whose LLM `transformers serve` really answers for, from PyPI's packages."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import psutil

from synthbench.config.served_llm import ServedLLM
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import ServerDoor
from synthbench.llm.ledger import entries
from synthbench.llm.requests import ChatRequest
from synthbench.llm.server import servers


def asked(temperature: float) -> list[ChatRequest]:
    message = {"role": "user", "content": "two boys eat"}
    sampling = {"temperature": temperature, "max_tokens": 12}
    return [ChatRequest(str(sample), (message,), sampling, sample) for sample in range(3)]


def answers(llm: ServedLLM, door: ServerDoor, folder: Path, requests: Sequence[ChatRequest]) -> list[str]:
    endpoint = llm.at(replace(llm.address(), door=door))
    found = {each.request.key: each.text for each in ChatClient(endpoint, folder).answers(requests)}
    return [str(found[request.key]) for request in requests]


def test_the_transformers_server_follows_openais_format_and_is_reproducible(
    chat_model: Path, tmp_path: Path
) -> None:
    llm = ServedLLM(serve="transformers", model=str(chat_model), start_timeout_s=300.0, cut_off="take")
    with servers(tmp_path / "logs") as door:
        drawn = answers(llm, door, tmp_path / "one", asked(1.0))
        assert len(set(drawn)) == 3
        assert answers(llm, door, tmp_path / "two", asked(1.0)) == drawn
        assert len(set(answers(llm, door, tmp_path / "one", asked(0.0)))) == 1
        family = psutil.Process().children(recursive=True)
        serving = [process for process in family if "serve" in process.cmdline()]
        assert serving
    assert not [process for process in serving if process.is_running()]
    (entry,) = entries(tmp_path / "one")
    assert (entry.model, entry.answered.num_attempts) == (chat_model.name, 6)
    assert entry.answered.completion_tokens <= 6 * 12
