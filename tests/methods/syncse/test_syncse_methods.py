"""The methods make sentences and triplets from the LLM's answers, in any order."""

import json
from collections import Counter
from typing import Any

import pytest
from pydantic import ValidationError
from syncse_context import Answering, Chat, Context, dataset, generated, sandbox

from synthbench.api import ChatRequest, Failure, GeneratedData, Method, Sentence, Triplet, Unit
from synthbench_syncse import SynCSENaive, SynCSEPartial, SynCSEScratch, SynCSESentences
from synthbench_syncse.prompts import SHIPPED

HARP = "A man is playing a harp."
CORN = "Two farmers are harvesting corn in the field."


LABEL = {"instruction": "Again.", "input": "Input: {sentence}"}


def units_of(method: Method, answering: Answering, order: int = 0, **context: Any) -> list[Unit]:
    return generated(method, Context(Chat(answering, order), **context))


def partial(answering: Answering, *texts: str, order: int = 0, **settings: Any) -> list[Unit]:
    context = Context(Chat(answering, order))
    return generated(SynCSEPartial(**settings), context, {"sentences": dataset(*texts)})


def kind_of(request: ChatRequest) -> str:
    return request.key.partition("|")[0]


def saying(positive: str | None, negative: str | None) -> Answering:
    return lambda request: positive if kind_of(request) == "positive" else negative


def test_partial_makes_a_triplet_from_each_sentence() -> None:
    units = partial(sandbox(), HARP, CORN)
    triplets = [record for unit in units for record in unit.records]
    assert all(isinstance(record, Triplet) for record in triplets)
    assert [record.texts()[0] for record in triplets] == [HARP, CORN]
    assert all(len(set(record.texts())) == 3 for record in triplets)
    assert {record.generator for record in triplets} == {"a-model"}


def with_prompts(method: type[Method], prompts: dict[str, Any], **settings: Any) -> Any:
    return method.model_validate_json(json.dumps({**settings, "prompts": prompts}))


def test_tables_note_whose_prompts_were_used() -> None:
    shipped = SynCSEPartial().table_notes()
    sentences = SHIPPED.read().model_dump(mode="json", include={"sentences"})
    assert with_prompts(SynCSEPartial, sentences).table_notes() == shipped
    assert SynCSEScratch(size=1).table_notes() == SynCSENaive(size=1).table_notes() == shipped
    (note,) = with_prompts(SynCSEPartial, {"positive": LABEL}).table_notes()
    assert "in our own words; but the experiment's own for `positive`." in note
    (note,) = with_prompts(SynCSEPartial, {"positive": LABEL, "negative": LABEL}).table_notes()
    assert note.endswith("new sentences: the experiment's own.")
    (note,) = with_prompts(SynCSESentences, sentences, size=1).table_notes()
    assert note.endswith("new sentences: the experiment's own.")


def test_tables_note_what_the_paper_did_not_release() -> None:
    (note,) = SynCSEScratch(size=1).table_notes()
    assert note == (
        "Prompts for positives, hard negatives and new sentences: reconstructed prompts, in our own words."
        " SynCSE's paper prints its prompts, genres and topics; its exemplars and examples were not released."
    )


def test_the_order_of_answers_does_not_matter() -> None:
    assert partial(sandbox(), HARP, CORN, order=1) == partial(sandbox(), HARP, CORN, order=5)
    method = SynCSESentences(size=60)
    assert units_of(method, sandbox(), order=1) == units_of(method, sandbox(), order=2)


def test_answers_are_parsed_whatever_text_surrounds_them() -> None:
    units = partial(saying('Sure! Here is a paraphrase:\n\n"A harp sounds."', "Output: Nobody plays."), HARP)
    assert units[0].records[0].texts() == (HARP, "A harp sounds.", "Nobody plays.")


