"""567-labs/instructor #2585: cached answers are found whatever the temperature or the seed.

An answer is found again only for the same model, messages, sampling parameters, options and number of the
sample; how a number is written makes no difference.
"""

from collections.abc import Mapping
from dataclasses import replace

import pytest

from synthbench.llm.cache import key_of
from synthbench.llm.endpoint import Endpoint, Pacing
from synthbench.llm.requests import ChatRequest

ENDPOINT = Endpoint("mine", "http://127.0.0.1:9/v1", "model", "", Pacing())
SAMPLING = {"temperature": 0.0, "max_tokens": 64}


def key(endpoint: Endpoint = ENDPOINT, text: str = "Hello", sample: int = 0, **sampling: float) -> str:
    return key_of(
        endpoint, ChatRequest("r", ({"role": "user", "content": text},), {**SAMPLING, **sampling}, sample)
    )


@pytest.mark.parametrize(
    "changed",
    [
        {"temperature": 0.9},
        {"max_tokens": 16},
        {"top_p": 0.5},
        {"presence_penalty": 0.1},
        {"frequency_penalty": 0.1},
        {"seed": 7},
    ],
    ids=lambda changed: next(iter(changed)),
)
def test_another_sampling_parameter_changes_the_cache_key(changed: Mapping[str, float]) -> None:
    assert key(**changed) != key()


def test_another_model_text_sample_or_option_changes_the_cache_key() -> None:
    others = [
        key(replace(ENDPOINT, model="other")),
        key(replace(ENDPOINT, options={"reasoning_effort": "low"})),
        key(text="Hello!"),
        key(sample=1),
    ]
    assert len({key(), *others}) == 5


def test_the_address_and_number_formats_do_not_change_the_cache_key() -> None:
    assert key(replace(ENDPOINT, base_url="http://127.0.0.1:10/v1")) == key()
    assert key(temperature=0) == key(temperature=0.0)
