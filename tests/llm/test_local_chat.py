"""A chat model in this process: its answers depend on the request alone, and what it can't answer is told."""

import random
import shutil
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import torch
import transformers
from fakes import Lines
from wording import refused

from synthbench.base.runtime import Runtime
from synthbench.config.llm import LocalLLM
from synthbench.generation.language_model import LanguageModel
from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account
from synthbench.llm.ledger import entries
from synthbench.llm.local_model import LocalModel
from synthbench.llm.requests import ChatAnswer, ChatRequest

RUNTIME = Runtime(device="cpu", threads=1)
TEMPLATE = "chat_template.jinja"


@pytest.fixture
def changed(chat_model: Path, tmp_path: Path) -> Path:
    """Give a copy of the model, to be changed."""
    return shutil.copytree(chat_model, tmp_path / "changed")


def client(model: Path, folder: Path, said: Lines | None = None, **settings: Any) -> ChatClient:
    llm = LocalLLM(local=str(model), **{"max_new_tokens": 12, "cut_off": "take", **settings})
    endpoint = llm.at(llm.address())
    local = LocalModel(endpoint, RUNTIME, said or Lines())
    return ChatClient(endpoint, folder, Account("study", "stage"), local)


def request(key: str, text: str, sample: int = 0, **sampling: float) -> ChatRequest:
    messages = ({"role": "system", "content": "Say it again."}, {"role": "user", "content": text})
    return ChatRequest(key, messages, sampling, sample)


def various(number: int) -> list[ChatRequest]:
    """Return requests of several lengths, with several parameters each."""
    parameters = (
        {"temperature": 1.3, "presence_penalty": 0.3, "frequency_penalty": 0.3},
        {"top_p": 0.9},
        {"temperature": 0.0, "max_tokens": 5},
        {},
    )
    return [
        request(f"r{i}", "a man plays the guitar. " * (i % 5), i, **parameters[i % 4]) for i in range(number)
    ]


def texts(asking: ChatClient, requests: Sequence[ChatRequest]) -> dict[str, str | None]:
    return {answer.request.key: answer.text for answer in asking.answers(requests)}


def only(asking: ChatClient, *requests: ChatRequest) -> ChatAnswer:
    (answer,) = asking.answers(requests)
    return answer


def test_an_answer_depends_neither_on_the_batch_nor_on_the_order(chat_model: Path, tmp_path: Path) -> None:
    asked = various(20)
    together = texts(client(chat_model, tmp_path / "together", batch_size=8), asked)
    assert len(set(together.values())) > 15
    shuffled = random.Random(0).sample(asked, 20)
    assert texts(client(chat_model, tmp_path / "by threes", batch_size=3), shuffled) == together
    assert texts(client(chat_model, tmp_path / "alone", batch_size=1), asked) == together


def test_another_sample_of_the_same_request_is_another_answer(chat_model: Path, tmp_path: Path) -> None:
    asked = [request(f"r{i}", "the same", sample=i) for i in range(5)]
    assert len(set(texts(client(chat_model, tmp_path), asked).values())) == 5


def test_at_temperature_zero_it_writes_what_transformers_writes_greedily(
    chat_model: Path, tmp_path: Path
) -> None:
    asked = request("a", "two boys eat some bread.", temperature=0)
    network = transformers.AutoModelForCausalLM.from_pretrained(chat_model)
    tokenizer = transformers.AutoTokenizer.from_pretrained(chat_model)
    prompt = tokenizer.apply_chat_template(asked.messages, add_generation_prompt=True, return_tensors="pt")
    written = network.generate(**prompt, do_sample=False, max_new_tokens=12, pad_token_id=0)
    answer = only(client(chat_model, tmp_path), asked)
    assert answer.text == tokenizer.decode(
        written[0, prompt["input_ids"].shape[1] :], skip_special_tokens=True
    )