@pytest.mark.parametrize(
    ("positive", "negative", "reason"),
    [
        ("I cannot paraphrase this sentence.", "No.", "positive: refusal"),
        ("A harp sounds.", "", "negative: empty"),
        ("a man is playing a harp", "No.", "positive: identical"),
        ("A harp sounds.", "A harp sounds!", "negative: identical"),
        ("A harp sounds.", " ".join(["word"] * 40), "negative: more than 32 words"),
    ],
)
def test_unused_sentences_are_counted_by_reason(positive: str, negative: str, reason: str) -> None:
    (unit,) = partial(saying(positive, negative), HARP, filters={"max_words": 32})
    (failure,) = unit.records
    assert isinstance(failure, Failure) and failure.reason == reason
    assert failure.raw_text in (positive, negative)
    assert unit.dropped == {reason: 1}


def test_a_permanently_failed_request_is_a_failure() -> None:
    (unit,) = partial(saying("A harp sounds.", None), HARP)
    assert [record.kind.value for record in unit.records] == ["failure"]
    assert isinstance(unit.records[0], Failure) and unit.records[0].reason == "negative: content filter"


def test_unusable_sentences_are_counted_and_not_requested() -> None:
    context = Context(Chat(sandbox()))
    sources = {"sentences": dataset(HARP, " ".join(["word"] * 33), "a man is playing a harp", CORN)}
    assert len(generated(SynCSEPartial(filters={"max_words": 32}), context, sources)) == 2
    assert context.dropped == {"sentence: more than 32 words": 1, "sentence: duplicate": 1}
    assert len(context.model.asked) == 4


def test_only_scratch_drops_long_sentences_by_default_as_in_the_paper() -> None:
    premise, positive, negative = (" ".join([word] * 33) for word in ("given", "same", "other"))
    (unit,) = partial(saying(positive, negative), premise)
    assert unit.records[0].texts() == (premise, positive, negative)
    # Other filters do not bring the limit back.
    assert SynCSEPartial(filters={"refusals": False}).filters.max_words is None
    assert [method(size=1).filters.max_words for method in (SynCSEScratch, SynCSENaive, SynCSESentences)] == [
        32
    ] * 3


def test_each_kind_uses_the_papers_sampling_settings() -> None:
    context = Context(Chat(sandbox()))
    generated(SynCSEPartial(), context, {"sentences": dataset(HARP)})
    generated(SynCSESentences(size=1), context)
    sampling = {kind_of(request): request.sampling for request in context.model.asked}
    assert sampling == {
        "positive": {"temperature": 1.0, "top_p": 0.9},
        "negative": {"temperature": 1.0, "top_p": 0.95},
        "0": {"temperature": 1.3, "top_p": 1.0, "presence_penalty": 0.3, "frequency_penalty": 0.3},
    }


@pytest.mark.parametrize("method", [SynCSESentences(size=100), SynCSEScratch(size=100)])
def test_a_resumed_run_sends_only_the_remaining_requests_unchanged(method: Method) -> None:
    needed = dataset(HARP, CORN, "Bees sleep in winter.")
    whole = Context(Chat(sandbox()), needed)
    units = generated(method, whole)
    finished = frozenset(unit.key for unit in units[:2])
    resumed = Context(Chat(sandbox()), needed, finished)
    assert generated(method, resumed) == units[2:]
    asked = {request.key: request for request in whole.model.asked}
    assert 0 < len(resumed.model.asked) < len(asked)
    assert all(asked[request.key] == request for request in resumed.model.asked)


def test_each_request_asks_for_twenty_sentences_of_one_genre() -> None:
    units = units_of(SynCSESentences(size=50, genres=("news", "fiction")), sandbox())
    assert [len(unit.records) for unit in units] == [20, 20, 10]
    assert {record.label for record in units[0].records} != {record.label for record in units[1].records}
    assert all(isinstance(record, Sentence) for unit in units for record in unit.records)


def test_lists_of_unexpected_length_are_counted() -> None:
    (short,) = units_of(SynCSESentences(size=20), lambda _: "1. Bees sleep.\n2. Bees sleep!\n3. Go on.")
    assert [record.texts()[0] for record in short.records] == ["Bees sleep.", "Go on."]
    assert short.dropped == {"duplicate": 1, "missing in a list": 17}
    long = "\n".join(f"{place}. Sentence {place}." for place in range(1, 24))
    (unit,) = units_of(SynCSESentences(size=20), lambda _: long)
    assert len(unit.records) == 20 and unit.dropped == {"more than were asked for": 3}


