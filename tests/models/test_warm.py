"""Models that shards of one stage share within a process."""

from collections.abc import Iterator

import pytest

from synthbench.base.runtime import Runtime
from synthbench.generation.language_model import LanguageModel
from synthbench.models.warm import keep_models, loaded


@pytest.fixture(autouse=True)
def nothing_kept() -> Iterator[None]:
    keep_models("")
    yield
    keep_models("")


def test_models_stay_loaded_for_one_purpose_only() -> None:
    def load() -> list[str]:
        return loaded("a model", list)

    assert load() is not load(), "without a purpose nothing is kept"
    keep_models("one stage")
    first = load()
    keep_models("one stage")
    assert load() is first
    keep_models("another stage")
    assert load() is not first


def test_shards_of_a_stage_load_a_language_model_once() -> None:
    runtime = Runtime(device="cpu", threads=1)
    model = LanguageModel(model="sandbox/lm")
    keep_models("one stage")
    first = model.load(runtime)
    assert model.load(runtime).model is first.model
    keep_models("")
    assert model.load(runtime).model is not first.model
