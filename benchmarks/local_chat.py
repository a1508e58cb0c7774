"""Our own chat decoding (`local:`) against `transformers serve`, through the same client.

Run: python benchmarks/local_chat.py [--requests 48] [--tokens 64] [--layers 4] [--width 256]

A small random GPT-2, whose tokens are bytes, answers requests at temperature 1. It rarely ends an answer, so
nearly all have as many tokens. `transformers serve` is asked one request at a time, and with continuous
batching 16 at a time. Start and first request do not count. Prints answer tokens for each wall second
(medians over the rounds, variants in turn), and how many answers are others the second time. Wall seconds on
a busy machine say little, ratios more. Exit code 1 if `local` is slower than one request at a time, the
other way whose answers repeat.
"""

import argparse
import os
import platform
import re
import statistics
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path

from synthbench.base.runtime import Runtime
from synthbench.config.llm import LocalLLM
from synthbench.config.served_llm import ServedLLM
from synthbench.engine.progress import PlainProgress
from synthbench.llm.client import ChatClient
from synthbench.llm.local_model import LocalModel
from synthbench.llm.requests import ChatRequest
from synthbench.llm.server import Servers

TEMPLATE = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant:"
AT_ONCE = 16
ALONE = "serve"
BATCHED = (
    "transformers serve {model} --host 127.0.0.1 --port {port} --continuous-batching"
    " --cb-max-memory-percent 0.05"
)
Asked = Callable[[list[ChatRequest], Path], tuple[Mapping[str, str], int]]
"""Answers requests with an empty cache in a folder: texts by key, and tokens of answers."""


def cpu() -> str:
    """Return the name of the CPU."""
    try:
        named = re.search(r"model name\s*:\s*(.+)", Path("/proc/cpuinfo").read_text(encoding="utf-8"))
    except OSError:
        named = None
    return named[1] if named else platform.processor() or platform.machine()


def write_model(folder: Path, layers: int, width: int) -> None:
    """Write a random GPT-2 with a chat template, whose tokens are bytes."""
    import torch
    import transformers
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers

    letters = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = {"<end>": 0, **{letter: index for index, letter in enumerate(letters, start=1)}}
    backend = Tokenizer(models.BPE(vocab=vocabulary, merges=[]))
    backend.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    backend.decoder = decoders.ByteLevel()
    tokenizer = transformers.PreTrainedTokenizerFast(tokenizer_object=backend, eos_token="<end>")
    tokenizer.chat_template = TEMPLATE
    tokenizer.save_pretrained(folder)
    config = transformers.GPT2Config(
        vocab_size=len(vocabulary), n_layer=layers, n_embd=width, n_head=4, eos_token_id=0, bos_token_id=0
    )
    torch.manual_seed(0)
    transformers.GPT2LMHeadModel(config).save_pretrained(folder)
    settings = transformers.GenerationConfig(do_sample=True, top_k=0, eos_token_id=0, bos_token_id=0)
    settings.save_pretrained(folder)


def requests(number: int, tokens: int, first: int = 0) -> list[ChatRequest]:
    """Return requests of a usual length."""
    return [
        ChatRequest(
            str(index),
            ({"role": "user", "content": f"Paraphrase: a dog, number {index}, runs over a field."},),
            {"temperature": 1.0, "max_tokens": tokens},
            index,
        )
        for index in range(first, first + number)
    ]


def answered(client: ChatClient, asked: list[ChatRequest]) -> tuple[Mapping[str, str], int]:
    """Return the texts by key, and the tokens that the ledger counted."""
    from synthbench.llm.ledger import entries

    texts = {each.request.key: each.text or "" for each in client.answers(asked)}
    return texts, sum(entry.answered.completion_tokens for entry in entries(client.folder))


@contextmanager
def variants(model: Path, threads: int, logs: Path) -> Iterator[Mapping[str, Asked]]:
    """Yield what is measured, by name; the servers run for as long."""
    local = LocalLLM(local=str(model), batch_size=AT_ONCE)
    endpoint = local.at(local.address())
    ours = LocalModel(endpoint, Runtime(device="cpu", threads=threads), PlainProgress())
    served = {
        ALONE: ServedLLM(serve="transformers", model=str(model)),
        "serve, continuous batching": ServedLLM(
            serve=tuple(BATCHED.split()), model=str(model), concurrency=AT_ONCE
        ),
    }
    with Servers(logs, PlainProgress()) as servers:

        def by_server(llm: ServedLLM) -> Asked:
            there = llm.at(llm.behind(servers.door(llm.at(llm.address()))))
            return lambda asked, folder: answered(ChatClient(there, folder), asked)

        yield {
            "local": lambda asked, folder: answered(ChatClient(endpoint, folder, local=ours), asked),
            **{name: by_server(llm) for name, llm in served.items()},
        }


def main() -> int:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--requests", type=int, default=48)
    parser.add_argument("--tokens", type=int, default=64)
    parser.add_argument("--layers", type=int, default=4)
    parser.add_argument("--width", type=int, default=256)
    parser.add_argument("--rounds", type=int, default=2)
    parser.add_argument("--threads", type=int, default=os.cpu_count())
    given = parser.parse_args()
    os.environ["OMP_NUM_THREADS"] = str(given.threads)
    rates: dict[str, list[float]] = {}
    texts: dict[str, list[Mapping[str, str]]] = {}
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        write_model(folder / "model", given.layers, given.width)
        with variants(folder / "model", given.threads, folder / "logs") as measured:
            for variant, ask in measured.items():
                ask(requests(1, 4, first=given.requests), folder / f"warm {variant}")
            for number in range(given.rounds):
                for variant, ask in measured.items():
                    asked, answers = requests(given.requests, given.tokens), folder / f"{variant} {number}"
                    started = time.perf_counter()
                    found, tokens = ask(asked, answers)
                    rates.setdefault(variant, []).append(tokens / (time.perf_counter() - started))
                    texts.setdefault(variant, []).append(found)
    medians = {variant: statistics.median(found) for variant, found in rates.items()}
    size = f"{given.layers} layers of {given.width}, {given.requests} answers of {given.tokens} tokens"
    print(f"{cpu()}, {given.threads} threads, load {os.getloadavg()[0]:.1f}; {size}")
    for variant, rate in medians.items():
        first, *others = texts[variant]
        changed = max((sum(other[key] != first[key] for key in first) for other in others), default=0)
        print(
            f"{variant}: {rate:,.0f} tokens/s, local is {medians['local'] / rate:.2f}x as fast;"
            f" {changed} of {len(first)} answers are others the second time"
        )
    return 0 if medians["local"] > medians[ALONE] else 1


if __name__ == "__main__":
    sys.exit(main())