def test_a_list_without_a_usable_sentence_is_a_failure() -> None:
    (unit,) = units_of(SynCSESentences(size=20), lambda _: "I'm sorry, but I can't write these sentences.")
    assert [record.kind.value for record in unit.records] == ["failure"]
    assert unit.dropped == {"refusal": 1, "missing in a list": 19}


def test_the_llms_faults_corrupt_no_sentence() -> None:
    units = units_of(SynCSESentences(size=400), sandbox(malformed=0.5, refusals=0.1, empty=0.1))
    texts = [record.texts()[0] for unit in units for record in unit.records if record.texts()]
    assert len(texts) > 200
    assert not [text for text in texts if not text[0].isupper() or ":" in text or "sentences" in text]


def test_scratch_and_naive_generate_their_sentences_first() -> None:
    scratch = SynCSEScratch(size=40, genres=("news",), seed=3).needs()["sentences"]
    assert isinstance(scratch, GeneratedData) and scratch.method == "syncse-sentences"
    assert (scratch.config["size"], scratch.config["genres"], scratch.config["seed"]) == (40, ["news"], 3)
    naive = SynCSENaive(size=40).needs()["sentences"]
    assert isinstance(naive, GeneratedData) and naive.config["naive"] is True


def test_filters_and_sampling_settings_also_apply_to_generated_sentences() -> None:
    settings = '{"size": 20, "filters": {"max_words": 9}, "sentences": {"temperature": "unset"}}'
    need = SynCSEScratch.model_validate_json(settings).needs()["sentences"]
    assert isinstance(need, GeneratedData) and need.config["filters"]["max_words"] == 9
    sentences = SynCSESentences.model_validate_json(json.dumps(need.config)).sentences
    assert sentences.parameters() == {"top_p": 1.0, "presence_penalty": 0.3, "frequency_penalty": 0.3}


def test_naive_uses_one_wording_for_all_requests() -> None:
    context = Context(Chat(sandbox()), dataset(HARP, CORN, "Bees sleep in winter."))
    generated(SynCSENaive(size=20), context)
    frames = Counter(str(request.messages[:-1]) for request in context.model.asked)
    assert sorted(frames.values()) == [3, 3]


def test_requests_are_estimated_from_amounts_alone() -> None:
    amount = SynCSEPartial().asks({"sentences": 1000})
    assert amount is not None and amount.num_requests == 2000
    assert 2000 * 100 < amount.prompt_tokens < 2000 * 400
    assert SynCSEPartial().asks({}) is None
    assert SynCSESentences(size=1001).asks({}).num_requests == 51
    assert SynCSEScratch(size=1001).asks({}).num_requests == 2002


def test_identities_know_the_first_shipped_prompts_by_their_former_hashes() -> None:
    assert set(SynCSEPartial().revisions()) == {
        "reconstructed pools: positive",
        "reconstructed pools: negative",
    }
    assert set(SynCSESentences(size=1).revisions()) == {"reconstructed pools: sentences"}
    own = with_prompts(SynCSEPartial, {"positive": LABEL})
    assert set(own.revisions()) == {"reconstructed pools: negative"}


def test_sentences_are_shared_by_rows_with_other_prompts_for_labels() -> None:
    plain = SynCSEScratch(size=20)
    own = with_prompts(SynCSEScratch, {"positive": LABEL}, size=20)
    assert own.needs() == plain.needs()


@pytest.mark.parametrize(
    ("settings", "message"),
    [
        ({"genres": ("poem",)}, "no genre 'poem'"),
        ({"genres": ("news",), "domain": "law"}, "genres and domain exclude each other"),
        ({"prompts": "nothing.yaml"}, "nothing.yaml: no such file"),
        ({"sentence_pool": "mine.yaml"}, "is gone; write one file"),
    ],
)
def test_conflicting_settings_are_refused(settings: dict[str, Any], message: str) -> None:
    for method in (SynCSESentences, SynCSEScratch):
        with pytest.raises(ValidationError, match=message):
            method(size=20, **settings)
