"""UKGovernmentBEIS/inspect_ai #2580: of 30 samples of a prompt one is cached, and found 30 times.

Samples are numbered: each has an answer of its own in the cache, a second run gets the same different
answers, and one sample more asks once more.
"""

from pathlib import Path

from faulty_server import FaultyServer, answer, faulty_server

from synthbench.llm.client import ChatClient
from synthbench.llm.endpoint import Account, Endpoint, Pacing
from synthbench.llm.requests import ChatRequest


def samples(server: FaultyServer, folder: Path, number: int) -> dict[int, str | None]:
    endpoint = Endpoint("mine", server.base_url, "model", "", Pacing())
    message = {"role": "user", "content": "Write a sentence."}
    asked = (ChatRequest(str(n), (message,), {"temperature": 1.0}, n) for n in range(number))
    found = ChatClient(endpoint, folder, Account("study", "stage")).answers(asked)
    return {each.request.sample: each.text for each in found}


def test_samples_of_one_prompt_have_separate_cache_entries(tmp_path: Path) -> None:
    with faulty_server(lambda number, body: answer(f"sentence {number}")) as server:
        first = samples(server, tmp_path, 6)
        assert len(set(first.values())) == 6
        assert samples(server, tmp_path, 6) == first
        assert len(server.bodies) == 6
        seeds = [body["seed"] for body in server.bodies]
        assert sorted(seeds) == list(range(6))
        more = samples(server, tmp_path, 7)
        assert (len(server.bodies), more[6]) == (7, "sentence 6")
        assert {**more, **first} == more
