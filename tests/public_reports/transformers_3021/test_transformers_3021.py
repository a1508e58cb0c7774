"""huggingface/transformers #3021: GPT-2 writes other texts in a batch with longer prompts.

What a local model writes at temperature 0 is the same alone and in a batch with longer prompts.
"""

from pathlib import Path

from fakes import Lines

from synthbench.base.runtime import Runtime
from synthbench.config.llm import LocalLLM
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account
from synthbench.llm.local_model import LocalModel
from synthbench.llm.requests import ChatRequest

PROMPTS = ("a dog", "two boys eat some bread. the girl paints the piano.", "a man plays the guitar.")


def written(model: Path, folder: Path, batch_size: int) -> dict[str, str | None]:
    llm = LocalLLM(local=str(model), max_new_tokens=8, batch_size=batch_size, cut_off="take")
    endpoint = llm.at(llm.address())
    local = LocalModel(endpoint, Runtime(device="cpu", threads=1), Lines())
    client = ChatClient(endpoint, folder, Account("study", "stage"), local)
    requests = [
        ChatRequest(text, ({"role": "user", "content": text},), {"temperature": 0}) for text in PROMPTS
    ]
    return {answer.request.key: answer.text for answer in client.answers(requests)}


def test_padding_changes_no_text(chat_model: Path, tmp_path: Path) -> None:
    alone = written(chat_model, tmp_path / "alone", 1)
    assert len(set(alone.values())) == 3
    assert written(chat_model, tmp_path / "together", 3) == alone
