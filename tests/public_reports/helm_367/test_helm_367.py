"""stanford-crfm/helm #367: a prompt that is too long for the model loses its end, the question.

A prompt that does not fit is a failure of its own request that says how long it is; others are answered.
"""

from pathlib import Path

from fakes import Lines
from wording import worded

from synthbench.base.runtime import Runtime
from synthbench.config.llm import LocalLLM
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account
from synthbench.llm.local_model import LocalModel
from synthbench.llm.requests import ChatRequest


def test_a_prompt_that_does_not_fit_is_a_failure_and_not_cut(chat_model: Path, tmp_path: Path) -> None:
    llm = LocalLLM(local=str(chat_model), max_new_tokens=2, max_failure_rate=1.0, cut_off="take")
    endpoint = llm.at(llm.address())
    local = LocalModel(endpoint, Runtime(device="cpu", threads=1), Lines())
    texts = {"long": "a man plays the guitar. " * 500, "short": "a dog"}
    requests = [ChatRequest(name, ({"role": "user", "content": text},), {}) for name, text in texts.items()]
    client = ChatClient(endpoint, tmp_path, Account("study", "stage"), local)
    found = {answer.request.key: answer for answer in client.answers(requests)}
    assert found["long"].text is None
    worded(found["long"].failure, "tokens", "2,048")
    assert found["short"].text is not None
