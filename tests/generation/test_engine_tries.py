"""Kept attempts: the first usable ones by number, and none after them."""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any

import pytest
from small_models import COUNTERLABELS, jobs, scripted_model

from synthbench.base.runtime import Runtime
from synthbench.generation.jobs import Amounts, Attempt, Job, WritingTask
from synthbench.generation.language_model import CausalModel, LanguageModel
from synthbench.generation.sampling import Sampling
from synthbench.generation.writer import Writer

X1 = "ab"
LONGEST = 6
BEGINNING = {"a": 0.4, "c": 0.3, '"': 0.1, "\n": 0.2}
FOLLOWS: Mapping[str, Mapping[str, float]] = {
    '"': BEGINNING,
    "a": {"b": 0.9, "\n": 0.1},
    "b": {'"': 0.7, "c": 0.3},
    "c": {"c": 0.6, "a": 0.2, '"': 0.2},
    "\n": {"a": 0.5, '"': 0.5},
}
OUTCOMES = {"kept", "identical", "duplicate", "newline", "unclosed", "empty"}


@pytest.fixture(scope="module")
def scripted(tmp_path_factory: pytest.TempPathFactory) -> CausalModel:
    """A model that writes usable texts, x1 itself, newlines, nothing, and texts without an end."""
    folder = tmp_path_factory.mktemp("scripted")
    scripted_model(FOLLOWS, folder)
    return LanguageModel(model=str(folder)).load(Runtime(device="cpu"))


@pytest.fixture(scope="module")
def ample(scripted: CausalModel) -> dict[tuple[str, str], list[Attempt]]:
    """Return the attempts of thirty jobs with four samples in at most twelve tries; tests only read them."""
    return attempts(scripted, scripted_jobs(30), 4, 12)


@pytest.fixture(scope="module")
def one_by_one(scripted: CausalModel) -> dict[tuple[str, str], list[Attempt]]:
    """Return the attempts of ten jobs, one row after another; tests only read them."""
    return attempts(scripted, scripted_jobs(10), samples=2, tries=5, sequences=3)


def attempts(
    causal: CausalModel, work: Sequence[Job], samples: int, tries: int, sequences: int = 32
) -> dict[tuple[str, str], list[Attempt]]:
    """Return the attempts of each pair of input and label, in the order of their numbers."""
    sampling = Sampling(decay=100.0, top_k=None, top_p=None, max_new_tokens=LONGEST)
    writer = Writer(
        causal,
        WritingTask(COUNTERLABELS, sampling, Amounts(samples=samples, tries=tries), seed=0),
        sequences=sequences,
    )
    pairs: dict[tuple[str, str], list[Attempt]] = defaultdict(list)
    for written in writer.write(work):
        for attempt in written.attempts:
            pairs[written.job.key, attempt.label].append(attempt)
    return {pair: sorted(made, key=lambda attempt: attempt.number) for pair, made in pairs.items()}


def scripted_jobs(number: int) -> list[Job]:
    """Return jobs with one prompt each for all labels; the model looks at nothing but its end."""
    prompt = dict.fromkeys(COUNTERLABELS, 'A: "')
    return [Job(key=f"job {index}", prompts=prompt, unwanted=frozenset({X1})) for index in range(number)]


def expected_outcome(text: str, kept: Sequence[str]) -> str:
    """Return the expected outcome of a text, given the texts `kept` before it."""
    before, quote, _ = text.partition('"')
    if "\n" in before:
        return "newline"
    if not quote:
        return "unclosed"
    if not before:
        return "empty"
    if before == X1:
        return "identical"
    return "duplicate" if before in kept else "kept"


@pytest.mark.parametrize(("samples", "tries"), [(1, 5), (2, 2), (2, 5), (3, 4), (1, 1)])
def test_the_first_usable_texts_are_accepted(scripted: CausalModel, samples: int, tries: int) -> None:
    check_accepted(scripted, attempts(scripted, scripted_jobs(30), samples, tries), samples, tries)


def test_the_first_usable_of_many_texts_are_accepted(
    scripted: CausalModel, ample: dict[tuple[str, str], list[Attempt]]
) -> None:
    check_accepted(scripted, ample, samples=4, tries=12)


def check_accepted(
    scripted: CausalModel, pairs: Mapping[tuple[str, str], list[Attempt]], samples: int, tries: int
) -> None:
    """Check the attempts of thirty jobs."""
    assert len(pairs) == 30 * len(COUNTERLABELS)
    for made in pairs.values():
        kept: list[str] = []
        assert [attempt.number for attempt in made] == list(range(len(made)))
        for attempt in made:
            assert len(kept) < samples, "a pair stops once it has them"
            text = str(scripted.tokenizer.decode(list(attempt.tokens)))
            assert attempt.outcome == expected_outcome(text, kept)
            if attempt.outcome == "kept":
                assert attempt.text == text.partition('"')[0]
                kept.append(attempt.text)
        assert len(kept) == samples or len(made) == tries


def test_each_kind_of_failure_is_distinguished(ample: dict[tuple[str, str], list[Attempt]]) -> None:
    made = [one for tried in ample.values() for one in tried]
    assert {one.outcome for one in made} == OUTCOMES


@pytest.mark.parametrize("sequences", [21, 192])
def test_accepted_texts_do_not_depend_on_the_batch(
    scripted: CausalModel, one_by_one: dict[tuple[str, str], list[Attempt]], sequences: int
) -> None:
    def told(made: Mapping[Any, Sequence[Attempt]]) -> dict[Any, list[tuple[int, str, str]]]:
        return {pair: [(one.number, one.text, one.outcome) for one in tried] for pair, tried in made.items()}

    made = attempts(scripted, scripted_jobs(10), samples=2, tries=5, sequences=sequences)
    assert told(made) == told(one_by_one)


def test_more_tries_preserve_the_texts_of_fewer_tries(scripted: CausalModel) -> None:
    few, many = (attempts(scripted, scripted_jobs(20), samples=3, tries=tries) for tries in (3, 9))
    for pair, made in few.items():
        texts = [[one.text for one in tried if one.outcome == "kept"] for tried in (made, many[pair])]
        assert texts[0] == texts[1][: len(texts[0])]


def test_accepted_texts_contain_neither_quotation_mark_nor_newline() -> None:
    causal = LanguageModel(model="sandbox/lm").load(Runtime(device="cpu"))
    made = [one for tried in attempts(causal, jobs(4), samples=2, tries=3).values() for one in tried]
    kept = [one.text for one in made if one.outcome == "kept"]
    assert all(text and '"' not in text and "\n" not in text for text in kept)
