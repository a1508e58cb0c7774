"""EleutherAI/lm-evaluation-harness #3347: template and tokenizer both put a first token.

A chat template's text is all that a local model reads: a token that begins texts is there once where the
template writes it, and not at all where it does not.
"""

import json
import shutil
from pathlib import Path

import pytest
from fakes import Lines

from synthbench.base.runtime import Runtime
from synthbench.config.llm import LocalLLM
from synthbench.llm.local_model import LocalModel
from synthbench.llm.requests import ChatRequest

BEGIN = "<|endoftext|>"
TEMPLATE = "{% for message in messages %}{{ message.content }}{% endfor %}"
PROCESSOR = {
    "type": "TemplateProcessing",
    "single": [{"SpecialToken": {"id": BEGIN, "type_id": 0}}, {"Sequence": {"id": "A", "type_id": 0}}],
    "pair": [{"Sequence": {"id": "A", "type_id": 0}}, {"Sequence": {"id": "B", "type_id": 1}}],
    "special_tokens": {BEGIN: {"id": BEGIN, "ids": [0], "tokens": [BEGIN]}},
}


@pytest.fixture
def beginning(chat_model: Path, tmp_path: Path) -> Path:
    """Give a model whose tokenizer puts the token in front of every text, as Llama's and Gemma's do."""
    folder = shutil.copytree(chat_model, tmp_path / "model")
    file = folder / "tokenizer.json"
    file.write_text(json.dumps({**json.loads(file.read_text("utf-8")), "post_processor": PROCESSOR}), "utf-8")
    return folder


@pytest.mark.parametrize(("template", "number"), [("{{ bos_token }}" + TEMPLATE, 1), (TEMPLATE, 0)])
def test_a_prompt_begins_as_its_template_says(beginning: Path, template: str, number: int) -> None:
    (beginning / "chat_template.jinja").write_text(template, encoding="utf-8")
    llm = LocalLLM(local=str(beginning))
    model = LocalModel(llm.at(llm.address()), Runtime(device="cpu", threads=1), Lines())
    assert model._causal.tokenizer("a dog")["input_ids"][0] == 0, "this tokenizer begins texts by itself"
    prompt = model._prompt(0, ChatRequest("r", ({"role": "user", "content": "a dog"},), {}))
    assert prompt.tokens.count(0) == number