def test_a_folder_that_was_moved_gives_the_same_answers(
    chat_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = texts(client(chat_model, tmp_path / "answers"), various(4))
    moved = shutil.copytree(chat_model, tmp_path / "elsewhere" / chat_model.name)
    monkeypatch.setattr(LanguageModel, "load", None)
    assert texts(client(moved, tmp_path / "answers"), various(4)) == before


def test_its_tokens_are_in_the_ledger_and_cost_nothing(chat_model: Path, tmp_path: Path) -> None:
    only(client(chat_model, tmp_path), request("a", "a dog", max_tokens=7, temperature=0))
    (entry,) = entries(tmp_path)
    assert entry.model == chat_model.name
    assert (entry.answered.num_attempts, entry.answered.completion_tokens, entry.answered.usd) == (1, 7, 0.0)
    assert entry.answered.prompt_tokens > 20


def test_what_is_answered_is_answered_from_the_cache_and_no_model_is_loaded(
    chat_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = texts(client(chat_model, tmp_path, batch_size=4), various(6))
    monkeypatch.setattr(LanguageModel, "load", None)
    assert texts(client(chat_model, tmp_path, batch_size=2), various(6)) == before
    offline = client(chat_model, tmp_path, offline=True)
    assert texts(offline, various(6)) == before
    with refused("llm.offline"):
        texts(offline, various(7))


def test_answers_of_other_weights_precision_or_length_are_never_taken_for_its_own(
    chat_model: Path, changed: Path
) -> None:
    (changed / "config.json").write_text((changed / "config.json").read_text(encoding="utf-8") + "\n")
    others = (
        LocalLLM(local=str(chat_model)),
        LocalLLM(local=str(changed)),
        LocalLLM(local=str(chat_model), dtype="bf16"),
        LocalLLM(local=str(chat_model), max_new_tokens=9),
    )
    assert len({llm.at(llm.address()).name for llm in others}) == 4
    faster = LocalLLM(local=str(chat_model), batch_size=2)
    assert faster.at(faster.address()).name == others[0].at(others[0].address()).name
    assert faster.identity() == others[0].identity()


def test_what_the_checkpoint_recommends_changes_no_answer(
    chat_model: Path, changed: Path, tmp_path: Path
) -> None:
    asked = request("a", "a dog", temperature=0)
    plain = only(client(chat_model, tmp_path / "plain"), asked)
    recommended = transformers.GenerationConfig(do_sample=True, repetition_penalty=9.0, eos_token_id=0)
    recommended.save_pretrained(changed)
    assert only(client(changed, tmp_path / "recommended"), asked).text == plain.text


def test_a_prompt_longer_than_the_model_reads_is_a_counted_failure(
    chat_model: Path, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    found = texts(client(chat_model, tmp_path), [*various(25), request("long", "a guitar " * 3000)])
    assert found.pop("long") is None
    assert len(found) == 25
    assert None not in found.values()
    answer = only(client(chat_model, tmp_path), request("long", "a guitar " * 3000))
    assert answer.failure.startswith("a prompt of ")
    assert answer.failure.endswith(" tokens, of 2,048 that the model reads")
    assert not [record for record in caplog.records if record.name.startswith("transformers")]


def test_an_instruction_is_put_before_the_users_words_where_the_template_knows_no_system(
    chat_model: Path, changed: Path, tmp_path: Path
) -> None:
    template = (changed / TEMPLATE).read_text(encoding="utf-8")
    refusal = "{% if messages[0].role == 'system' %}{{ raise_exception('no system role') }}{% endif %}"
    (changed / TEMPLATE).write_text(refusal + template, encoding="utf-8")
    asked = request("a", "a dog", temperature=0)
    folded = ChatRequest("a", ({"role": "user", "content": "Say it again.\n\na dog"},), {"temperature": 0})
    assert (
        only(client(changed, tmp_path / "a"), asked).text
        == only(client(chat_model, tmp_path / "b"), folded).text
    )


def test_what_follows_a_template_that_opens_the_thoughts_is_thought(changed: Path, tmp_path: Path) -> None:
    with (changed / TEMPLATE).open("a", encoding="utf-8") as template:
        template.write("<think>\n")
    answer = only(client(changed, tmp_path), request("a", "a dog"))
    assert (answer.text, answer.failure) == (None, "cut off: limit on tokens, before any answer")


def test_messages_that_a_template_refuses_are_a_counted_failure(changed: Path, tmp_path: Path) -> None:
    (changed / TEMPLATE).write_text("{{ raise_exception('roles must alternate') }}", encoding="utf-8")
    answer = only(client(changed, tmp_path), request("a", "a dog"))
    assert (answer.text, answer.failure) == (
        None,
        "the model's chat template rejects it: roles must alternate",
    )


def test_a_model_without_a_chat_template_is_one_clear_line(changed: Path, tmp_path: Path) -> None:
    (changed / TEMPLATE).unlink()
    with refused("tokenizer"):
        texts(client(changed, tmp_path), various(3))
    with refused("chat_template.jinja"):
        LocalLLM(local=str(changed)).check_folder()


def test_a_parameter_that_it_does_not_know_is_one_clear_line(chat_model: Path, tmp_path: Path) -> None:
    with refused("'logit_bias'"):
        texts(client(chat_model, tmp_path), [request("a", "a dog", logit_bias=1)])


class SmallMemory:
    """Lets a model write for `rows` texts side by side at most."""

    def __init__(self, rows: int, monkeypatch: pytest.MonkeyPatch) -> None:
        self.rows = rows
        self.tried: list[int] = []
        self._generate = transformers.GPT2LMHeadModel.generate
        monkeypatch.setattr(transformers.GPT2LMHeadModel, "generate", lambda *a, **k: self(*a, **k))

    def __call__(self, network: Any, tokens: torch.Tensor, **options: Any) -> Any:
        self.tried.append(len(tokens))
        if len(tokens) > self.rows:
            raise torch.OutOfMemoryError
        return self._generate(network, tokens, **options)


def test_too_little_memory_halves_the_batch_and_changes_no_answer(
    chat_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked, said = various(16), Lines()
    ample = texts(client(chat_model, tmp_path / "ample", batch_size=8), asked)
    memory = SmallMemory(3, monkeypatch)
    assert texts(client(chat_model, tmp_path / "small", said, batch_size=8), asked) == ample
    assert memory.tried[:3] == [8, 4, 2]
    assert set(memory.tried[3:]) == {2}
    assert said.said == [f"out of memory: continuing with {number} answers at a time" for number in (4, 2)]


def test_what_the_memory_does_not_hold_at_all_is_a_counted_failure(
    chat_model: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    SmallMemory(0, monkeypatch)
    answer = only(client(chat_model, tmp_path), request("a", "a dog"))
    assert answer.failure == "the device's memory does not hold its answer"


def test_a_caller_that_leaves_early_waits_for_no_answer_and_loses_none(
    chat_model: Path, tmp_path: Path
) -> None:
    asking = client(chat_model, tmp_path, batch_size=2, max_new_tokens=2000)
    asked = [request("short", "a dog", max_tokens=1), *(request(f"r{i}", "a dog", i) for i in range(5))]
    kept = only(asking, asked[0])
    leaving = asking.answers(asked)
    assert next(iter(leaving)).text == kept.text
    leaving.close()  # type: ignore[attr-defined]
    (entry,) = entries(tmp_path)
    assert entry.answered.num_attempts == 1
