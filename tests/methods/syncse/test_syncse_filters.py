"""Every dropped text has a reason, which is counted."""

from collections import Counter

import pytest
from hypothesis import given
from hypothesis import strategies as st

from synthbench_syncse.filters import Filters

HARP = "A man is playing a harp."


@pytest.mark.parametrize(
    ("sentence", "reason"),
    [
        ("A harp is played by a man.", ""),
        ("", "empty"),
        (" ...", "empty"),
        ("I cannot paraphrase this sentence.", "refusal"),
        ("As an AI language model, I cannot provide a paraphrase of this input.", "refusal"),
        ("a man is  playing a harp", "identical"),
        ('"A man is playing a harp!"', "identical"),
        (" ".join(["word"] * 32), ""),
        (" ".join(["word"] * 33), "more than 32 words"),
        ("Ein Mann spielt die Harfe und singt.", ""),
    ],
)
def test_each_dropped_sentence_has_its_reason(sentence: str, reason: str) -> None:
    assert Filters().reason(sentence, [HARP]) == reason


def test_filters_can_be_turned_off_and_on() -> None:
    loose = Filters(max_words=100, refusals=False)
    assert loose.reason("I cannot paraphrase this sentence.") == ""
    assert loose.reason(" ".join(["word"] * 33)) == ""
    assert Filters(max_words=0).reason(" ".join(["word"] * 1000)) == ""


def test_the_removed_language_filter_names_its_replacement() -> None:
    with pytest.raises(
        ValueError, match=r"is gone; write prepare: \[\{step: keep-language, language: en\}\]"
    ):
        Filters.model_validate({"language": "en"})


def test_the_first_of_duplicate_sentences_is_used() -> None:
    filtered = list(Filters().filtered([HARP, "Bees sleep.", "a man is playing a harp", "", ""]))
    assert filtered == [
        (HARP, ""),
        ("Bees sleep.", ""),
        ("a man is playing a harp", "duplicate"),
        ("", "empty"),
        ("", "empty"),
    ]


@given(st.lists(st.sampled_from([HARP, "Bees sleep.", "bees sleep", "", "I can't paraphrase this."])))
def test_every_sentence_is_accepted_or_counted(sentences: list[str]) -> None:
    counts = Counter(reason for _, reason in Filters().filtered(sentences))
    assert sum(counts.values()) == len(sentences)
    assert counts[""] == len({text.lower().rstrip(".") for text in sentences if text and "can't" not in text})
